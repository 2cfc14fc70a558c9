//! NVIDIA's Compute Sanitizer API: its functions by name, the numbers of its enumerations that are
//! used, and the places of the fields that are read.
//!
//! Source: NVIDIA Compute Sanitizer API, reference of the callback, patching and stream modules, and
//! the layout that C gives to the structures documented there. The places below are those of the
//! libraries 2025.3 (CUDA 13.0) to 2026.4 (CUDA 13.5): structures have grown at their ends only. The
//! API does not tell its version; [`crate::modules`] and [`crate::launches`] check what they read
//! (a launch's module is one that was loaded, its function's name one of its kernels') and switch
//! measuring off where it is not so.
//!
//! Deliberately absent: NVIDIA's headers and everything that is not called.

use core::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::sync::OnceLock;

use crate::driver::Handle;

/// A result of the API; 0 is success.
pub(crate) type SanitizerResult = u32;

/// `SANITIZER_ERROR_MAX_LIMIT_REACHED`: there is a subscriber already.
pub(crate) const TOO_MANY: SanitizerResult = 10;

pub(crate) const DOMAIN_RESOURCE: u32 = 3;
pub(crate) const DOMAIN_LAUNCH: u32 = 5;
pub(crate) const DOMAIN_GRAPHS: u32 = 10;

pub(crate) const CONTEXT_DESTROY_STARTING: u32 = 4;
pub(crate) const MODULE_LOADED: u32 = 9;
pub(crate) const MODULE_UNLOAD_STARTING: u32 = 10;
pub(crate) const LAUNCH_BEGIN: u32 = 1;
pub(crate) const NODE_LAUNCH_BEGIN: u32 = 4;
pub(crate) const GRAPH_LAUNCH_BEGIN: u32 = 6;
pub(crate) const GRAPH_LAUNCH_END: u32 = 7;

/// `CU_GRAPH_NODE_TYPE_KERNEL`.
pub(crate) const KERNEL_NODE: u32 = 0;

/// Instructions that are patched, by their number (`Sanitizer_InstructionId`), with the function that
/// is called before them.
pub(crate) const PATCHES: [(u32, &CStr); 5] = [
    (3, c"streamsan_on_access"),
    (30, c"streamsan_on_bulk_load"),
    (35, c"streamsan_on_bulk_store"),
    (37, c"streamsan_on_bulk_reduction"),
    (43, c"streamsan_on_tensor_load"),
];

/// An instruction that libraries know since 2026.4 (`SANITIZER_INSTRUCTION_CLUSTER_LAUNCH_CONTROL`).
/// They also tell since then which bytes of an asynchronous copy are read.
pub(crate) const SINCE_2026_4: (u32, &CStr) = (47, c"streamsan_on_other");

/// Asynchronous copies (`cp.async`), with the function for libraries since 2026.4 and before.
pub(crate) const COPY_ASYNC: (u32, [&CStr; 2]) =
    (14, [c"streamsan_on_copy_async", c"streamsan_on_copy_async_before_2026_4"]);

/// The message about a library that does not know all of [`PATCHES`]: before 2026.2 it tells
/// nothing of loads through tensor maps, and has another form for bulk stores.
pub(crate) const TOO_OLD: &str = "the Compute Sanitizer library is older than 2026.2 (CUDA 13.3) and does \
    not see all accesses: pip install nvidia-cuda-sanitizer-api";

pub(crate) type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

