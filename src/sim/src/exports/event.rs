//! Events.

use super::args::Out;
use super::enter::{api, twins};

api! { TABLE;
    fn cuEventCreate(event: Out<u64>, flags: u32) |call| {
        event.check()?;
        event.set(call.event_create(flags)?)
    }
    fn cuEventDestroy(event: u64) |call| { call.event_destroy(event) }
    fn cuEventDestroy_v2(event: u64) |call| { call.event_destroy(event) }
    fn cuEventQuery(event: u64) |call| { call.event_query(event) }
    fn cuEventSynchronize(event: u64) |call| { call.event_synchronize(event) }
    fn cuEventElapsedTime(milliseconds: Out<f32>, start: u64, end: u64) |call| {
        milliseconds.check()?;
        milliseconds.set(call.event_elapsed(start, end)?)
    }
    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: u64, end: u64) |call| {
        milliseconds.check()?;
        milliseconds.set(call.event_elapsed(start, end)?)
    }
}

twins! { TWINS;
    fn cuEventRecord / cuEventRecord_ptsz(event: u64, stream: u64) |call, default| {
        call.event_record(event, stream, 0, default)
    }
    fn cuEventRecordWithFlags / cuEventRecordWithFlags_ptsz(
        event: u64,
        stream: u64,
        flags: u32,
    ) |call, default| { call.event_record(event, stream, flags, default) }
}
