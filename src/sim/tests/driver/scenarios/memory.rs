//! Allocation, copies of more than one dimension, and what is asked of pointers.

use crate::raw::*;

pub(super) fn find(name: &str) -> Option<fn()> {
    Some(match name {
        "freed_block_is_reused_when_its_free_has_run" => reuse,
        "free_async_takes_plain_memory_when_it_runs" => free_async_of_plain_memory,
        "copies_of_two_and_three_dimensions" => dimensions,
        "memsets_of_every_width" => memsets,
        "pointer_attributes" => attributes,
        "registered_memory" => registered,
        "managed_memory" => managed,
        "pool_attributes_and_trim" => pools,
        _ => return None,
    })
}

fn reuse() {
    start();
    let (first, second) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let allocate = |stream: u64| make("cuMemAllocAsync", &[4096, stream]);
    let a = allocate(first);
    ok("cuMemFreeAsync", &[a, first]);
    let again = allocate(first);
    let same = if again == a { "same-stream" } else { "same-stream-fresh" };
    ok("cuMemFreeAsync", &[again, first]);
    let elsewhere = allocate(second);
    let other = if elsewhere == a { "other-reused" } else { "other-fresh" };
    ok("cuMemFreeAsync", &[elsewhere, second]);
    ok("cuCtxSynchronize", &[]);
    let last = allocate(second);
    let then = if last == elsewhere || last == a { "then-reused" } else { "then-fresh" };
    ok("cuMemFreeAsync", &[last, second]);
    assert_eq!(cu("cuMemFreeAsync", &[last, second]), 1, "freed twice");
    println!("{same} {other} {then}");
}

fn free_async_of_plain_memory() {
    start();
    let stream = stream(0);
    let word = device(4);
    let (mut free, mut total, mut after) = (0u64, 0u64, 0u64);
    ok("cuMemGetInfo_v2", &[&raw mut free as u64, &raw mut total as u64]);
    let result = pinned(0);
    fill(word, 1, stream);
    fetch(result, word, stream);
    ok("cuMemFreeAsync", &[word, stream]);
    ok("cuMemsetD32Async", &[word, 1, 1, stream]);
    ok("cuStreamSynchronize", &[stream]);
    ok("cuMemGetInfo_v2", &[&raw mut after as u64, &raw mut total as u64]);
    assert_eq!(cu("cuMemsetD32_v2", &[word, 1, 1]), 1, "submitted after a synchronisation");
    println!("{} {}", read(result), u32::from(after > free));
}

/// Words of CUDA_MEMCPY2D for a copy from the host.
fn upload_2d(from: u64, from_pitch: u64, to: u64, to_pitch: u64, x: u64, y: u64) -> [u64; 16] {
    [0, 0, 1, from, 0, 0, from_pitch, x, y, 2, 0, to, 0, to_pitch, 8, 3]
}

fn dimensions() {
    start();
    let stream = stream(0);
    let mut made = [0u64; 2];
    let out = [&raw mut made[0] as u64, &raw mut made[1] as u64];
    ok("cuMemAllocPitch_v2", &[out[0], out[1], 20, 5, 4]);
    let [image, pitch] = made;
    assert!(pitch >= 20 && pitch.is_multiple_of(512));
    let source: Vec<u8> = (1..=24).collect();
    let copy = upload_2d(source.as_ptr() as u64, 8, image, pitch, 4, 1);
    ok("cuMemcpy2DAsync_v2", &[copy.as_ptr() as u64, stream]);
    let mut back = vec![0u8; 24];
    let down = [4, 1, 2, 0, image, 0, pitch, 0, 0, 1, back.as_mut_ptr() as u64, 0, 0, 8, 8, 3];
    ok("cuMemcpy2D_v2", &[down.as_ptr() as u64]);
    assert_eq!(back, source);
    print!("2d");

    let volume = device(1024);
    let source: Vec<u8> = (0..24).collect();
    // From 2 slices of 3 rows of 4 bytes into slices of 5 rows of 16 bytes, one slice in.
    let mut up = vec![0, 0, 0, 0, 1, source.as_ptr() as u64, 0, 0, 0, 4, 3];
    up.extend([0, 0, 1, 0, 2, 0, volume, 0, 0, 16, 5]);
    up.extend([4, 3, 2]);
    ok("cuMemcpy3DAsync_v2", &[up.as_ptr() as u64, stream]);
    ok("cuStreamSynchronize", &[stream]);
    let mut all = vec![0xeeu8; 256];
    ok("cuMemcpyDtoH_v2", &[all.as_mut_ptr() as u64, volume, 256]);
    for (index, byte) in source.iter().enumerate() {
        let (slice, row, column) = (1 + index / 12, index / 4 % 3, index % 4);
        assert_eq!(all[slice * 80 + row * 16 + column], *byte, "byte {index}");
    }
    println!(" 3d");
}

