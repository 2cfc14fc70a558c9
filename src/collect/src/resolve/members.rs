//! Launches of one kernel on each of several devices, and launches of the first API, whose
//! parameters are set one by one.

use super::kernels;
use super::launches;
use super::resolution::Resolution;
use crate::launch::Resolved;
use std::collections::HashMap;
use std::sync::Arc;
use streamsan_model::{Action, KernelGap, MemberLaunch, MultiDeviceLaunch, StreamId};

/// `CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC` and `..._NO_POST_LAUNCH_SYNC`.
const NO_PRE_LAUNCH_SYNC: u64 = 1;
const NO_POST_LAUNCH_SYNC: u64 = 2;

/// `sizeof(CUDA_LAUNCH_PARAMS)`; the function comes first, the stream behind the sizes.
const ENTRY: usize = 56;
const ENTRY_GRID: usize = 8;
const ENTRY_STREAM: usize = 40;

/// Largest parameter buffer (CUDA C++ Programming Guide, kernel parameter limit).
const MOST_PARAMETERS: usize = 32 * 1024;

/// Parameters by function that `cuParamSet*` has set.
#[derive(Debug, Default)]
pub(super) struct Parameters(HashMap<u64, Vec<u8>>);

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// `cuLaunchCooperativeKernelMultiDevice(list, count, flags)`.
pub(super) fn multi_device(resolution: &mut Resolution<'_>) -> Option<Action> {
    let list = resolution.input_list(0, 1, ENTRY)?;
    let mut members = Vec::new();
    for (index, entry) in list.chunks_exact(ENTRY).enumerate() {
        let (function, stream) = (number(entry, 0), number(entry, ENTRY_STREAM));
        let stream = resolution.stream(stream)?;
        let known = kernels::known(resolution, function)?;
        resolution.next_part();
        if resolution.call.succeeded() {
            let call = resolution.call;
            // One list holds the accesses of all members: those of one cannot be replaced later.
            let geometry = launches::geometry(entry, ENTRY_GRID);
            let params = call.member_params(index);
            let resolved =
                launches::parameters(resolution, function, &known, params, geometry, false);
            if matches!(resolved, Resolved::ByWords(_)) {
                resolution.kernel_gap(KernelGap::NotLookedAtAgain, &known.name);
            }
        }
        members.push(MemberLaunch { stream, kernel: known.id, accesses: resolution.part_len() });
    }
    let flags = resolution.call.arg(2);
    Some(Action::LaunchMultiDevice(Arc::new(MultiDeviceLaunch {
        waits_before: flags & NO_PRE_LAUNCH_SYNC == 0,
        holds_back_after: flags & NO_POST_LAUNCH_SYNC == 0,
        launches: members,
    })))
}

fn set(resolution: &mut Resolution<'_>, bytes: &[u8]) -> Option<Action> {
    let at = usize::try_from(resolution.call.arg(1)).ok()?;
    let end = at.checked_add(bytes.len()).filter(|&end| end <= MOST_PARAMETERS)?;
    if resolution.call.succeeded() {
        let set = resolution.tables.parameters.0.entry(resolution.call.arg(0)).or_default();
        if set.len() < end {
            set.resize(end, 0);
        }
        set[at..end].copy_from_slice(bytes);
    }
    None
}

/// `cuParamSeti(function, offset, value)`.
pub(super) fn set_word(resolution: &mut Resolution<'_>) -> Option<Action> {
    let value = resolution.call.arg(2) as u32;
    set(resolution, &value.to_le_bytes())
}

/// `cuParamSetv(function, offset, bytes, count)`.
pub(super) fn set_bytes(resolution: &mut Resolution<'_>) -> Option<Action> {
    let bytes = resolution.input_list(2, 3, 1)?;
    set(resolution, &bytes)
}

/// `cuParamSetSize(function, bytes)`: what lies behind is no parameter.
pub(super) fn set_size(resolution: &mut Resolution<'_>) -> Option<Action> {
    if resolution.call.succeeded() {
        let size = usize::try_from(resolution.call.arg(1)).ok()?.min(MOST_PARAMETERS);
        resolution.tables.parameters.0.entry(resolution.call.arg(0)).or_default().resize(size, 0);
    }
    None
}

fn launch(resolution: &mut Resolution<'_>, stream: StreamId) -> Option<Action> {
    let function = resolution.call.arg(0);
    let known = kernels::known(resolution, function)?;
    let mut control = None;
    if resolution.call.succeeded() {
        let set = resolution.tables.parameters.0.get(&function).cloned().unwrap_or_default();
        // The shape of its blocks was set by a call that is only counted.
        control =
            launches::parameters(resolution, function, &known, Some(&set), None, false).control();
    }
    Some(Action::Launch {
        stream,
        kernel: known.id,
        programmatic: false,
        control: control.unwrap_or_default(),
        cooperative: false,
        event: None,
    })
}

/// `cuLaunch(function)`, `cuLaunchGrid(function, width, height)`: in the default stream.
pub(super) fn in_default_stream(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = resolution.default_stream();
    launch(resolution, stream)
}

/// `cuLaunchGridAsync(function, width, height, stream)`.
pub(super) fn in_stream(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = resolution.stream(resolution.call.arg(3))?;
    launch(resolution, stream)
}
