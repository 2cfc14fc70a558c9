//! Parts of a device, and several devices at once.

use crate::raw::*;

pub(super) fn find(name: &str) -> Option<fn()> {
    Some(match name {
        "green_contexts" => green_contexts,
        "green_resources" => green_resources,
        "peer_launch_on_all_devices" => || multi_device(0),
        "peer_launch_on_all_devices_unordered" => || multi_device(3),
        _ => return None,
    })
}

/// CUdevResource.
type Resource = [u32; 36];

fn device_resource() -> Resource {
    let mut resource = [0; 36];
    ok("cuDeviceGetDevResource", &[0, resource.as_mut_ptr() as u64, 1]);
    resource
}

fn split(parts: u32, smallest: u64) -> (Vec<Resource>, Resource) {
    let (whole, mut rest, mut count) = (device_resource(), [0; 36], parts);
    let mut made = vec![[0; 36]; parts as usize];
    let arguments = [
        made.as_mut_ptr() as u64,
        &raw mut count as u64,
        whole.as_ptr() as u64,
        rest.as_mut_ptr() as u64,
        0,
        smallest,
    ];
    ok("cuDevSmResourceSplitByCount", &arguments);
    made.truncate(count as usize);
    (made, rest)
}

fn green(part: &Resource) -> u64 {
    let description = make("cuDevResourceGenerateDesc", &[part.as_ptr() as u64, 1]);
    make("cuGreenCtxCreate", &[description, 0, 1])
}

fn green_resources() {
    start();
    let whole = device_resource();
    // Number, smallest part, alignment, as an H200 has them.
    assert_eq!(whole[24..27], [132, 8, 8]);
    let (parts, rest) = split(4, 16);
    assert_eq!((parts.len(), parts[0][24], rest[24]), (4, 16, 68));
    let (parts, rest) = split(4, 60);
    assert_eq!((parts.len(), parts[0][24], rest[24]), (2, 64, 4));
    let part = green(&parts[0]);
    let mut own = [0; 36];
    ok("cuGreenCtxGetDevResource", &[part, own.as_mut_ptr() as u64, 1]);
    assert_eq!(own[24], 64);
    let mut out = 0u64;
    let out = &raw mut out as u64;
    let description = make("cuDevResourceGenerateDesc", &[parts[0].as_ptr() as u64, 1]);
    let rows: &[(&str, &[u64], u32)] = &[
        ("cuGreenCtxCreate", &[out, description, 0, 0], 1),
        ("cuGreenCtxCreate", &[out, 0x1234, 0, 1], 1),
        ("cuGreenCtxStreamCreate", &[out, part, 0, 0], 1),
        ("cuDeviceGetDevResource", &[0, own.as_mut_ptr() as u64, 9], 914),
    ];
    for (name, arguments, expected) in rows {
        assert_eq!(cu(name, arguments), *expected, "{name}{arguments:x?}");
    }
    println!("ok");
}

fn green_contexts() {
    start();
    let (parts, _) = split(2, 16);
    let (left, right) = (green(&parts[0]), green(&parts[1]));
    let [on_left, on_right] =
        [left, right].map(|part| make("cuGreenCtxStreamCreate", &[part, 1, 0]));
    let mut of = 0u64;
    ok("cuStreamGetGreenCtx", &[on_left, &raw mut of as u64]);
    assert_eq!(of, left);
    let (a, b, done) = ((device(4), pinned(0)), (device(4), pinned(0)), event());
    // Synchronising one part leaves the other alone; kernels and memory are the device's.
    let put = function(module(), "put");
    assert_eq!(launch(put, 1, 1, on_left, &[1, a.0]), 0);
    fetch(a.1, a.0, on_left);
    fill(b.0, 1, on_right);
    fetch(b.1, b.0, on_right);
    let context = make("cuCtxFromGreenCtx", &[left]);
    let before = make("cuCtxGetCurrent", &[]);
    ok("cuCtxSetCurrent", &[context]);
    ok("cuCtxSynchronize", &[]);
    let synchronised = (read(a.1), read(b.1));
    // A stream made while the part is current is one of its streams.
    let made = stream(NON_BLOCKING);
    ok("cuStreamGetGreenCtx", &[made, &raw mut of as u64]);
    assert_eq!(of, left);
    ok("cuCtxSetCurrent", &[before]);
    // Events of a whole part.
    fill(a.0, 2, on_left);
    ok("cuGreenCtxRecordEvent", &[left, done]);
    ok("cuGreenCtxWaitEvent", &[right, done]);
    fetch(b.1, a.0, on_right);
    ok("cuStreamSynchronize", &[on_right]);
    let held = read(b.1);
    ok("cuGreenCtxDestroy", &[left]);
    let gone = cu("cuMemsetD32Async", &[a.0, 1, 1, on_left]);
    println!("{} {} {held} {gone}", synchronised.0, synchronised.1);
}

/// CUDA_LAUNCH_PARAMS of one thread.
fn params(function: u64, stream: u64, pointers: &[u64; 2]) -> [u64; 7] {
    let one = 1 | 1 << 32;
    [function, one, one, one, 0, stream, pointers.as_ptr() as u64]
}

fn multi_device(flags: u64) {
    start();
    let first = make("cuCtxGetCurrent", &[]);
    let second = make("cuDevicePrimaryCtxRetain", &[1]);
    let (stream_a, word_a, put_a) = (stream(NON_BLOCKING), device(4), function(module(), "put"));
    let (ahead, source) = (pinned(0), device(4));
    ok("cuCtxSetCurrent", &[second]);
    let (stream_b, word_b, put_b) = (stream(NON_BLOCKING), device(4), function(module(), "put"));
    ok("cuCtxSetCurrent", &[first]);
    fill(source, 1, stream_a);
    fetch(ahead, source, stream_a);
    let (value, result) = (7u64, pinned(0));
    let pointers = [word_a, word_b]
        .each_ref()
        .map(|word| [&raw const value as u64, word as *const u64 as u64]);
    let list = [params(put_a, stream_a, &pointers[0]), params(put_b, stream_b, &pointers[1])];
    ok("cuLaunchCooperativeKernelMultiDevice", &[list.as_ptr() as u64, 2, flags]);
    fetch(result, word_b, stream_b);
    ok("cuStreamSynchronize", &[stream_b]);
    // With the barriers, what was in the other device's stream is done too.
    let (before, value) = (read(ahead), read(result));
    let twice = [list[0], list[0]];
    let status = cu("cuLaunchCooperativeKernelMultiDevice", &[twice.as_ptr() as u64, 2, 0]);
    println!("{before} {value} {status}");
}
