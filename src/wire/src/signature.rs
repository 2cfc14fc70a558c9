//! The C parameters of driver calls: how each is passed and recorded.

/// The C type of a parameter, as far as a calling convention knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// `unsigned char`
    U8,
    /// `unsigned short`
    U16,
    /// `unsigned int`, and every unsigned C enum
    U32,
    /// `int`, `CUdevice`
    I32,
    /// `size_t`, `CUdeviceptr`, `unsigned long long`
    U64,
    /// Any pointer or opaque handle
    Pointer,
    /// A structure of 64 bytes by value, which the calling convention passes in memory
    Bytes64,
}

/// The data that is recorded for a parameter beside its own word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// The value itself, nothing behind it is read.
    Value,
    /// Points to a result of this many bytes (4, or words of 8), read after success.
    Out(u8),
    /// Points to the handle of a new stream: recorded like `Out(8)`, and `cuStreamGetId` of the
    /// new stream is appended after all out values.
    OutStream,
    /// Points to the handle of a new context: recorded like `Out(8)`; of its device, which the
    /// parameter `dev` names, a word is appended after all out values: bit 0 that the host may touch
    /// managed memory beside kernels (also where the driver does not tell), from bit 8 on the major
    /// and from bit 16 on the minor number of its compute capability, 8 bits each, 0 where the
    /// driver does not tell.
    OutContext,
    /// Points to the address of memory made elsewhere: recorded like `Out(8)`, and the size that
    /// `cuMemGetAddressRange` gives is appended after all out values.
    OutAddress,
    /// Points to a shareable handle: recorded like `Out(4)`. Where parameter 2 says that it is a file
    /// descriptor, a mark that the runtime puts on its file is appended after all out values, else 0.
    OutShareable,
    /// Points to the handle of memory that parameter 1 stands for: recorded like `Out(8)`. Where
    /// parameter 2 says that it is a file descriptor, the mark on its file is appended after all out
    /// values; 0 where there is none.
    OutImported,
    /// Points to a structure of this many bytes (or is one by value), copied at entry.
    InStruct(u16),
    /// Points to as many elements as another parameter says, copied at entry.
    InArray {
        /// Bytes of an element.
        element: u16,
        /// Index of the parameter that counts them.
        count: u8,
    },
    /// Points to as many bytes of host memory as another parameter says: copied at entry where they
    /// are at most [`ParamKind::MOST_BYTES`], can be read, and go to where a variable of a module
    /// may lie.
    InBytes {
        /// Index of the parameter that counts them.
        count: u8,
    },
    /// Points to elements for each dimension of a tensor, whose rank parameter 2 says: copied at
    /// entry.
    PerDimension {
        /// Bytes of an element.
        element: u8,
        /// Number of missing dimensions.
        less: u8,
    },
    /// Points to a structure of this many bytes that the call changes: recorded like `InStruct` at
    /// entry and like `Out` after success.
    InOut(u8),
    /// `CUDA_LAUNCH_PARAMS *`, as many as the parameter of this index says: copied, and the
    /// parameters of each kernel.
    Launches {
        /// Index of the parameter that counts them.
        count: u8,
    },
    /// Points to a NUL-terminated string, copied at entry without its NUL.
    InString,
    /// The function to launch, by whose layout the parameters are copied.
    Function,
    /// `void **kernelParams` of a launch.
    KernelParams,
    /// `void **extra` of a launch.
    Extra,
    /// `const CUlaunchConfig *`: copied, and the attribute array that it points to.
    LaunchConfig,
    /// `void (*)(void *userData)`: wrapped, so that its run is recorded.
    HostFunction,
    /// `void (*)(CUstream, CUresult, void *userData)`: wrapped, so that its run is recorded.
    StreamCallback,
    /// The `userData` of a wrapped function.
    UserData,
    /// A graph that becomes executable by the call: read back at entry.
    Graph,
    /// Points to the parameters of a node of an executable, of this `CUgraphNodeType`, or
    /// [`ParamKind::ANY_NODE`] for `CUgraphNodeParams`: copied at entry.
    NodeParams(u8),
    /// Points to the `CUgraphNodeParams` of a new node: the bodies of a conditional node are read
    /// after success.
    NewNode,
    /// A graph that is cloned: the clones of its nodes are read after success.
    Cloned,
    /// A stream whose capture begins or ends by the call.
    Capture,
}

