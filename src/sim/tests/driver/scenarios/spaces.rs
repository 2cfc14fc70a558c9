//! Arrays, and addresses mapped to physical memory.

use crate::raw::*;

pub(super) fn find(name: &str) -> Option<fn()> {
    Some(match name {
        "array_copies" => array_copies,
        "array_refusals" => array_refusals,
        "mappings_share_physical_memory" => aliases,
        "mapping_refusals" => mapping_refusals,
        "physical_memory_is_exported_and_imported" => exported,
        "managed_batches" => managed_batches,
        _ => return None,
    })
}

const FLOAT: u64 = 0x20;

fn array(width: u64, height: u64, depth: u64) -> u64 {
    let descriptor = [width, height, depth, FLOAT | 1 << 32, 0];
    make("cuArray3DCreate_v2", &[descriptor.as_ptr() as u64])
}

fn array_copies() {
    start();
    let (stream, row) = (
        stream(NON_BLOCKING),
        make("cuArrayCreate_v2", &{
            static DESCRIPTOR: [u64; 3] = [8, 0, FLOAT | 1 << 32];
            [DESCRIPTOR.as_ptr() as u64]
        }),
    );
    // One dimension, behind other bytes.
    let (source, mut back) = ([1u32, 2, 3, 4], [0u32; 4]);
    ok("cuMemcpyHtoA_v2", &[row, 8, source.as_ptr() as u64, 16]);
    ok("cuMemcpyAtoH_v2", &[back.as_mut_ptr() as u64, row, 12, 12]);
    assert_eq!(back, [2, 3, 4, 0]);
    // A box of 2 x 2 x 2 words inside an array of 4 x 4 x 4, from and to linear memory.
    let cube = array(4, 4, 4);
    let (upload, download) = (pinned(0), pinned(0));
    for place in 0..8 {
        write(upload + 4 * place, place as u32 + 1);
    }
    let linear = |host: u64| [0, 0, 0, 0, 1, host, 0, 0, 0, 8, 2];
    let inside = [4, 1, 2, 0, 3, 0, 0, cube, 0, 0, 0];
    let copy = |from: [u64; 11], to: [u64; 11]| {
        let mut words = [0u64; 25];
        words[..11].copy_from_slice(&from);
        words[11..22].copy_from_slice(&to);
        words[22..].copy_from_slice(&[8, 2, 2]);
        ok("cuMemcpy3DAsync_v2", &[words.as_ptr() as u64, stream]);
    };
    copy(linear(upload), inside);
    copy(inside, linear(download));
    ok("cuStreamSynchronize", &[stream]);
    assert!((0..8).all(|place| read(download + 4 * place) == place as u32 + 1));
    let mut descriptor = [9u64; 5];
    ok("cuArray3DGetDescriptor_v2", &[descriptor.as_mut_ptr() as u64, cube]);
    assert_eq!(descriptor[..4], [4, 4, 4, FLOAT | 1 << 32]);
    ok("cuArrayDestroy", &[cube]);
    println!("ok");
}

/// The statuses are those of driver 580.159 on an H200.
fn array_refusals() {
    start();
    let mut out = 0u64;
    let out = &raw mut out as u64;
    let (row, word) = (array(4, 0, 0), device(4));
    let (three_channels, format, nothing) =
        ([16, 4, FLOAT | 3 << 32], [16, 4, 0x99u64 | 1 << 32], [0, 4, FLOAT | 1 << 32]);
    let rows: &[(&str, &[u64], u32)] = &[
        ("cuArrayCreate_v2", &[out, three_channels.as_ptr() as u64], 1),
        ("cuArrayCreate_v2", &[out, format.as_ptr() as u64], 1),
        ("cuArrayCreate_v2", &[out, nothing.as_ptr() as u64], 1),
        ("cuArrayDestroy", &[0], 400),
        ("cuMemcpyDtoA_v2", &[row, 13, word, 4], 1),
        ("cuMemcpyDtoA_v2", &[row, 12, word, 4], 0),
        ("cuArrayDestroy", &[row], 0),
        ("cuMemcpyDtoA_v2", &[row, 0, word, 4], 400),
    ];
    for (name, arguments, expected) in rows {
        assert_eq!(cu(name, arguments), *expected, "{name}{arguments:x?}");
    }
    println!("ok");
}

const PAGE: u64 = 2 << 20;

/// CUmemAllocationProp of device 0, exported as a descriptor.
static PROPERTIES: [u64; 4] = [1 | 1 << 32, 1, 0, 0];
/// CUmemAccessDesc of device 0, read and write.
static ACCESS: [u32; 3] = [1, 0, 3];

fn physical(bytes: u64) -> u64 {
    make("cuMemCreate", &[bytes, PROPERTIES.as_ptr() as u64, 0])
}

fn reserve(bytes: u64) -> u64 {
    make("cuMemAddressReserve", &[bytes, 0, 0, 0])
}

