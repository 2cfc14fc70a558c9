//! Modules, libraries, and what is asked of functions and kernels.

use super::args::{In, Out, OutList, Text};
use super::enter::api;
use super::image::{Image, JitOptions, read_file};
use crate::driver::{Call, FunctionRef};
use crate::errors::{CuError, Outcome};

use FunctionRef::{Function, Kernel};

fn load(call: &Call, module: Out<u64>, image: &[u8], options: JitOptions) -> Outcome {
    module.check()?;
    options.check()?;
    module.set(call.module_load(image).map_err(|refusal| options.refuse(&refusal))?)
}

fn load_library(call: &Call, library: Out<u64>, image: &[u8], options: JitOptions) -> Outcome {
    library.check()?;
    options.check()?;
    library.set(call.library_load(image).map_err(|refusal| options.refuse(&refusal))?)
}

fn put_range(address: Out<u64>, bytes: Out<u64>, range: (u64, u64)) -> Outcome {
    address.set_if_wanted(range.0);
    bytes.set_if_wanted(range.1);
    Ok(())
}

fn put_parameter(offset: Out<u64>, size: Out<u64>, found: (u64, u64)) -> Outcome {
    offset.set(found.0)?;
    size.set_if_wanted(found.1);
    Ok(())
}

/// CU_MODULE_LAZY_LOADING.
const LAZY_LOADING: u32 = 2;
/// CU_FUNCTION_LOADING_STATE_LOADED.
const LOADED: u32 = 1;

