//! The C interface for the simulated driver, which finds it with `dlsym`.

use streamsan_wire::RecordKind;

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
