//! The ways in which programs come by the driver's functions, one small call by each: to see
//! whether the runtime notices it.

use std::ffi::{CStr, c_char, c_int, c_void};

const RTLD_NOW: c_int = 2;
const RTLD_GLOBAL: c_int = 0x100;
/// The version that this build asks the driver for: CUDA 12.0, in which `cuGetProcAddress_v2` came.
const CUDA_12_0: c_int = 12_000;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// How a program finds the driver's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is linked with `libcuda.so.1`: the dynamic linker looks through the libraries in their
    /// order.
    Linked,
    /// `dlsym` of the library's handle.
    Dlsym,
    /// `cuGetProcAddress`, as CUDA's runtime library does.
    GetProcAddress,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Linked, Self::Dlsym, Self::GetProcAddress];

    /// The word for it.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Linked => "direct link",
            Self::Dlsym => "dlsym",
            Self::GetProcAddress => "cuGetProcAddress",
        }
    }
}

/// The entry point that is called: it has no effect, and works before any other.
pub const CALLED: &str = "cuDriverGetVersion";

/// Calls [`CALLED`] once, found in one of the ways.
///
/// # Errors
/// A sentence: what is missing, or what the driver answered.
pub fn call_by(way: Way) -> Result<(), String> {
    // SAFETY: loads the driver's library as any CUDA program does.
    let library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), RTLD_NOW | RTLD_GLOBAL) };
    if library.is_null() {
        return Err("libcuda.so.1 is not found".to_owned());
    }
    let name = c"cuDriverGetVersion";
    let found = match way {
        // A null handle is the search that the dynamic linker does for a program's own symbols.
        Way::Linked => symbol(std::ptr::null_mut(), name)?,
        Way::Dlsym => symbol(library, name)?,
        Way::GetProcAddress => {
            type GetProcAddress = unsafe extern "C" fn(
                *const c_char,
                *mut *mut c_void,
                c_int,
                u64,
                *mut c_int,
            ) -> c_int;
            let function = symbol(library, c"cuGetProcAddress_v2")?;
            // SAFETY: the driver's documentation gives the function this type.
            let get = unsafe { std::mem::transmute::<*mut c_void, GetProcAddress>(function) };
            let (mut found, mut why) = (std::ptr::null_mut(), 0);
            // SAFETY: all pointers live through the call.
            let result = unsafe { get(name.as_ptr(), &mut found, CUDA_12_0, 0, &mut why) };
            if result != 0 || found.is_null() {
                return Err(format!("cuGetProcAddress_v2 answered {result} ({why})"));
            }
            found
        }
    };
    // SAFETY: the driver's documentation gives the function this type.
    let call = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> c_int>(found)
    };
    let mut version = 0;
    // SAFETY: the pointer is to a live integer.
    match unsafe { call(&mut version) } {
        0 => Ok(()),
        result => Err(format!("{CALLED} answered {result}")),
    }
}

fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: the name ends in NUL; the handle is that of an open library, or none.
    let found = unsafe { dlsym(library, name.as_ptr()) };
    if found.is_null() {
        return Err(format!("{} is not found", name.to_string_lossy()));
    }
    Ok(found)
}