api! { TABLE;
    fn cuModuleLoad(module: Out<u64>, path: Text) |call| {
        load(call, module, &read_file(path)?, JitOptions::NONE)
    }
    fn cuModuleLoadData(module: Out<u64>, image: Image) |call| {
        load(call, module, &image.read()?, JitOptions::NONE)
    }
    fn cuModuleLoadDataEx(
        module: Out<u64>,
        image: Image,
        count: u32,
        names: In<u32>,
        values: In<u64>,
    ) |call| {
        load(call, module, &image.read()?, JitOptions { count, names, values })
    }
    fn cuModuleLoadFatBinary(module: Out<u64>, image: Image) |call| {
        load(call, module, &image.read()?, JitOptions::NONE)
    }
    fn cuModuleUnload(module: u64) |call| { call.module_unload(module) }
    fn cuModuleGetFunction(function: Out<u64>, module: u64, name: Text) |call| {
        function.check()?;
        function.set(call.module_function(module, &name.get()?)?)
    }
    fn cuModuleGetGlobal_v2(
        address: Out<u64>,
        bytes: Out<u64>,
        module: u64,
        name: Text,
    ) |call| { put_range(address, bytes, call.module_global(module, &name.get()?)?) }
    fn cuModuleGetFunctionCount(count: Out<u32>, module: u64) |call| {
        count.check()?;
        count.set(call.module_functions(module)?.len() as u32)
    }
    fn cuModuleEnumerateFunctions(functions: OutList<u64>, room: u32, module: u64) |call| {
        functions.fill(&call.module_functions(module)?, room as usize)
    }
    fn cuModuleGetLoadingMode(mode: Out<u32>) |_| { mode.set(LAZY_LOADING) }

    fn cuLibraryLoadData(
        library: Out<u64>,
        image: Image,
        names: In<u32>,
        values: In<u64>,
        count: u32,
        _library_names: In<u32>,
        _library_values: In<u64>,
        _library_count: u32,
    ) |call| {
        load_library(call, library, &image.read()?, JitOptions { count, names, values })
    }
    fn cuLibraryLoadFromFile(
        library: Out<u64>,
        path: Text,
        names: In<u32>,
        values: In<u64>,
        count: u32,
        _library_names: In<u32>,
        _library_values: In<u64>,
        _library_count: u32,
    ) |call| {
        load_library(call, library, &read_file(path)?, JitOptions { count, names, values })
    }
    fn cuLibraryUnload(library: u64) |call| { call.library_unload(library) }
    fn cuLibraryGetKernel(kernel: Out<u64>, library: u64, name: Text) |call| {
        kernel.check()?;
        kernel.set(call.library_kernel(library, &name.get()?)?)
    }
    fn cuLibraryGetKernelCount(count: Out<u32>, library: u64) |call| {
        count.check()?;
        count.set(call.library_kernels(library)?.len() as u32)
    }
    fn cuLibraryEnumerateKernels(kernels: OutList<u64>, room: u32, library: u64) |call| {
        kernels.fill(&call.library_kernels(library)?, room as usize)
    }
    fn cuLibraryGetModule(module: Out<u64>, library: u64) |call| {
        module.check()?;
        module.set(call.library_module(library)?)
    }
    fn cuLibraryGetGlobal(
        address: Out<u64>,
        bytes: Out<u64>,
        library: u64,
        name: Text,
    ) |call| { put_range(address, bytes, call.library_global(library, &name.get()?)?) }
    fn cuKernelGetFunction(function: Out<u64>, kernel: u64) |call| {
        function.check()?;
        function.set(call.kernel_function(kernel)?)
    }
    fn cuKernelGetLibrary(library: Out<u64>, kernel: u64) |call| {
        library.check()?;
        library.set(call.kernel_library(kernel)?)
    }

    fn cuFuncGetAttribute(value: Out<i32>, attribute: u32, function: u64) |call| {
        value.check()?;
        value.set(call.function_attribute(Function(function), attribute)?)
    }
    fn cuKernelGetAttribute(value: Out<i32>, attribute: u32, kernel: u64, device: i32) |call| {
        value.check()?;
        call.device(device)?;
        value.set(call.function_attribute(Kernel(kernel), attribute)?)
    }
    fn cuFuncSetAttribute(function: u64, attribute: u32, value: i32) |call| {
        call.set_function_attribute(Function(function), attribute, value)
    }
    fn cuKernelSetAttribute(attribute: u32, value: i32, kernel: u64, device: i32) |call| {
        call.device(device)?;
        call.set_function_attribute(Kernel(kernel), attribute, value)
    }
    fn cuFuncSetCacheConfig(function: u64, config: u32) |call| {
        check_config(config, 3)?;
        call.function_check(Function(function))
    }
    fn cuKernelSetCacheConfig(kernel: u64, config: u32, device: i32) |call| {
        check_config(config, 3)?;
        call.device(device)?;
        call.function_check(Kernel(kernel))
    }
    fn cuFuncSetSharedMemConfig(function: u64, config: u32) |call| {
        check_config(config, 2)?;
        call.function_check(Function(function))
    }
    fn cuFuncGetName(name: Out<u64>, function: u64) |call| {
        name.check()?;
        name.set(call.function_name(Function(function))?)
    }
    fn cuKernelGetName(name: Out<u64>, kernel: u64) |call| {
        name.check()?;
        name.set(call.function_name(Kernel(kernel))?)
    }
    fn cuFuncGetModule(module: Out<u64>, function: u64) |call| {
        module.check()?;
        module.set(call.function_module(function)?)
    }
    fn cuFuncGetParamInfo(
        function: u64,
        index: u64,
        offset: Out<u64>,
        size: Out<u64>,
    ) |call| {
        offset.check()?;
        put_parameter(offset, size, call.parameter(Function(function), index)?)
    }
    fn cuKernelGetParamInfo(
        kernel: u64,
        index: u64,
        offset: Out<u64>,
        size: Out<u64>,
    ) |call| {
        offset.check()?;
        put_parameter(offset, size, call.parameter(Kernel(kernel), index)?)
    }
    fn cuFuncGetParamCount(function: u64, count: Out<u64>) |call| {
        count.check()?;
        count.set(call.parameter_count(Function(function))?)
    }
    fn cuKernelGetParamCount(kernel: u64, count: Out<u64>) |call| {
        count.check()?;
        count.set(call.parameter_count(Kernel(kernel))?)
    }
    fn cuFuncLoad(function: u64) |call| { call.function_check(Function(function)) }
    fn cuFuncIsLoaded(state: Out<u32>, function: u64) |call| {
        state.check()?;
        call.function_check(Function(function))?;
        state.set(LOADED)
    }
}

fn check_config(config: u32, last: u32) -> Outcome {
    if config <= last { Ok(()) } else { Err(CuError::INVALID_VALUE) }
}
