//! Whether programs can run on the driver that the loader finds.

use std::ffi::c_int;

use cudarc::driver::{result, sys};

/// Loads the driver, initialises it and describes it with its first device.
///
/// # Errors
/// Why no program can run on it, for the user.
pub fn probe() -> Result<String, String> {
    // SAFETY: loads the driver's library as any CUDA program does; no symbol is used.
    if !unsafe { sys::is_culib_present() } {
        return Err("libcuda.so.1 is not found; NVIDIA's driver is not installed here".to_owned());
    }
    let name = |error: result::DriverError| {
        let name = error.error_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|_| format!("{:?}", error.0))
    };
    result::init().map_err(|error| format!("the driver does not start: {}", name(error)))?;
    let count = result::device::get_count().map_err(name)?;
    if count < 1 {
        return Err("the driver has no device".to_owned());
    }
    let device = result::device::get(0).map_err(name)?;
    let model = result::device::get_name(device).map_err(name)?;
    let mut version: c_int = 0;
    // SAFETY: the pointer is to a live integer.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(name)?;
    let others = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
    let (major, minor) = (version / 1000, version % 1000 / 10);
    Ok(format!("{model}{others}, driver for CUDA {major}.{minor}"))
}
