//! Calling the driver by name, with nothing between: every argument of the driver API is an
//! integer or a pointer, and the C convention of x86-64 passes those alike and lets a function
//! ignore the ones behind its own.

use std::ffi::CString;
use std::sync::OnceLock;

type Function = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u32;

/// The library, as a program finds it.
fn library() -> usize {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    *LIBRARY.get_or_init(|| {
        // SAFETY: a terminated name; the library has no constructors.
        let handle = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "libcuda.so.1 is in LD_LIBRARY_PATH");
        handle as usize
    })
}

/// The address that the dynamic linker gives for a name.
pub(crate) fn address(name: &str) -> u64 {
    let symbol = CString::new(name).unwrap();
    // SAFETY: an open library and a terminated name.
    let found = unsafe { libc::dlsym(library() as *mut libc::c_void, symbol.as_ptr()) };
    assert!(!found.is_null(), "{name} is exported");
    found as u64
}

/// Calls a driver function and returns its status.
pub(crate) fn cu(name: &str, arguments: &[u64]) -> u32 {
    call(address(name), arguments)
}

/// Calls the driver function at an address.
pub(crate) fn call(function: u64, arguments: &[u64]) -> u32 {
    let mut a = [0; 11];
    a[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: the address is that of a driver function, and the test passes what it takes.
    unsafe {
        let function = std::mem::transmute::<u64, Function>(function);
        function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10])
    }
}

/// Calls a driver function that has to succeed.
pub(crate) fn ok(name: &str, arguments: &[u64]) {
    assert_eq!(cu(name, arguments), 0, "{name}{arguments:x?}");
}

/// Calls a driver function that has to succeed and puts a handle or address into its first
/// argument.
pub(crate) fn make(name: &str, arguments: &[u64]) -> u64 {
    let mut made = 0u64;
    let mut all = vec![&raw mut made as u64];
    all.extend(arguments);
    ok(name, &all);
    made
}

/// Initialises the driver and makes the primary context of device 0 current.
pub(crate) fn start() {
    ok("cuInit", &[0]);
    let context = make("cuDevicePrimaryCtxRetain", &[0]);
    ok("cuCtxSetCurrent", &[context]);
}

pub(crate) fn stream(flags: u64) -> u64 {
    make("cuStreamCreate", &[flags])
}

pub(crate) const NON_BLOCKING: u64 = 1;

pub(crate) fn event() -> u64 {
    make("cuEventCreate", &[0])
}

pub(crate) fn device(bytes: u64) -> u64 {
    make("cuMemAlloc_v2", &[bytes])
}

/// Pinned memory of one word, as the address that the driver knows.
pub(crate) fn pinned(value: u32) -> u64 {
    let address = make("cuMemHostAlloc", &[4096, 0]);
    write(address, value);
    address
}

/// The value that the program reads at an address.
pub(crate) fn read(address: u64) -> u32 {
    // SAFETY: an address of live, aligned memory of the test or of the driver.
    unsafe { (address as *const u32).read_volatile() }
}

/// The program writes at an address.
pub(crate) fn write(address: u64, value: u32) {
    // SAFETY: as in `read`.
    unsafe { (address as *mut u32).write_volatile(value) };
}

/// Sets one word in a stream.
pub(crate) fn fill(address: u64, value: u32, stream: u64) {
    ok("cuMemsetD32Async", &[address, value.into(), 1, stream]);
}

/// Copies one word to the host in a stream.
pub(crate) fn fetch(to: u64, from: u64, stream: u64) {
    ok("cuMemcpyDtoHAsync_v2", &[to, from, 4, stream]);
}

/// Loads the kernels of the tests.
pub(crate) fn module() -> u64 {
    let text = CString::new(include_str!("../../testdata/driver.ptx")).unwrap();
    make("cuModuleLoadData", &[text.as_ptr() as u64])
}

pub(crate) fn function(module: u64, name: &str) -> u64 {
    let name = CString::new(name).unwrap();
    make("cuModuleGetFunction", &[module, name.as_ptr() as u64])
}

/// Launches with a grid and block of one dimension and eight-byte parameters.
pub(crate) fn launch(function: u64, grid: u64, block: u64, stream: u64, parameters: &[u64]) -> u32 {
    let pointers: Vec<u64> = parameters.iter().map(|word| word as *const u64 as u64).collect();
    let list = pointers.as_ptr() as u64;
    cu("cuLaunchKernel", &[function, grid, 1, 1, block, 1, 1, 0, stream, list, 0])
}
