//! Contexts.

use super::args::{In, Out};
use super::enter::api;
use crate::driver::{Call, GREATEST_PRIORITY};
use crate::errors::{CuError, Outcome};

fn create(call: &Call, context: Out<u64>, flags: u32, device: i32) -> Outcome {
    context.check()?;
    context.set(call.context_create(flags, device)?)
}

/// The context that a call names, where 0 means the current one.
fn named(context: u64) -> Option<u64> {
    (context != 0).then_some(context)
}

api! { TABLE;
    fn cuCtxCreate(context: Out<u64>, flags: u32, device: i32) |call| {
        create(call, context, flags, device)
    }
    fn cuCtxCreate_v2(context: Out<u64>, flags: u32, device: i32) |call| {
        create(call, context, flags, device)
    }
    fn cuCtxCreate_v3(
        context: Out<u64>,
        affinity: In<u64>,
        count: i32,
        flags: u32,
        device: i32,
    ) |call| {
        if !affinity.is_null() && count > 0 {
            return Err(CuError(224));
        }
        create(call, context, flags, device)
    }
    fn cuCtxCreate_v4(context: Out<u64>, parameters: In<u64>, flags: u32, device: i32) |call| {
        if !parameters.is_null() {
            return Err(CuError::NOT_SUPPORTED);
        }
        create(call, context, flags, device)
    }
    fn cuCtxDestroy(context: u64) |call| { call.context_destroy(context) }
    fn cuCtxDestroy_v2(context: u64) |call| { call.context_destroy(context) }
    fn cuCtxPushCurrent(context: u64) |call| { call.context_push(context) }
    fn cuCtxPushCurrent_v2(context: u64) |call| { call.context_push(context) }
    fn cuCtxPopCurrent(context: Out<u64>) |call| {
        context.set_if_wanted(call.context_pop()?);
        Ok(())
    }
    fn cuCtxPopCurrent_v2(context: Out<u64>) |call| {
        context.set_if_wanted(call.context_pop()?);
        Ok(())
    }
    fn cuCtxSetCurrent(context: u64) |call| { call.context_set(context) }
    fn cuCtxGetCurrent(context: Out<u64>) |call| { context.set(call.context_current()) }
    fn cuCtxGetDevice(device: Out<i32>) |call| {
        device.check()?;
        device.set(call.context_device(None)?)
    }
    fn cuCtxGetDevice_v2(device: Out<i32>, context: u64) |call| {
        device.check()?;
        device.set(call.context_device(named(context))?)
    }
    fn cuCtxGetFlags(flags: Out<u32>) |call| {
        flags.check()?;
        flags.set(call.context_flags()?)
    }
    fn cuCtxSetFlags(flags: u32) |call| { call.context_set_flags(flags) }
    fn cuCtxGetId(context: u64, id: Out<u64>) |call| {
        id.check()?;
        id.set(call.context_id(named(context))?)
    }
    fn cuCtxGetApiVersion(context: u64, version: Out<u32>) |call| {
        version.check()?;
        call.context_check(named(context))?;
        version.set(3020)
    }
    fn cuCtxSynchronize() |call| { call.context_synchronize(None) }
    fn cuCtxSynchronize_v2(context: u64) |call| { call.context_synchronize(named(context)) }
    fn cuCtxGetLimit(value: Out<u64>, limit: u32) |call| {
        value.check()?;
        value.set(call.limit(limit)?)
    }
    fn cuCtxSetLimit(limit: u32, value: u64) |call| { call.set_limit(limit, value) }
    fn cuCtxGetCacheConfig(config: Out<u32>) |call| {
        config.check()?;
        config.set(call.cache_config(None)?)
    }
    fn cuCtxSetCacheConfig(config: u32) |call| { call.cache_config(Some(config)).map(|_| ()) }
    fn cuCtxGetSharedMemConfig(config: Out<u32>) |call| {
        config.check()?;
        config.set(call.shared_config(None)?)
    }
    fn cuCtxSetSharedMemConfig(config: u32) |call| { call.shared_config(Some(config)).map(|_| ()) }
    fn cuCtxResetPersistingL2Cache() |call| { call.context_check(None) }
    fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) |call| {
        call.context_check(None)?;
        least.set_if_wanted(0);
        greatest.set_if_wanted(GREATEST_PRIORITY);
        Ok(())
    }
    fn cuCtxEnablePeerAccess(peer: u64, flags: u32) |call| {
        if flags != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        call.peer_access(peer, true)
    }
    fn cuCtxDisablePeerAccess(peer: u64) |call| { call.peer_access(peer, false) }
    fn cuCtxRecordEvent(context: u64, event: u64) |call| {
        call.context_record_event(context, event)
    }
    fn cuCtxWaitEvent(context: u64, event: u64) |call| { call.context_wait_event(context, event) }
    fn cuDevicePrimaryCtxRetain(context: Out<u64>, device: i32) |call| {
        context.check()?;
        context.set(call.primary_retain(device)?)
    }
    fn cuDevicePrimaryCtxRelease(device: i32) |call| { call.primary_release(device) }
    fn cuDevicePrimaryCtxRelease_v2(device: i32) |call| { call.primary_release(device) }
    fn cuDevicePrimaryCtxReset(device: i32) |call| { call.primary_reset(device) }
    fn cuDevicePrimaryCtxReset_v2(device: i32) |call| { call.primary_reset(device) }
    fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) |call| {
        let (set, retained) = call.primary_state(device)?;
        flags.set(set)?;
        active.set(retained.into())
    }
    fn cuDevicePrimaryCtxSetFlags(device: i32, flags: u32) |call| {
        call.primary_set_flags(device, flags)
    }
    fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) |call| {
        call.primary_set_flags(device, flags)
    }
}
