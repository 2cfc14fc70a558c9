//! Launches, and a program written against cudarc's safe interface.

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

use crate::raw::*;

pub(super) fn find(name: &str) -> Option<fn()> {
    Some(match name {
        "kernel_adds" => adds,
        "packed_parameters" => packed,
        "module_variables" => variables,
        "library_kernels" => library,
        "occupancy" => occupancy,
        "kernel_out_of_bounds_poisons_its_context" => out_of_bounds,
        "kernel_waits_for_the_host" => waits_for_the_host,
        "kernel_waits_for_another_stream" => waits_for_another_stream,
        "peer_memory_needs_access" => peer_memory,
        "images" => images,
        "launch_with_attributes" => launch_with_attributes,
        "cudarc_safe_api" => safe_api,
        _ => return None,
    })
}

fn adds() {
    const COUNT: u64 = 1000;
    start();
    let (stream, function) = (stream(0), function(module(), "add"));
    let left: Vec<u32> = (0..COUNT as u32).collect();
    let right: Vec<u32> = left.iter().map(|value| value * 3).collect();
    let bytes = COUNT * 4;
    let (a, b, sum) = (device(bytes), device(bytes), device(bytes));
    ok("cuMemcpyHtoDAsync_v2", &[a, left.as_ptr() as u64, bytes, stream]);
    ok("cuMemcpyHtoDAsync_v2", &[b, right.as_ptr() as u64, bytes, stream]);
    assert_eq!(launch(function, 8, 128, stream, &[sum, a, b, COUNT]), 0);
    let mut result = vec![0u32; COUNT as usize];
    ok("cuMemcpyDtoHAsync_v2", &[result.as_mut_ptr() as u64, sum, bytes, stream]);
    ok("cuStreamSynchronize", &[stream]);
    assert!(result.iter().enumerate().all(|(index, value)| *value == index as u32 * 4));
    println!("ok");
}

fn packed() {
    start();
    let (function, out) = (function(module(), "put"), device(4));
    let block = [42u64, out];
    let size = 16u64;
    let extra = [1, block.as_ptr() as u64, 2, &raw const size as u64, 0];
    let list = extra.as_ptr() as u64;
    ok("cuLaunchKernel", &[function, 1, 1, 1, 1, 1, 1, 0, 0, 0, list]);
    let mut result = 0u32;
    ok("cuMemcpyDtoH_v2", &[&raw mut result as u64, out, 4]);
    println!("{result}");
}

fn global(module: u64) -> u64 {
    let mut size = 0u64;
    let address = {
        let mut address = 0u64;
        let out = [&raw mut address as u64, &raw mut size as u64];
        ok("cuModuleGetGlobal_v2", &[out[0], out[1], module, c"counter".as_ptr() as u64]);
        address
    };
    assert_eq!(size, 4);
    address
}

fn value(address: u64) -> u32 {
    let mut value = 0u32;
    ok("cuMemcpyDtoH_v2", &[&raw mut value as u64, address, 4]);
    value
}

fn variables() {
    start();
    let module = module();
    let counter = global(module);
    let before = value(counter);
    assert_eq!(launch(function(module, "increment"), 2, 32, 0, &[]), 0);
    println!("{before} {}", value(counter));
    ok("cuModuleUnload", &[module]);
    assert_eq!(cu("cuModuleUnload", &[module]), 400);
}

fn library() {
    ok("cuInit", &[0]);
    let text = std::ffi::CString::new(include_str!("../../../testdata/driver.ptx")).unwrap();
    let library = make("cuLibraryLoadData", &[text.as_ptr() as u64, 0, 0, 0, 0, 0, 0]);
    let kernel = make("cuLibraryGetKernel", &[library, c"put".as_ptr() as u64]);
    assert_eq!(make("cuLibraryGetKernel", &[library, c"put".as_ptr() as u64]), kernel);
    let name = make("cuKernelGetName", &[kernel]);
    // SAFETY: a terminated text of the driver.
    let name = unsafe { std::ffi::CStr::from_ptr(name as *const libc::c_char) };
    let (mut offset, mut size, mut count) = (0u64, 0u64, 0u64);
    let out = [&raw mut offset as u64, &raw mut size as u64];
    assert_eq!(cu("cuKernelGetParamInfo", &[kernel, 1, out[0], out[1]]), 201);
    start();
    ok("cuKernelGetParamInfo", &[kernel, 1, out[0], out[1]]);
    assert_eq!((offset, size), (8, 8));
    assert_eq!(cu("cuKernelGetParamInfo", &[kernel, 2, out[0], out[1]]), 1);
    ok("cuKernelGetParamCount", &[kernel, &raw mut count as u64]);
    assert_eq!(cu("cuFuncGetParamInfo", &[kernel, 0, out[0], out[1]]), 400, "no function");
    // A kernel is loaded into a context when it is used there.
    let word = device(4);
    assert_eq!(launch(kernel, 1, 1, 0, &[12345, word]), 0);
    let function = make("cuKernelGetFunction", &[kernel]);
    let module = make("cuLibraryGetModule", &[library]);
    assert_eq!(make("cuFuncGetModule", &[function]), module);
    println!("{} {count} {} {}", name.to_str().unwrap(), value(word), value(global(module)));
    ok("cuLibraryUnload", &[library]);
    assert_eq!(launch(kernel, 1, 1, 0, &[1, word]), 400);
}