fn memsets() {
    start();
    let memory = device(64);
    let bytes = || {
        let mut all = [0u8; 16];
        ok("cuMemcpyDtoH_v2", &[all.as_mut_ptr() as u64, memory, 16]);
        all
    };
    ok("cuMemsetD8_v2", &[memory, 0x11, 16]);
    ok("cuMemsetD16_v2", &[memory + 2, 0x2233, 2]);
    ok("cuMemsetD32_v2", &[memory + 8, 0x4455_6677, 1]);
    assert_eq!(
        bytes(),
        [
            0x11, 0x11, 0x33, 0x22, 0x33, 0x22, 0x11, 0x11, 0x77, 0x66, 0x55, 0x44, 0x11, 0x11,
            0x11, 0x11
        ]
    );
    ok("cuMemsetD2D8_v2", &[memory, 8, 0xaa, 2, 2]);
    ok("cuMemsetD2D16Async", &[memory + 2, 8, 0xbbcc, 1, 2, 0]);
    ok("cuMemsetD2D32_v2", &[memory + 4, 8, 0x0102_0304, 1, 2]);
    let row = [0xaa, 0xaa, 0xcc, 0xbb, 4, 3, 2, 1];
    assert_eq!(bytes(), [row, row].concat()[..]);
    println!("ok");
}

fn attribute(number: u64, address: u64) -> u64 {
    let mut value = 0u64;
    ok("cuPointerGetAttribute", &[&raw mut value as u64, number, address]);
    value
}

fn attributes() {
    start();
    let context = make("cuCtxGetCurrent", &[]);
    let (plain, host) = (device(100), pinned(0));
    let pooled = make("cuMemAllocAsync", &[100, 0]);
    let managed = make("cuMemAllocManaged", &[100, 1]);
    for (address, kind, of, is_managed) in
        [(plain, 2, context, 0), (host, 1, context, 0), (pooled, 2, 0, 0), (managed, 2, context, 1)]
    {
        assert_eq!(attribute(2, address + 7), kind);
        assert_eq!(attribute(1, address), of);
        assert_eq!(attribute(8, address), is_managed);
        assert_eq!(attribute(11, address + 7), address);
        assert_eq!(attribute(3, address + 7), address + 7);
        assert_eq!(attribute(9, address), 0);
    }
    assert_eq!(attribute(12, plain), 100);
    assert_ne!(attribute(7, plain), attribute(7, host));
    let numbers = [2u32, 8, 12];
    let mut values = [9u64; 3];
    let slots: Vec<u64> = values.iter_mut().map(|value| value as *mut u64 as u64).collect();
    let local = 0u32;
    let all = [3, numbers.as_ptr() as u64, slots.as_ptr() as u64, &raw const local as u64];
    ok("cuPointerGetAttributes", &all);
    assert_eq!(values.map(|value| value as u32), [0, 0, 9], "a range is left as it was");
    println!("ok");
}

fn registered() {
    start();
    let memory = Box::new([0u32; 1024]);
    let address = memory.as_ptr() as u64;
    ok("cuMemHostRegister_v2", &[address, 4096, 0]);
    assert_eq!(attribute(2, address), 1);
    let (stream, word) = (stream(0), device(4));
    fill(word, 1, stream);
    fetch(address + 8, word, stream);
    // Waits for what may still write to it.
    ok("cuMemHostUnregister", &[address]);
    println!("{} {}", read(address + 8), cu("cuMemHostUnregister", &[address]));
}

fn managed() {
    start();
    let stream = stream(0);
    let word = make("cuMemAllocManaged", &[4096, 1]);
    write(word, 1);
    ok("cuMemPrefetchAsync", &[word, 4096, 0, stream]);
    ok("cuMemAdvise", &[word, 4096, 1, 0]);
    ok("cuStreamAttachMemAsync", &[stream, word, 0, 1]);
    fill(word, 5, stream);
    ok("cuStreamSynchronize", &[stream]);
    println!("{}", read(word));
}

fn pools() {
    start();
    let mut pool = 0u64;
    ok("cuDeviceGetDefaultMemPool", &[&raw mut pool as u64, 0]);
    assert_eq!(make("cuDeviceGetMemPool", &[0]), pool);
    let get = |pool: u64, number: u64| {
        let mut value = 0u64;
        ok("cuMemPoolGetAttribute", &[pool, number, &raw mut value as u64]);
        value
    };
    assert_eq!((get(pool, 2), get(pool, 7)), (1, 0));
    // CUmemPoolProps: pinned, no handles, device 0.
    let mut properties = [0u32; 22];
    (properties[0], properties[2]) = (1, 1);
    let own = make("cuMemPoolCreate", &[properties.as_ptr() as u64]);
    let block = make("cuMemAllocFromPoolAsync", &[1000, own, 0]);
    assert_eq!(attribute(17, block), own);
    assert_eq!((get(own, 7), get(own, 5)), (1000, 32 << 20));
    ok("cuMemFreeAsync", &[block, 0]);
    assert_eq!((get(own, 7), get(own, 5)), (0, 32 << 20));
    ok("cuMemPoolTrimTo", &[own, 0]);
    let policy = std::env::var("STREAMSAN_SIM_POLICY").unwrap();
    assert_eq!(
        get(own, 5),
        if policy == "lazy" { 32 << 20 } else { 0 },
        "the free has to run first"
    );
    ok("cuCtxSynchronize", &[]);
    ok("cuMemPoolTrimTo", &[own, 0]);
    assert_eq!(get(own, 5), 0);
    ok("cuDeviceSetMemPool", &[0, own]);
    assert_eq!(attribute(17, make("cuMemAllocAsync", &[8, 0])), own);
    ok("cuMemPoolDestroy", &[own]);
    assert_eq!(make("cuDeviceGetMemPool", &[0]), pool);
    assert_eq!(cu("cuMemPoolDestroy", &[pool]), 1, "the default pool stays");
    println!("ok");
}
