//! How one C parameter of a driver call is passed and what of it is recorded.

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
}

/// What is recorded of a parameter beside its own word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// The value itself, nothing behind it is read.
    Value,
    /// Points to a result of this many bytes (4 or 8), read after success.
    Out(u8),
    /// Points to the handle of a new stream: recorded like `Out(8)`, and `cuStreamGetId` of the
    /// new stream is appended after all out values.
    OutStream,
    /// Points to a structure of this many bytes, copied at entry.
    InStruct(u16),
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
}

/// One C parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// Its name in the driver API.
    pub name: &'static str,
    /// What is recorded.
    pub kind: ParamKind,
    /// How it is passed.
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
    /// Number of out values that a successful call records.
    pub outs: usize,
}

impl Signature {
    /// Index of the parameter called `name`.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }

    pub(crate) const fn new(name: &'static str, params: &'static [Param]) -> Self {
        let (mut captures, mut outs, mut index) = (false, 0, 0);
        while index < params.len() {
            match params[index].kind {
                ParamKind::Value | ParamKind::UserData => {}
                ParamKind::Out(_) => outs += 1,
                ParamKind::OutStream => outs += 2,
                _ => captures = true,
            }
            index += 1;
        }
        Self { name, params, captures, outs }
    }
}

/// A parameter type of the hook table: its C type and what is recorded of it.
pub trait Parameter {
    /// The C type in the hook's signature.
    type C: Copy;
    /// What is recorded.
    const KIND: ParamKind;
    /// The C type as data.
    const SCALAR: Scalar;
    /// Widens to a word: signed integers are sign-extended, pointers become addresses.
    fn word(value: Self::C) -> u64;
    /// The inverse of [`Parameter::word`].
    fn from_word(word: u64) -> Self::C;
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
                fn word(value: $c) -> u64 {
                    value as u64
                }
                fn from_word(word: u64) -> $c {
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
        ($($(#[$doc:meta])* $name:ident $(<const $n:ident: $t:ty>)?: $kind:expr;)*) => {$(
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $name $(<const $n: $t>)?;
            impl $(<const $n: $t>)? Parameter for $name $(<$n>)? {
                type C = *mut c_void;
                const KIND: ParamKind = $kind;
                const SCALAR: Scalar = Scalar::Pointer;
                fn word(value: *mut c_void) -> u64 {
                    value as u64
                }
                fn from_word(word: u64) -> *mut c_void {
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
        /// Pointer to a structure of `N` bytes.
        In<const N: u16>: ParamKind::InStruct(N);
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
    }
}
