//! Modules: code loaded into one context, with its variables in that context's memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::function::Function;
use super::image::{Code, Refusal, compile};
use super::sim::Call;
use super::state::Driver;
use crate::errors::{CuError, Outcome};
use crate::memory::{Origin, store_bytes};

/// A loaded module.
#[derive(Debug)]
pub(crate) struct Module {
    pub(super) context: u64,
    pub(super) code: Code,
    /// Where each variable of the program lies.
    pub(super) globals: Arc<[u64]>,
    /// Functions given out, by kernel.
    pub(super) functions: BTreeMap<u32, u64>,
    /// The library that it is part of, which unloads it.
    pub(super) library: Option<u64>,
}

impl Driver {
    /// Loads code into a context, as a part of a library or by itself.
    pub(super) fn load(&mut self, context: u64, code: Code, library: Option<u64>) -> Outcome<u64> {
        let device = self.usable(context)?.device;
        let mut globals = Vec::new();
        for variable in code.program.globals() {
            let length = variable.size.max(1);
            globals.push(self.take(length, Origin::Global, context, device, 0)?);
        }
        for (index, start) in globals.iter().enumerate() {
            let bytes = code.program.initial_bytes(index, &globals);
            store_bytes(*start, &bytes);
        }
        let functions = BTreeMap::new();
        let globals = globals.into();
        Ok(self.modules.insert(Module { context, code, globals, functions, library }))
    }

    /// Takes a module and its functions out; its variables are freed with it.
    pub(super) fn unload(&mut self, handle: u64) {
        let Some(module) = self.modules.remove(handle) else { return };
        for function in module.functions.values() {
            self.functions.remove(*function);
        }
        for start in module.globals.iter() {
            if let Some(region) = self.map.at(*start).cloned() {
                self.discard(&region);
            }
        }
    }

    /// The function of a module with this name; the same handle each time.
    pub(super) fn function_of(&mut self, handle: u64, name: &str) -> Outcome<u64> {
        let module = self.modules.get(handle).ok_or(CuError::INVALID_HANDLE)?;
        let kernel = module.code.program.kernel(name).ok_or(CuError::NOT_FOUND)?;
        if let Some(function) = module.functions.get(&kernel.0) {
            return Ok(*function);
        }
        let function = Function::new(handle, module, kernel);
        let function = self.functions.insert(function);
        if let Some(module) = self.modules.get_mut(handle) {
            module.functions.insert(kernel.0, function);
        }
        Ok(function)
    }

    /// Address and bytes of a variable of a module.
    pub(super) fn global_of(&self, handle: u64, name: &str) -> Outcome<(u64, u64)> {
        let module = self.modules.get(handle).ok_or(CuError::INVALID_HANDLE)?;
        let globals = module.code.program.globals();
        let at = globals.iter().position(|global| global.name == name).ok_or(CuError::NOT_FOUND)?;
        Ok((module.globals[at], globals[at].size))
    }
}

impl Call {
    pub(crate) fn module_load(&self, image: &[u8]) -> Result<u64, Refusal> {
        let status = |status| Refusal { status, message: String::new() };
        let context = self.lock().current().map_err(status)?;
        let code = compile(image)?;
        self.lock().load(context, code, None).map_err(status)
    }

    /// `cuModuleUnload`: lets the work of its context finish first, whose kernels may use it.
    pub(crate) fn module_unload(&self, handle: u64) -> Outcome {
        let driver = self.lock();
        driver.current()?;
        let module = driver.modules.get(handle).filter(|module| module.library.is_none());
        let context = module.ok_or(CuError::INVALID_HANDLE)?.context;
        let targets = driver.context_targets(context);
        self.sim.wait(driver, &targets).unload(handle);
        Ok(())
    }

    pub(crate) fn module_function(&self, handle: u64, name: &str) -> Outcome<u64> {
        let mut driver = self.lock();
        driver.current()?;
        driver.function_of(handle, name)
    }

    pub(crate) fn module_global(&self, handle: u64, name: &str) -> Outcome<(u64, u64)> {
        let driver = self.lock();
        driver.current()?;
        driver.global_of(handle, name)
    }

    /// Every function of a module, in the order of the text.
    pub(crate) fn module_functions(&self, handle: u64) -> Outcome<Vec<u64>> {
        let mut driver = self.lock();
        driver.current()?;
        let module = driver.modules.get(handle).ok_or(CuError::INVALID_HANDLE)?;
        let program = Arc::clone(&module.code.program);
        program.kernels().iter().map(|info| driver.function_of(handle, &info.name)).collect()
    }
}