fn aliases() {
    start();
    let (memory, range, stream) = (physical(2 * PAGE), reserve(4 * PAGE), stream(NON_BLOCKING));
    ok("cuMemMap", &[range, 2 * PAGE, 0, memory, 0]);
    // The same memory once more.
    ok("cuMemMap", &[range + 2 * PAGE, 2 * PAGE, 0, memory, 0]);
    ok("cuMemRelease", &[memory]);
    assert_eq!(cu("cuMemsetD32_v2", &[range, 1, 1]), 1, "no access yet");
    ok("cuMemSetAccess", &[range, 4 * PAGE, ACCESS.as_ptr() as u64, 1]);
    let (put, result, across) = (function(module(), "put"), pinned(0), pinned(0));
    assert_eq!(launch(put, 1, 1, stream, &[7, range + 4]), 0);
    fetch(result, range + 2 * PAGE + 4, stream);
    // Over the border of two mappings.
    ok("cuMemsetD32Async", &[range + 2 * PAGE - 4, 5, 2, stream]);
    fetch(across, range + 2 * PAGE, stream);
    ok("cuStreamSynchronize", &[stream]);
    ok("cuMemUnmap", &[range, 4 * PAGE]);
    assert_eq!(cu("cuMemsetD32_v2", &[range, 1, 1]), 1);
    ok("cuMemAddressFree", &[range, 4 * PAGE]);
    println!("{} {}", read(result), read(across));
}

/// The statuses are those of driver 580.159 on an H200.
fn mapping_refusals() {
    start();
    let mut out = 0u64;
    let out = &raw mut out as u64;
    let (memory, range, properties) = (physical(PAGE), reserve(2 * PAGE), PROPERTIES.as_ptr());
    let larger = physical(2 * PAGE);
    let access = ACCESS.as_ptr() as u64;
    let rows: &[(&str, &[u64], u32)] = &[
        ("cuMemCreate", &[out, 4096, properties as u64, 0], 1),
        ("cuMemAddressReserve", &[out, 4096, 0, 0, 0], 1),
        ("cuMemMap", &[range, PAGE, 0, larger, 0], 801),
        ("cuMemMap", &[range, PAGE, 0, memory, 0], 0),
        ("cuMemMap", &[range, PAGE, 0, memory, 0], 1),
        ("cuMemMap", &[range + PAGE, PAGE, PAGE, memory, 0], 801),
        ("cuMemMap", &[range + PAGE, PAGE, 0, memory, 0], 0),
        ("cuMemSetAccess", &[range, 2 * PAGE, access, 1], 0),
        ("cuMemAddressFree", &[range, 2 * PAGE], 1),
        ("cuMemUnmap", &[range, PAGE / 2], 1),
        ("cuMemUnmap", &[range, PAGE], 0),
        ("cuMemUnmap", &[range, PAGE], 0),
        ("cuMemSetAccess", &[range, PAGE, access, 1], 1),
        ("cuMemUnmap", &[range + PAGE, PAGE], 0),
        ("cuMemRelease", &[memory], 0),
        ("cuMemRelease", &[memory], 1),
        ("cuMemAddressFree", &[range, 2 * PAGE], 0),
    ];
    for (name, arguments, expected) in rows {
        assert_eq!(cu(name, arguments), *expected, "{name}{arguments:x?}");
    }
    println!("ok");
}

fn exported() {
    start();
    let (memory, range) = (physical(PAGE), reserve(2 * PAGE));
    let mut descriptor = -1i32;
    ok("cuMemExportToShareableHandle", &[&raw mut descriptor as u64, memory, 1, 0]);
    let again = make("cuMemImportFromShareableHandle", &[descriptor as u64, 1]);
    // SAFETY: the descriptor is this program's to close.
    unsafe { libc::close(descriptor) };
    ok("cuMemMap", &[range, PAGE, 0, memory, 0]);
    ok("cuMemMap", &[range + PAGE, PAGE, 0, again, 0]);
    ok("cuMemSetAccess", &[range, 2 * PAGE, ACCESS.as_ptr() as u64, 1]);
    ok("cuMemsetD32_v2", &[range, 6, 1]);
    let (mut word, mut held) = (0u32, 0u64);
    ok("cuMemcpyDtoH_v2", &[&raw mut word as u64, range + PAGE, 4]);
    ok("cuMemRetainAllocationHandle", &[&raw mut held as u64, range + PAGE]);
    println!("{word} {}", u32::from(held == again));
}

fn managed_batches() {
    start();
    let (stream, memory, result) =
        (stream(NON_BLOCKING), make("cuMemAllocManaged", &[4096, 1]), pinned(0));
    let (starts, sizes, location, index) = ([memory], [4096u64], [1u32, 0], [0u64]);
    let list = [starts.as_ptr() as u64, sizes.as_ptr() as u64, 1];
    let place = [location.as_ptr() as u64, index.as_ptr() as u64, 1, 0, stream];
    ok("cuMemPrefetchBatchAsync", &[&list[..], &place[..]].concat());
    ok("cuMemDiscardBatchAsync", &[&list[..], &[0, stream]].concat());
    ok("cuMemDiscardAndPrefetchBatchAsync", &[&list[..], &place[..]].concat());
    fill(memory, 4, stream);
    fetch(result, memory, stream);
    ok("cuStreamSynchronize", &[stream]);
    let plain = [device(4096)];
    let refused = [plain.as_ptr() as u64, sizes.as_ptr() as u64, 1, 0, stream];
    println!("{} {}", read(result), cu("cuMemDiscardBatchAsync", &refused));
}