impl ParamKind {
    /// In place of a node type: the structure itself says which it is.
    pub const ANY_NODE: u8 = u8::MAX;

    /// The parameter that says the rank of a tensor.
    pub const RANK: usize = 2;

    /// Most bytes that are copied of what a copy reads: a few pointers in variables.
    pub const MOST_BYTES: u64 = 64;

    /// Most dimensions of a tensor map (CUDA driver API, `cuTensorMapEncodeTiled`).
    pub const MOST_DIMENSIONS: u64 = 5;
}

/// One C parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// Its name in the driver API.
    pub name: &'static str,
    /// The recorded data.
    pub kind: ParamKind,
    /// How the parameter is passed.
    pub scalar: Scalar,
}

/// A hooked driver call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// The exact exported symbol.
    pub name: &'static str,
    /// Its parameters in order.
    pub params: &'static [Param],
    /// Whether anything is read through its pointers at entry.
    pub captures: bool,
    /// Whether graphs or captures are asked for after the call.
    pub follows: bool,
    /// Number of out values that a successful call records.
    pub outs: usize,
    /// Number of blobs that parameters point to; a list of launches counts as several.
    pub inputs: usize,
}

impl Signature {
    /// Index of the parameter called `name`.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }

    pub(crate) const fn new(name: &'static str, params: &'static [Param]) -> Self {
        let (mut captures, mut follows, mut outs) = (false, false, 0);
        let (mut inputs, mut index) = (0, 0);
        while index < params.len() {
            match params[index].kind {
                ParamKind::Value | ParamKind::UserData => {}
                ParamKind::NewNode | ParamKind::Cloned | ParamKind::Capture => follows = true,
                ParamKind::Out(bytes) => outs += (bytes as usize).div_ceil(8),
                ParamKind::OutStream
                | ParamKind::OutContext
                | ParamKind::OutAddress
                | ParamKind::OutShareable
                | ParamKind::OutImported => outs += 2,
                ParamKind::InStruct(_)
                | ParamKind::InString
                | ParamKind::LaunchConfig
                | ParamKind::PerDimension { .. }
                | ParamKind::InBytes { .. }
                | ParamKind::InArray { .. } => {
                    captures = true;
                    inputs += 1;
                }
                ParamKind::InOut(bytes) => {
                    captures = true;
                    inputs += 1;
                    outs += (bytes as usize).div_ceil(8);
                }
                ParamKind::Launches { .. } => {
                    captures = true;
                    inputs += 2;
                }
                _ => captures = true,
            }
            index += 1;
        }
        Self { name, params, captures, follows, outs, inputs }
    }
}

/// A parameter type of the hook table: its C type and its recorded data.
pub trait Parameter {
    /// The C type in the hook's signature.
    type C: Copy;
    /// The recorded data.
    const KIND: ParamKind;
    /// The C type as data.
    const SCALAR: Scalar;
    /// Widens to a word: signed integers are sign-extended, pointers become addresses. Of a
    /// structure by value the word is the address of `value`.
    fn word(value: &Self::C) -> u64;
    /// The inverse of [`Parameter::word`].
    ///
    /// # Safety
    /// Where the C type is a structure, what `word` was made from is still there.
    unsafe fn from_word(word: u64) -> Self::C;
}

/// The parameter types that the hook table names.
pub mod kinds {
    use super::{ParamKind, Parameter, Scalar};
    use core::ffi::c_void;