macro_rules! functions {
    ($($field:ident = $name:literal: fn($($arg:ty),*);)*) => {
        /// The library's functions.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Sanitizer {
            $(pub(crate) $field: unsafe extern "C" fn($($arg),*) -> SanitizerResult,)*
        }

        impl Sanitizer {
            fn find(library: *mut c_void) -> Result<Self, &'static CStr> {
                Ok(Self {
                    $($field: {
                        // SAFETY: a handle of a loaded library and a text ended by NUL.
                        let address = unsafe { libc::dlsym(library, $name.as_ptr()) };
                        if address.is_null() {
                            return Err($name);
                        }
                        // SAFETY: the library's function of this name has this type.
                        unsafe {
                            core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) -> SanitizerResult>(address)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    subscribe = c"sanitizerSubscribe": fn(*mut Handle, Callback, *mut c_void);
    unsubscribe = c"sanitizerUnsubscribe": fn(Handle);
    enable_domain = c"sanitizerEnableDomain": fn(u32, Handle, u32);
    add_patches_from_file = c"sanitizerAddPatchesFromFile": fn(*const c_char, Handle);
    patch_instructions = c"sanitizerPatchInstructions": fn(u32, Handle, *const c_char);
    patch_module = c"sanitizerPatchModule": fn(Handle);
    set_launch_callback_data = c"sanitizerSetLaunchCallbackData": fn(Handle, Handle, Handle, *const c_void);
    get_result_string = c"sanitizerGetResultString": fn(SanitizerResult, *mut *const c_char);
}

static SANITIZER: OnceLock<Sanitizer> = OnceLock::new();

/// The library, once it was loaded.
pub(crate) fn sanitizer() -> Option<&'static Sanitizer> {
    SANITIZER.get()
}

/// Loads the library.
///
/// # Errors
/// A sentence part that says why.
pub(crate) fn load(path: &Path) -> Result<&'static Sanitizer, String> {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::CString::new(path.as_os_str().as_bytes())
        .map_err(|_| format!("the path {} holds a NUL", path.display()))?;
    // SAFETY: a text ended by NUL; the library's constructors are NVIDIA's.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        // SAFETY: the error of the call above, a text of the loader's or null.
        let why = unsafe { libc::dlerror() };
        let why = match why.is_null() {
            true => "the loader does not say why".into(),
            // SAFETY: as above.
            false => unsafe { CStr::from_ptr(why) }.to_string_lossy(),
        };
        return Err(format!("{} could not be loaded: {why}", path.display()));
    }
    let found = Sanitizer::find(library).map_err(|missing| {
        format!("{} has no function {}", path.display(), missing.to_string_lossy())
    })?;
    Ok(SANITIZER.get_or_init(|| found))
}

impl Sanitizer {
    /// Whether a call succeeded, else an error with the library's own words.
    pub(crate) fn checked(&self, what: &str, result: SanitizerResult) -> Result<(), String> {
        if result == 0 {
            return Ok(());
        }
        let mut words = core::ptr::null();
        // SAFETY: a writable result; the words are a constant of the library.
        let words = unsafe {
            (self.get_result_string)(result, &mut words);
            if words.is_null() { c"?" } else { CStr::from_ptr(words) }
        };
        Err(format!("{what} failed: {} ({result})", words.to_string_lossy()))
    }
}

/// A structure that a callback is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data(*const u8);

impl Data {
    /// # Safety
    /// Points to a structure of the API that has the fields which are asked for.
    pub(crate) unsafe fn new(at: *const c_void) -> Self {
        Self(at.cast())
    }

    fn word(self, offset: usize) -> u64 {
        // SAFETY: promised where the value was made; fields of the API are aligned.
        unsafe { self.0.add(offset).cast::<u64>().read() }
    }

    fn half(self, offset: usize) -> u32 {
        // SAFETY: as above.
        unsafe { self.0.add(offset).cast::<u32>().read() }
    }

    fn handle(self, offset: usize) -> Handle {
        self.word(offset) as Handle
    }
}

/// `Sanitizer_ResourceModuleData` (and, for the first field, `Sanitizer_ResourceContextData`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceData(pub(crate) Data);

impl ResourceData {
    pub(crate) fn context(self) -> Handle {
        self.0.handle(0)
    }

    pub(crate) fn module(self) -> Handle {
        self.0.handle(8)
    }

    pub(crate) fn cubin_bytes(self) -> usize {
        self.0.word(16) as usize
    }

    pub(crate) fn cubin(self) -> *const u8 {
        self.0.handle(24).cast()
    }
}

/// `Sanitizer_LaunchData`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchData(pub(crate) Data);

impl LaunchData {
    pub(crate) fn context(self) -> Handle {
        self.0.handle(0)
    }

    pub(crate) fn stream(self) -> Handle {
        self.0.handle(16)
    }

    pub(crate) fn module(self) -> Handle {
        self.0.handle(24)
    }

    pub(crate) fn function(self) -> Handle {
        self.0.handle(32)
    }

    pub(crate) fn function_name(self) -> *const c_char {
        self.0.handle(40).cast()
    }

    /// The number of the grid, which its kernel sees as `%gridid`.
    pub(crate) fn grid(self) -> u64 {
        self.0.word(88)
    }

    pub(crate) fn launch(self) -> Handle {
        self.0.handle(96)
    }

    /// The stream that a graph is launched in.
    pub(crate) fn api_stream(self) -> Handle {
        self.0.handle(128)
    }
}

/// `Sanitizer_GraphNodeLaunchData`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeData(pub(crate) Data);

impl NodeData {
    pub(crate) fn executable(self) -> usize {
        self.0.word(0) as usize
    }

    pub(crate) fn node(self) -> u64 {
        self.0.word(16)
    }

    pub(crate) fn node_type(self) -> u32 {
        self.0.half(24)
    }

    pub(crate) fn launch(self) -> LaunchData {
        LaunchData(Data(self.0.0.wrapping_add(32)))
    }
}

/// `Sanitizer_GraphLaunchData`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphData(pub(crate) Data);

impl GraphData {
    pub(crate) fn is_upload(self) -> bool {
        self.0.half(32) != 0
    }
}
