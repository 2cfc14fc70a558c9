//! Kernels from PTX text.

use std::ffi::{CString, c_void};

use cudarc::driver::{result, sys};

use crate::{DeviceRange, Failure, Stream};

/// Threads in a block of every launch here.
const BLOCK: u32 = 64;

/// A loaded module.
#[derive(Debug)]
pub struct Module(sys::CUmodule);

/// A kernel of a loaded module.
#[derive(Clone, Copy, Debug)]
pub struct Kernel(sys::CUfunction);

// SAFETY: the driver API takes function handles from any host thread.
unsafe impl Send for Kernel {}
// SAFETY: as above; the handle is never dereferenced on the host.
unsafe impl Sync for Kernel {}

/// One kernel argument.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    /// Where a range of device memory starts.
    Pointer(DeviceRange),
    /// A 32-bit value.
    Word(u32),
}

impl Module {
    /// Loads a module from PTX text.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    ///
    /// # Panics
    /// If the text holds a NUL.
    pub fn load(ptx: &str) -> Result<Self, Failure> {
        let image = CString::new(ptx).expect("PTX text holds no NUL");
        // SAFETY: the image is NUL-terminated text that outlives the call.
        Ok(Self(unsafe { result::module::load_data(image.as_ptr().cast::<c_void>()) }?))
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Failure::Driver`] when the module has none.
    ///
    /// # Panics
    /// If the name holds a NUL.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Failure> {
        let name = CString::new(name).expect("a kernel name holds no NUL");
        // SAFETY: the module is loaded.
        Ok(Kernel(unsafe { result::module::get_function(self.0, name) }?))
    }

    /// Unloads the module.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn unload(self) -> Result<(), Failure> {
        // SAFETY: loaded once, taken here, so unloaded once; the programs launch nothing after.
        Ok(unsafe { result::module::unload(self.0) }?)
    }
}

impl Kernel {
    /// Launches at least `threads` threads in `stream`, in blocks of 64.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn launch(&self, threads: u32, stream: &Stream, arguments: &[Arg]) -> Result<(), Failure> {
        self.launch_rows(threads, 1, stream, arguments)
    }

    /// Launches `rows` rows of at least `threads` threads, in blocks of 64.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn launch_rows(
        &self,
        threads: u32,
        rows: u32,
        stream: &Stream,
        arguments: &[Arg],
    ) -> Result<(), Failure> {
        // The driver reads 4 or 8 bytes of each slot, as the parameter's type says.
        let mut slots: Vec<u64> = arguments
            .iter()
            .map(|argument| match argument {
                Arg::Pointer(range) => range.address(),
                Arg::Word(word) => u64::from(*word),
            })
            .collect();
        let mut pointers: Vec<*mut c_void> =
            slots.iter_mut().map(|slot| std::ptr::from_mut(slot).cast::<c_void>()).collect();
        let grid = (threads.div_ceil(BLOCK), rows, 1);
        // SAFETY: the kernel is loaded, and each program passes the parameters that its PTX names;
        // the driver copies the arguments before it returns.
        let launched = unsafe {
            result::launch_kernel(self.0, grid, (BLOCK, 1, 1), 0, stream.raw(), &mut pointers)
        };
        Ok(launched?)
    }
}