    macro_rules! integers {
        ($($(#[$doc:meta])* $name:ident: $c:ty, $scalar:ident;)*) => {$(
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $name;
            impl Parameter for $name {
                type C = $c;
                const KIND: ParamKind = ParamKind::Value;
                const SCALAR: Scalar = Scalar::$scalar;
                fn word(value: &$c) -> u64 {
                    *value as u64
                }
                unsafe fn from_word(word: u64) -> $c {
                    word as $c
                }
            }
        )*};
    }

    integers! {
        /// `unsigned char` by value.
        U8: u8, U8;
        /// `unsigned short` by value.
        U16: u16, U16;
        /// `unsigned int` by value.
        U32: u32, U32;
        /// `int` by value.
        I32: i32, I32;
        /// `size_t` or `CUdeviceptr` by value.
        U64: u64, U64;
    }

    macro_rules! pointers {
        ($($(#[$doc:meta])* $name:ident $(<$(const $n:ident: $t:ty),+>)?: $kind:expr;)*) => {$(
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $name $(<$(const $n: $t),+>)?;
            impl $(<$(const $n: $t),+>)? Parameter for $name $(<$($n),+>)? {
                type C = *mut c_void;
                const KIND: ParamKind = $kind;
                const SCALAR: Scalar = Scalar::Pointer;
                fn word(value: &*mut c_void) -> u64 {
                    *value as u64
                }
                unsafe fn from_word(word: u64) -> *mut c_void {
                    word as *mut c_void
                }
            }
        )*};
    }

    pointers! {
        /// A handle, or a pointer that nothing is read through.
        Ptr: ParamKind::Value;
        /// Pointer to a result of `N` bytes.
        Out<const N: u8>: ParamKind::Out(N);
        /// Pointer to the handle of a new stream.
        OutStream: ParamKind::OutStream;
        /// Pointer to the handle of a new context.
        OutContext: ParamKind::OutContext;
        /// Pointer to the address of memory made elsewhere.
        OutAddress: ParamKind::OutAddress;
        /// Pointer to a shareable handle.
        OutShareable: ParamKind::OutShareable;
        /// Pointer to the handle of memory that is imported.
        OutImported: ParamKind::OutImported;
        /// Pointer to a structure of `N` bytes.
        In<const N: u16>: ParamKind::InStruct(N);
        /// Pointer to elements of `N` bytes, as many as parameter number `COUNT` says.
        Array<const N: u16, const COUNT: u8>: ParamKind::InArray { element: N, count: COUNT };
        /// Pointer to bytes of host memory, as many as parameter number `COUNT` says.
        Bytes<const COUNT: u8>: ParamKind::InBytes { count: COUNT };
        /// Pointer to elements of `N` bytes, one for each dimension of a tensor but `LESS`.
        PerDimension<const N: u8, const LESS: u8>:
            ParamKind::PerDimension { element: N, less: LESS };
        /// Pointer to a structure of `N` bytes that the call changes.
        InOut<const N: u8>: ParamKind::InOut(N);
        /// `CUDA_LAUNCH_PARAMS *`, as many as parameter number `COUNT` says.
        Launches<const COUNT: u8>: ParamKind::Launches { count: COUNT };
        /// Pointer to a NUL-terminated string.
        Text: ParamKind::InString;
        /// `CUfunction` (or a cast `CUkernel`) of a launch.
        Function: ParamKind::Function;
        /// `void **kernelParams`.
        KernelParams: ParamKind::KernelParams;
        /// `void **extra`.
        Extra: ParamKind::Extra;
        /// `const CUlaunchConfig *`.
        LaunchConfig: ParamKind::LaunchConfig;
        /// `CUhostFn`.
        HostFunction: ParamKind::HostFunction;
        /// `CUstreamCallback`.
        StreamCallback: ParamKind::StreamCallback;
        /// `void *userData`.
        UserData: ParamKind::UserData;
        /// `CUgraph` that becomes executable.
        Graph: ParamKind::Graph;
        /// Parameters of a node of type `N` of an executable.
        NodeParams<const N: u8>: ParamKind::NodeParams(N);
        /// `CUgraphNodeParams *` of a new node.
        NewNode: ParamKind::NewNode;
        /// `CUgraph` that is cloned.
        Cloned: ParamKind::Cloned;
        /// `CUstream` whose capture begins or ends.
        Capture: ParamKind::Capture;
    }
    /// A structure of 64 bytes by value (`CUipcMemHandle`, `CUipcEventHandle`).
    #[derive(Debug)]
    pub struct Value64;

    impl Parameter for Value64 {
        type C = ByValue64;
        const KIND: ParamKind = ParamKind::InStruct(64);
        const SCALAR: Scalar = Scalar::Bytes64;
        fn word(value: &ByValue64) -> u64 {
            core::ptr::from_ref(value) as u64
        }
        unsafe fn from_word(word: u64) -> ByValue64 {
            // SAFETY: the structure that `word` was made from is still there (caller).
            unsafe { *(word as *const ByValue64) }
        }
    }

    /// The C type of [`Value64`].
    #[derive(Debug, Clone, Copy)]
    #[repr(C)]
    pub struct ByValue64([u8; 64]);
}
