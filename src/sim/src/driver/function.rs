//! Functions (a kernel in a context) and what can be asked of them and of library kernels.

use std::ffi::CString;
use std::sync::Arc;

use super::device::{
    BLOCKS_PER_MULTIPROCESSOR, DEFAULT_SHARED, MAX_DYNAMIC_SHARED, MULTIPROCESSORS,
    SHARED_PER_MULTIPROCESSOR, THREADS_PER_MULTIPROCESSOR,
};
use super::image::Code;
use super::module::Module;
use super::sim::Call;
use super::state::Driver;
use crate::errors::{CuError, Outcome};
use streamsan_interp::{KernelId, KernelInfo};

/// A kernel in a context.
#[derive(Debug)]
pub(crate) struct Function {
    pub(super) module: u64,
    pub(super) context: u64,
    pub(super) kernel: KernelId,
    name: CString,
    pub(super) code: Code,
    pub(super) globals: Arc<[u64]>,
    pub(super) configured: Configured,
}

/// The attributes that `cuFuncSetAttribute` sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Configured {
    /// Dynamic shared memory of a launch at most, in bytes.
    pub(super) dynamic_shared: i32,
    carveout: i32,
}

impl Configured {
    pub(super) fn new(info: &KernelInfo) -> Configured {
        let left = DEFAULT_SHARED.saturating_sub(info.static_shared);
        Configured { dynamic_shared: left as i32, carveout: -1 }
    }
}

/// A handle that names code: of a function, or of a library's kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FunctionRef {
    Function(u64),
    Kernel(u64),
}

/// A kernel's name for the program to read. PTX names hold no NUL.
pub(super) fn name_of(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

const LAST_ATTRIBUTE: u32 = 15;

impl Function {
    pub(super) fn new(module: u64, of: &Module, kernel: KernelId) -> Function {
        let info = of.code.program.kernel_info(kernel);
        Function {
            module,
            context: of.context,
            kernel,
            name: name_of(&info.name),
            configured: Configured::new(info),
            code: of.code.clone(),
            globals: Arc::clone(&of.globals),
        }
    }
}

/// The parts that both kinds of handle lead to.
struct Described<'a> {
    info: &'a KernelInfo,
    name: &'a CString,
    code: &'a Code,
    configured: Configured,
}

impl Driver {
    fn describe(&self, of: FunctionRef) -> Outcome<Described<'_>> {
        let found = match of {
            FunctionRef::Function(handle) => self.functions.get(handle).map(|function| {
                let info = function.code.program.kernel_info(function.kernel);
                (info, &function.name, &function.code, function.configured)
            }),
            FunctionRef::Kernel(handle) => self.kernels.get(handle).map(|kernel| {
                let info = kernel.code.program.kernel_info(kernel.kernel);
                (info, &kernel.name, &kernel.code, kernel.configured)
            }),
        };
        let (info, name, code, configured) = found.ok_or(CuError::INVALID_HANDLE)?;
        Ok(Described { info, name, code, configured })
    }

    fn configured(&mut self, of: FunctionRef) -> Option<&mut Configured> {
        match of {
            FunctionRef::Function(handle) => {
                self.functions.get_mut(handle).map(|function| &mut function.configured)
            }
            FunctionRef::Kernel(handle) => {
                self.kernels.get_mut(handle).map(|kernel| &mut kernel.configured)
            }
        }
    }

    /// A handle that occupancy and launches accept: a function, or a kernel cast to one.
    pub(super) fn launchable(&self, handle: u64) -> FunctionRef {
        if self.kernels.get(handle).is_some() {
            FunctionRef::Kernel(handle)
        } else {
            FunctionRef::Function(handle)
        }
    }
}

impl Call {
    pub(crate) fn function_attribute(&self, of: FunctionRef, attribute: u32) -> Outcome<i32> {
        let driver = self.lock();
        let described = driver.describe(of)?;
        let info = described.info;
        let globals = described.code.program.globals();
        let constant: u64 =
            globals.iter().filter(|global| global.constant).map(|global| global.size).sum();
        Ok(match attribute {
            0 => info.max_threads as i32,
            1 => info.static_shared as i32,
            2 => i32::try_from(constant).unwrap_or(i32::MAX),
            3 => info.local as i32,
            4 => info.regs as i32,
            5 => described.code.version,
            6 => 90,
            8 => described.configured.dynamic_shared,
            9 => described.configured.carveout,
            7 | 10..=LAST_ATTRIBUTE => 0,
            _ => return Err(CuError::INVALID_VALUE),
        })
    }

