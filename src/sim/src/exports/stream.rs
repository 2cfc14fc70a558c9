//! Streams, host functions and callbacks.

use super::args::{Out, OutList};
use super::enter::{api, twins};
use crate::errors::CuError;

const MEM_ATTACH_FLAGS: std::ops::RangeInclusive<u32> = 1..=4;

api! { TABLE;
    fn cuStreamCreate(stream: Out<u64>, flags: u32) |call| {
        stream.check()?;
        stream.set(call.stream_create(flags, 0)?)
    }
    fn cuStreamCreateWithPriority(stream: Out<u64>, flags: u32, priority: i32) |call| {
        stream.check()?;
        stream.set(call.stream_create(flags, priority)?)
    }
    fn cuStreamDestroy(stream: u64) |call| { call.stream_destroy(stream) }
    fn cuStreamDestroy_v2(stream: u64) |call| { call.stream_destroy(stream) }
}

twins! { TWINS;
    fn cuStreamSynchronize / cuStreamSynchronize_ptsz(stream: u64) |call, default| {
        call.stream_synchronize(stream, default)
    }
    fn cuStreamQuery / cuStreamQuery_ptsz(stream: u64) |call, default| {
        call.stream_query(stream, default)
    }
    fn cuStreamWaitEvent / cuStreamWaitEvent_ptsz(
        stream: u64,
        event: u64,
        flags: u32,
    ) |call, default| { call.stream_wait_event(stream, event, flags, default) }
    fn cuStreamGetId / cuStreamGetId_ptsz(stream: u64, id: Out<u64>) |call, default| {
        id.check()?;
        id.set(call.stream_id(stream, default)?)
    }
    fn cuStreamGetCtx / cuStreamGetCtx_ptsz(stream: u64, context: Out<u64>) |call, default| {
        context.check()?;
        context.set(call.stream_context(stream, default)?)
    }
    fn cuStreamGetDevice / cuStreamGetDevice_ptsz(stream: u64, device: Out<i32>) |call, default| {
        device.check()?;
        device.set(call.stream_device(stream, default)? as i32)
    }
    fn cuStreamGetFlags / cuStreamGetFlags_ptsz(stream: u64, flags: Out<u32>) |call, default| {
        flags.check()?;
        flags.set(call.stream_flags(stream, default)?)
    }
    fn cuStreamGetPriority / cuStreamGetPriority_ptsz(
        stream: u64,
        priority: Out<i32>,
    ) |call, default| {
        priority.check()?;
        priority.set(call.stream_priority(stream, default)?)
    }
    fn cuStreamGetAttribute / cuStreamGetAttribute_ptsz(
        stream: u64,
        _attribute: u32,
        value: OutList<u8>,
    ) |call, default| {
        call.stream_id(stream, default)?;
        value.fill(&[0; 64], 64)
    }
    fn cuStreamSetAttribute / cuStreamSetAttribute_ptsz(
        stream: u64,
        _attribute: u32,
        _value: u64,
    ) |call, default| { call.stream_id(stream, default).map(|_| ()) }
    fn cuStreamCopyAttributes / cuStreamCopyAttributes_ptsz(
        to: u64,
        from: u64,
    ) |call, default| {
        call.stream_id(to, default)?;
        call.stream_id(from, default).map(|_| ())
    }
    fn cuStreamAttachMemAsync / cuStreamAttachMemAsync_ptsz(
        stream: u64,
        address: u64,
        _length: u64,
        flags: u32,
    ) |call, default| {
        if !MEM_ATTACH_FLAGS.contains(&flags) {
            return Err(CuError::INVALID_VALUE);
        }
        call.check_managed(address, 1)?;
        call.marker(stream, default)
    }
    fn cuLaunchHostFunc / cuLaunchHostFunc_ptsz(
        stream: u64,
        function: usize,
        data: usize,
    ) |call, default| { call.host_function(function, data, false, stream, default) }
    fn cuLaunchHostFunc_v2 / cuLaunchHostFunc_v2_ptsz(
        stream: u64,
        function: usize,
        data: usize,
        mode: u32,
    ) |call, default| {
        if mode > 1 {
            return Err(CuError::INVALID_VALUE);
        }
        call.host_function(function, data, false, stream, default)
    }
    fn cuStreamAddCallback / cuStreamAddCallback_ptsz(
        stream: u64,
        function: usize,
        data: usize,
        flags: u32,
    ) |call, default| {
        if flags != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        call.host_function(function, data, true, stream, default)
    }
}