fn occupancy() {
    start();
    let function = function(module(), "add");
    let (mut blocks, mut size) = (0i32, 0i32);
    let out = [&raw mut blocks as u64, &raw mut size as u64];
    ok("cuOccupancyMaxActiveBlocksPerMultiprocessor", &[out[0], function, 256, 0]);
    assert_eq!(blocks, 8);
    ok("cuOccupancyMaxPotentialBlockSize", &[out[0], out[1], function, 0, 0, 0]);
    assert_eq!((blocks, size), (264, 1024));
    let threads = {
        let mut value = 0i32;
        ok("cuFuncGetAttribute", &[&raw mut value as u64, 0, function]);
        value
    };
    assert_eq!(threads, 1024);
    println!("ok");
}

fn out_of_bounds() {
    start();
    let (function, word) = (function(module(), "put"), device(4));
    let submitted = launch(function, 1, 1, 0, &[1, word + 4]);
    let codes = [
        cu("cuCtxSynchronize", &[]),
        cu("cuMemsetD32_v2", &[word, 1, 1]),
        cu("cuStreamSynchronize", &[0]),
    ];
    // Another context is not affected.
    make("cuCtxCreate_v2", &[0, 0]);
    let other = device(4);
    println!("{submitted} {} {} {} {}", codes[0], codes[1], codes[2], value(other));
}

fn waits_for_the_host() {
    start();
    let stream = stream(NON_BLOCKING);
    let (function, flag, result) = (function(module(), "await"), pinned(0), pinned(0));
    assert_eq!(launch(function, 1, 1, stream, &[flag, result]), 0);
    assert_eq!(cu("cuStreamQuery", &[stream]), 600);
    write(flag, 9);
    ok("cuStreamSynchronize", &[stream]);
    println!("{}", read(result));
}

fn waits_for_another_stream() {
    start();
    let (waiter, writer) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (function, flag, result) = (function(module(), "await"), device(4), pinned(0));
    assert_eq!(launch(function, 1, 1, waiter, &[flag, result]), 0);
    fill(flag, 9, writer);
    // The two streams make progress beside each other, as kernels on a device do.
    ok("cuStreamSynchronize", &[waiter]);
    println!("{}", read(result));
}

fn peer_memory() {
    ok("cuInit", &[0]);
    let there = make("cuCtxCreate_v2", &[0, 1]);
    let word = device(4);
    make("cuCtxCreate_v2", &[0, 0]);
    assert_eq!(launch(function(module(), "put"), 1, 1, 0, &[1, word]), 0);
    let refused = cu("cuCtxSynchronize", &[]);
    let here = make("cuCtxCreate_v2", &[0, 0]);
    ok("cuCtxEnablePeerAccess", &[there, 0]);
    assert_eq!(cu("cuCtxEnablePeerAccess", &[there, 0]), 704);
    assert_eq!(launch(function(module(), "put"), 1, 1, 0, &[3, word]), 0);
    let copy = device(4);
    ok("cuMemcpyPeer", &[copy, here, word, there, 4]);
    assert_eq!(value(copy), 3);
    println!("{refused} ok");
}

/// A fat binary as compilers write it: a header, and one entry of uncompressed PTX.
fn fat_binary(ptx: &str) -> Vec<u8> {
    let mut entry = vec![0u8; 64];
    entry[0] = 1;
    entry[2..4].copy_from_slice(&0x101u16.to_le_bytes());
    entry[4..8].copy_from_slice(&64u32.to_le_bytes());
    entry[8..16].copy_from_slice(&(ptx.len() as u64 + 1).to_le_bytes());
    entry.extend(ptx.bytes());
    entry.push(0);
    let mut image = 0xBA55_ED50u32.to_le_bytes().to_vec();
    image.extend([1, 0, 16, 0]);
    image.extend((entry.len() as u64).to_le_bytes());
    image.extend(entry);
    image
}