    pub(crate) fn set_function_attribute(
        &self,
        of: FunctionRef,
        attribute: u32,
        value: i32,
    ) -> Outcome {
        let mut driver = self.lock();
        let shared = driver.describe(of)?.info.static_shared as i32;
        let configured = driver.configured(of).ok_or(CuError::INVALID_HANDLE)?;
        match attribute {
            8 if (0..=MAX_DYNAMIC_SHARED - shared).contains(&value) => {
                configured.dynamic_shared = value;
            }
            9 if (-1..=100).contains(&value) => configured.carveout = value,
            10..=LAST_ATTRIBUTE => {}
            _ => return Err(CuError::INVALID_VALUE),
        }
        Ok(())
    }

    /// Address of the name, which lives as long as the function does.
    pub(crate) fn function_name(&self, of: FunctionRef) -> Outcome<u64> {
        Ok(self.lock().describe(of)?.name.as_ptr() as u64)
    }

    pub(crate) fn function_module(&self, handle: u64) -> Outcome<u64> {
        let driver = self.lock();
        driver.functions.get(handle).map(|found| found.module).ok_or(CuError::INVALID_HANDLE)
    }

    /// Offset and bytes of a parameter in the parameter block.
    pub(crate) fn parameter(&self, of: FunctionRef, index: u64) -> Outcome<(u64, u64)> {
        let driver = self.lock();
        driver.current()?;
        let params = &driver.describe(of)?.info.params;
        let found = usize::try_from(index).ok().and_then(|index| params.get(index));
        let (offset, size) = found.ok_or(CuError::INVALID_VALUE)?;
        Ok((u64::from(*offset), u64::from(*size)))
    }

    pub(crate) fn parameter_count(&self, of: FunctionRef) -> Outcome<u64> {
        Ok(self.lock().describe(of)?.info.params.len() as u64)
    }

    pub(crate) fn function_check(&self, of: FunctionRef) -> Outcome {
        self.lock().describe(of).map(|_| ())
    }

    /// Blocks of a function that fit on one multiprocessor.
    pub(crate) fn occupancy(&self, handle: u64, block: i32, dynamic: u64) -> Outcome<i32> {
        let driver = self.lock();
        driver.current()?;
        let info = driver.describe(driver.launchable(handle))?.info;
        let threads = u32::try_from(block).ok().filter(|threads| *threads > 0);
        let threads = threads.ok_or(CuError::INVALID_VALUE)?;
        Ok(blocks_that_fit(info, threads, dynamic))
    }

    /// Blocks on the whole device, and the dynamic shared memory left to each of `blocks` blocks
    /// on one multiprocessor.
    pub(crate) fn available_dynamic_shared(&self, handle: u64, blocks: i32) -> Outcome<u64> {
        let driver = self.lock();
        driver.current()?;
        let info = driver.describe(driver.launchable(handle))?.info;
        let blocks = u64::try_from(blocks).ok().filter(|blocks| *blocks > 0);
        let share = SHARED_PER_MULTIPROCESSOR / blocks.ok_or(CuError::INVALID_VALUE)?;
        let share = share.min(u64::from(DEFAULT_SHARED));
        Ok(share.saturating_sub(u64::from(info.static_shared)))
    }

    /// Threads of a block at most for a function.
    pub(crate) fn max_threads(&self, handle: u64) -> Outcome<i32> {
        let driver = self.lock();
        driver.current()?;
        Ok(driver.describe(driver.launchable(handle))?.info.max_threads as i32)
    }

    pub(crate) fn multiprocessors(&self) -> i32 {
        MULTIPROCESSORS as i32
    }
}

/// Blocks of `threads` threads that fit on one multiprocessor.
pub(super) fn blocks_that_fit(info: &KernelInfo, threads: u32, dynamic: u64) -> i32 {
    if threads == 0 || threads > info.max_threads {
        return 0;
    }
    let by_threads = THREADS_PER_MULTIPROCESSOR / threads.next_multiple_of(32);
    let shared = dynamic.saturating_add(u64::from(info.static_shared));
    let by_shared = SHARED_PER_MULTIPROCESSOR.checked_div(shared).unwrap_or(u64::MAX);
    let fit = u64::from(by_threads.min(BLOCKS_PER_MULTIPROCESSOR)).min(by_shared);
    fit as i32
}
