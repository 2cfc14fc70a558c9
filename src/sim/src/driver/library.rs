//! Libraries: code that belongs to no context and becomes a module in each context that uses it.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;

use super::function::{Configured, name_of};
use super::image::{Code, Refusal, compile};
use super::sim::Call;
use super::state::Driver;
use crate::errors::{CuError, Outcome};
use streamsan_interp::KernelId;

/// A loaded library.
#[derive(Debug)]
pub(crate) struct Library {
    pub(super) code: Code,
    /// Modules by context.
    pub(super) modules: BTreeMap<u64, u64>,
    /// Kernels given out, by their number in the program.
    kernels: BTreeMap<u32, u64>,
}

/// A kernel of a library.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(super) library: u64,
    pub(super) kernel: KernelId,
    pub(super) name: CString,
    pub(super) code: Code,
    pub(super) configured: Configured,
}

impl Driver {
    /// The module of a library in the given context, loaded on first use.
    fn library_module(&mut self, handle: u64, context: u64) -> Outcome<u64> {
        let library = self.libraries.get(handle).ok_or(CuError::INVALID_HANDLE)?;
        if let Some(module) = library.modules.get(&context) {
            return Ok(*module);
        }
        let code = library.code.clone();
        let module = self.load(context, code, Some(handle))?;
        if let Some(library) = self.libraries.get_mut(handle) {
            library.modules.insert(context, module);
        }
        Ok(module)
    }

    fn kernel_of(&mut self, handle: u64, name: &str) -> Outcome<u64> {
        let library = self.libraries.get(handle).ok_or(CuError::INVALID_HANDLE)?;
        let kernel = library.code.program.kernel(name).ok_or(CuError::NOT_FOUND)?;
        if let Some(found) = library.kernels.get(&kernel.0) {
            return Ok(*found);
        }
        let code = library.code.clone();
        let info = code.program.kernel_info(kernel);
        let (name, configured) = (name_of(&info.name), Configured::new(info));
        let made = self.kernels.insert(Kernel { library: handle, kernel, name, code, configured });
        if let Some(library) = self.libraries.get_mut(handle) {
            library.kernels.insert(kernel.0, made);
        }
        Ok(made)
    }

    /// The kernel of a library that a function is in its context, 0 for a function of a module that
    /// was loaded by itself.
    pub(super) fn kernel_of_function(&mut self, handle: u64) -> Outcome<u64> {
        let function = self.functions.get(handle).ok_or(CuError::INVALID_HANDLE)?;
        let module = self.modules.get(function.module).ok_or(CuError::INVALID_HANDLE)?;
        let Some(library) = module.library else { return Ok(0) };
        let name = function.code.program.kernel_info(function.kernel).name.clone();
        self.kernel_of(library, &name)
    }

    /// The function that a kernel is in a context.
    pub(super) fn kernel_function(&mut self, handle: u64, context: u64) -> Outcome<u64> {
        let kernel = self.kernels.get(handle).ok_or(CuError::INVALID_HANDLE)?;
        let (library, configured) = (kernel.library, kernel.configured);
        let name = kernel.code.program.kernel_info(kernel.kernel).name.clone();
        let module = self.library_module(library, context)?;
        let function = self.function_of(module, &name)?;
        if let Some(entry) = self.functions.get_mut(function) {
            entry.configured = configured;
        }
        Ok(function)
    }
}

impl Call {
    pub(crate) fn library_load(&self, image: &[u8]) -> Result<u64, Refusal> {
        let code = compile(image)?;
        let (modules, kernels) = (BTreeMap::new(), BTreeMap::new());
        Ok(self.lock().libraries.insert(Library { code, modules, kernels }))
    }

    pub(crate) fn library_unload(&self, handle: u64) -> Outcome {
        let driver = self.lock();
        driver.libraries.get(handle).ok_or(CuError::INVALID_HANDLE)?;
        let targets = driver.all_targets();
        let mut driver = self.sim.wait(driver, &targets);
        let library = driver.libraries.remove(handle).ok_or(CuError::INVALID_HANDLE)?;
        for module in library.modules.into_values() {
            driver.unload(module);
        }
        driver.kernels.remove_where(|kernel| kernel.library == handle);
        Ok(())
    }

    pub(crate) fn library_kernel(&self, handle: u64, name: &str) -> Outcome<u64> {
        self.lock().kernel_of(handle, name)
    }

    /// Every kernel of a library, in the order of the text.
    pub(crate) fn library_kernels(&self, handle: u64) -> Outcome<Vec<u64>> {
        let mut driver = self.lock();
        let library = driver.libraries.get(handle).ok_or(CuError::INVALID_HANDLE)?;
        let program = Arc::clone(&library.code.program);
        program.kernels().iter().map(|info| driver.kernel_of(handle, &info.name)).collect()
    }

    pub(crate) fn library_module(&self, handle: u64) -> Outcome<u64> {
        let mut driver = self.lock();
        let context = driver.current()?;
        driver.library_module(handle, context)
    }

    pub(crate) fn library_global(&self, handle: u64, name: &str) -> Outcome<(u64, u64)> {
        let mut driver = self.lock();
        let context = driver.current()?;
        let module = driver.library_module(handle, context)?;
        driver.global_of(module, name)
    }

    pub(crate) fn kernel_function(&self, handle: u64) -> Outcome<u64> {
        let mut driver = self.lock();
        let context = driver.current()?;
        driver.kernel_function(handle, context)
    }

    pub(crate) fn kernel_library(&self, handle: u64) -> Outcome<u64> {
        let driver = self.lock();
        driver.kernels.get(handle).map(|kernel| kernel.library).ok_or(CuError::INVALID_HANDLE)
    }
}