fn images() {
    start();
    let image = fat_binary(include_str!("../../../testdata/driver.ptx"));
    let wrapper = [0x1_4662_43b1u64, image.as_ptr() as u64, 0];
    let file = std::env::temp_dir().join(format!("streamsan-sim-{}.ptx", std::process::id()));
    std::fs::write(&file, include_str!("../../../testdata/driver.ptx")).unwrap();
    let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
    let modules = [
        make("cuModuleLoadData", &[image.as_ptr() as u64]),
        make("cuModuleLoadFatBinary", &[wrapper.as_ptr() as u64]),
        make("cuModuleLoad", &[path.as_ptr() as u64]),
    ];
    std::fs::remove_file(&file).unwrap();
    for module in modules {
        let word = device(4);
        assert_eq!(launch(function(module, "put"), 1, 1, 0, &[6, word]), 0);
        assert_eq!(value(word), 6);
    }
    // The reason of a refusal is written to the log, cut to its size.
    let mut log = [1u8; 24];
    let options = [5u32, 6];
    let values = [log.as_mut_ptr() as u64, 20];
    let mut module = 0u64;
    let arguments = [
        &raw mut module as u64,
        c".version 7.0 .target sm_70 .nonsense".as_ptr() as u64,
        2,
        options.as_ptr() as u64,
        values.as_ptr() as u64,
    ];
    assert_eq!(cu("cuModuleLoadDataEx", &arguments), 218);
    assert!(log.starts_with(b"PTX refused: line 1"), "{}", String::from_utf8_lossy(&log));
    assert_eq!(log[19..], [0, 1, 1, 1, 1]);
    println!("ok");
}

fn launch_with_attributes() {
    start();
    let (function, word) = (function(module(), "put"), device(4));
    let parameters = [8u64, word];
    let pointers = parameters.each_ref().map(|word| word as *const u64 as u64);
    // CUlaunchAttribute: number, padding, value.
    let attribute = |id: u32, value: [u32; 3]| {
        let mut words = [0u32; 18];
        words[0] = id;
        words[2..5].copy_from_slice(&value);
        words
    };
    let stream = stream(0);
    let run = |attributes: &[[u32; 18]]| {
        // CUlaunchConfig: grid and block, shared memory and padding, stream, attributes, count.
        let config = [
            1 | 1 << 32,
            1 | 1 << 32,
            1 | 1 << 32,
            0,
            stream,
            attributes.as_ptr() as u64,
            attributes.len() as u64,
        ];
        cu("cuLaunchKernelEx", &[config.as_ptr() as u64, function, pointers.as_ptr() as u64, 0])
    };
    let codes = [
        run(&[]),
        run(&[attribute(2, [1, 0, 0]), attribute(4, [1, 1, 1]), attribute(8, [0; 3])]),
        run(&[attribute(4, [2, 1, 1])]),
        run(&[attribute(7, [0; 3])]),
        run(&[attribute(99, [0; 3])]),
    ];
    assert_eq!(value(word), 8);
    println!("{} {} {} {} {}", codes[0], codes[1], codes[2], codes[3], codes[4]);
}

/// cudarc inserts the event waits that its types call for, so every policy has one answer.
fn safe_api() {
    let context = CudaContext::new(0).unwrap();
    let (first, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let module =
        context.load_module(Ptx::from_src(include_str!("../../../testdata/driver.ptx"))).unwrap();
    let add = module.load_function("add").unwrap();
    let host: Vec<u32> = (0..4096).collect();
    let left = first.clone_htod(&host).unwrap();
    let right = second.clone_htod(&host).unwrap();
    let mut sum = second.alloc_zeros::<u32>(host.len()).unwrap();
    let count = host.len() as u32;
    let mut launch = second.launch_builder(&add);
    launch.arg(&mut sum).arg(&left).arg(&right).arg(&count);
    // SAFETY: the parameters are those of the kernel, and the grid covers the slices.
    unsafe { launch.launch(LaunchConfig::for_num_elems(count)) }.unwrap();
    let back = first.clone_dtoh(&sum).unwrap();
    first.synchronize().unwrap();
    assert!(back.iter().enumerate().all(|(index, value)| *value == index as u32 * 2));
    assert_eq!(context.name().unwrap(), "streamsan simulated GPU");
    println!("ok");
}
