//! Kernels from PTX text.

use std::ffi::{CString, c_void};
use std::ptr;

use cudarc::driver::{result, sys};

use crate::{DeviceRange, Failure, Stream};

/// Threads in a block of every launch here.
pub(crate) const BLOCK: u32 = 64;

/// A loaded module.
#[derive(Debug)]
pub struct Module(sys::CUmodule);

/// A loaded library: code that belongs to no context, as the CUDA runtime loads it since 12.0.
#[derive(Debug)]
pub struct Library(sys::CUlibrary);

/// A kernel of a loaded module or library.
#[derive(Clone, Copy, Debug)]
pub enum Kernel {
    /// A function of a module.
    OfModule(sys::CUfunction),
    /// A kernel of a library, which is launched as if it were a function.
    OfLibrary(sys::CUkernel),
}

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
        Ok(Kernel::OfModule(unsafe { result::module::get_function(self.0, name) }?))
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

impl Library {
    /// Loads a library from PTX text.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    ///
    /// # Panics
    /// If the text holds a NUL.
    pub fn load(ptx: &str) -> Result<Self, Failure> {
        let image = CString::new(ptx).expect("PTX text holds no NUL");
        let mut library = ptr::null_mut();
        // SAFETY: the image is NUL-terminated text that outlives the call, without options.
        let status = unsafe {
            sys::cuLibraryLoadData(
                &raw mut library,
                image.as_ptr().cast(),
                ptr::null_mut(),
                ptr::null_mut(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
                0,
            )
        };
        status.result()?;
        Ok(Self(library))
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Failure::Driver`] when the library has none.
    ///
    /// # Panics
    /// If the name holds a NUL.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Failure> {
        let name = CString::new(name).expect("a kernel name holds no NUL");
        let mut kernel = ptr::null_mut();
        // SAFETY: the library is loaded, the name outlives the call.
        unsafe { sys::cuLibraryGetKernel(&raw mut kernel, self.0, name.as_ptr()) }.result()?;
        Ok(Kernel::OfLibrary(kernel))
    }

    /// Unloads the library.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn unload(self) -> Result<(), Failure> {
        // SAFETY: loaded once, taken here, so unloaded once; the programs launch nothing after.
        Ok(unsafe { sys::cuLibraryUnload(self.0) }.result()?)
    }
}

/// The arguments of a launch or of a kernel node, each in a slot of its own: the driver reads 4 or 8
/// bytes of it, as the parameter's type says.
pub(crate) struct Slots {
    pointers: Vec<*mut c_void>,
    _slots: Vec<u64>,
}

impl Slots {
    pub(crate) fn new(arguments: &[Arg]) -> Self {
        let mut slots: Vec<u64> = arguments
            .iter()
            .map(|argument| match argument {
                Arg::Pointer(range) => range.address(),
                Arg::Word(word) => u64::from(*word),
            })
            .collect();
        let pointers = slots.iter_mut().map(|slot| ptr::from_mut(slot).cast::<c_void>()).collect();
        Self { pointers, _slots: slots }
    }

    pub(crate) fn pointers(&mut self) -> &mut [*mut c_void] {
        &mut self.pointers
    }
}

/// Blocks of at least `threads` threads in `rows` rows.
pub(crate) fn grid(threads: u32, rows: u32) -> [u32; 3] {
    [threads.div_ceil(BLOCK), rows, 1]
}

impl Kernel {
    /// The handle that launches take.
    fn launched(self) -> sys::CUfunction {
        match self {
            Self::OfModule(function) => function,
            Self::OfLibrary(kernel) => kernel.cast(),
        }
    }

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
        let mut slots = Slots::new(arguments);
        let (function, block) = (self.launched(), (BLOCK, 1, 1));
        let grid = grid(threads, rows).into();
        // SAFETY: the kernel is loaded, and each program passes the parameters that its PTX names;
        // the driver copies the arguments before it returns.
        let launched = unsafe {
            result::launch_kernel(function, grid, block, 0, stream.raw(), slots.pointers())
        };
        Ok(launched?)
    }
}
