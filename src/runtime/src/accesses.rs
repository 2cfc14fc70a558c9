//! The C interface for the simulated driver and the library that measures, which find it with `dlsym`:
//! `streamsan_wire`'s header of `measure_abi.rs` describes the part for measured bytes.

use core::ffi::{CStr, c_char};

use streamsan_wire::{LONGEST_DETAIL, MeasuredRun, RecordKind};

use crate::attach;
use crate::call::guarded;
use crate::thread::{self, Outgoing};

/// A half-open byte range that a kernel touched.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct StreamsanAccess {
    start: u64,
    end: u64,
    /// 0 read, 1 write, 2 atomic.
    mode: u32,
    /// 1: before the kernel's wait for its prerequisite grids.
    early: u32,
}

/// Ranges in one record, so that a long list neither fills a ring nor exceeds a record.
const RANGES_PER_RECORD: usize = 512;

/// Runs in one record, likewise.
const RUNS_PER_RECORD: usize = 300;

/// Global index of the innermost hooked call in progress on this thread, 0 if there is none.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn streamsan_current_op() -> u64 {
    thread::with(|thread| thread.op.get())
}

/// Records what the kernel launched by `op` touched: `count` ranges, merged and sorted.
///
/// # Safety
/// `list` points to `count` ranges (it may be null if there are none).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn streamsan_op_accesses(
    op: u64,
    list: *const StreamsanAccess,
    count: usize,
) {
    if op == 0 {
        return;
    }
    let ranges: &[StreamsanAccess] = match count {
        0 => &[],
        // SAFETY: promised by the caller.
        _ => unsafe { core::slice::from_raw_parts(list, count) },
    };
    guarded(|thread| {
        let Some(attachment) = attach::attachment() else { return };
        thread.busy.set(true);
        let mut rest = ranges;
        loop {
            let (part, after) = rest.split_at(rest.len().min(RANGES_PER_RECORD));
            let complete = after.is_empty();
            let record = Outgoing {
                kind: RecordKind::Accesses,
                depth: 0,
                api: 0,
                body: 16 + size_of_val(part),
            };
            thread.publish(&attachment, record, |body| {
                body.word(op);
                body.word(u64::from(complete));
                for range in part {
                    body.word(range.start);
                    body.word(range.end);
                    body.word(u64::from(range.mode) | u64::from(range.early) << 32);
                }
            });
            if complete {
                break;
            }
            rest = after;
        }
        thread.busy.set(false);
    });
}

/// Records what instrumented code saw of the kernel launched by `op`.
///
/// # Safety
/// `list` points to `count` runs (it may be null if there are none).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn streamsan_op_measured(
    op: u64,
    list: *const MeasuredRun,
    count: usize,
    flags: u32,
) {
    // SAFETY: passed on to the caller.
    unsafe { measured(op, 0, list, count, flags) };
}

/// The same of the kernel of a node of the graph launched by `op`.
///
/// # Safety
/// As [`streamsan_op_measured`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn streamsan_node_accesses(
    op: u64,
    node: u64,
    list: *const MeasuredRun,
    count: usize,
    flags: u32,
) {
    if node != 0 {
        // SAFETY: passed on to the caller.
        unsafe { measured(op, node, list, count, flags) };
    }
}

/// # Safety
/// `list` points to `count` runs (it may be null if there are none).
unsafe fn measured(op: u64, node: u64, list: *const MeasuredRun, count: usize, flags: u32) {
    if op == 0 {
        return;
    }
    let runs: &[MeasuredRun] = match count {
        0 => &[],
        // SAFETY: promised by the caller.
        _ => unsafe { core::slice::from_raw_parts(list, count) },
    };
    guarded(|thread| {
        let Some(attachment) = attach::attachment() else { return };
        thread.busy.set(true);
        let mut rest = runs;
        loop {
            let (part, after) = rest.split_at(rest.len().min(RUNS_PER_RECORD));
            let complete = after.is_empty();
            let body = 24 + size_of_val(part);
            let record = Outgoing { kind: RecordKind::Measured, depth: 0, api: 0, body };
            thread.publish(&attachment, record, |body| {
                body.word(op);
                body.word(node);
                body.word(u64::from(complete) | u64::from(flags) << 32);
                for run in part {
                    for word in [run.start, run.width, run.pitch, run.rows] {
                        body.word(word);
                    }
                    body.word(u64::from(run.mode) | u64::from(run.flags) << 32);
                }
            });
            if complete {
                break;
            }
            rest = after;
        }
        thread.busy.set(false);
    });
}

/// Records that the kernel launched by `op` was not measured, or with 0 that nothing of this process
/// is.
///
/// # Safety
/// `detail` is null or points to a text that ends with NUL.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn streamsan_not_measured(
    op: u64,
    reason: u32,
    detail: *const c_char,
) {
    let detail = match detail.is_null() {
        true => &[][..],
        // SAFETY: promised by the caller.
        false => unsafe { CStr::from_ptr(detail) }.to_bytes(),
    };
    let detail = &detail[..detail.len().min(LONGEST_DETAIL)];
    guarded(|thread| {
        let Some(attachment) = attach::attachment() else { return };
        thread.busy.set(true);
        let body = 16 + detail.len().next_multiple_of(8);
        let record = Outgoing { kind: RecordKind::NotMeasured, depth: 0, api: 0, body };
        thread.publish(&attachment, record, |body| {
            body.word(op);
            body.word(u64::from(reason) | (detail.len() as u64) << 32);
            // SAFETY: a live slice.
            unsafe { body.bytes(detail.as_ptr(), detail.len()) };
            body.align(detail.len());
        });
        thread.busy.set(false);
    });
}
