//! Green contexts and the resources that they are made of.

use super::args::{In, Out};
use super::enter::{api, twins};
use crate::driver::Call;
use crate::errors::{CuError, Outcome};

/// CUdevResource as far as it holds multiprocessors: type, padding, their number, the smallest
/// part, the alignment of parts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Resource {
    kind: u32,
    padding: [u32; 23],
    multiprocessors: u32,
    smallest: u32,
    alignment: u32,
    rest: [u32; 9],
}

const _: () = assert!(size_of::<Resource>() == 144);

/// CU_DEV_RESOURCE_TYPE_SM.
const MULTIPROCESSORS: u32 = 1;
/// Smallest part of a device, and what the size of a part is a multiple of.
const PART: u32 = 8;
/// CU_GREEN_CTX_DEFAULT_STREAM, which is required.
const DEFAULT_STREAM: u32 = 1;
const NON_BLOCKING: u32 = 1;

fn resource(multiprocessors: u32) -> Resource {
    Resource {
        kind: MULTIPROCESSORS,
        padding: [0; 23],
        multiprocessors,
        smallest: PART,
        alignment: PART,
        rest: [0; 9],
    }
}

fn answer(out: Out<Resource>, kind: u32, multiprocessors: u32) -> Outcome {
    match kind {
        MULTIPROCESSORS => out.set(resource(multiprocessors)),
        _ => Err(CuError::INVALID_RESOURCE_TYPE),
    }
}

/// All multiprocessors of the device of a context.
fn of_device(call: &Call) -> u32 {
    call.multiprocessors() as u32
}

api! { TABLE;
    fn cuDeviceGetDevResource(device: i32, out: Out<Resource>, kind: u32) |call| {
        out.check()?;
        call.device(device)?;
        answer(out, kind, of_device(call))
    }
    fn cuCtxGetDevResource(context: u64, out: Out<Resource>, kind: u32) |call| {
        out.check()?;
        call.context_check(Some(context))?;
        answer(out, kind, of_device(call))
    }
    fn cuGreenCtxGetDevResource(green: u64, out: Out<Resource>, kind: u32) |call| {
        out.check()?;
        answer(out, kind, call.green_multiprocessors(green)?)
    }
    fn cuDevSmResourceSplitByCount(
        parts: Out<Resource>,
        count: Out<u32>,
        input: In<Resource>,
        remaining: Out<Resource>,
        _flags: u32,
        smallest: u32,
    ) |_| {
        let input = input.get()?;
        if input.kind != MULTIPROCESSORS {
            return Err(CuError::INVALID_RESOURCE_TYPE);
        }
        if smallest > input.multiprocessors {
            return Err(CuError::INVALID_VALUE);
        }
        let size = smallest.max(PART).next_multiple_of(PART);
        let fit = input.multiprocessors / size;
        if parts.is_null() {
            return count.set(fit);
        }
        let made = fit.min(count.get()?);
        for place in 0..u64::from(made) {
            let at = parts.address() + place * size_of::<Resource>() as u64;
            Out::from_address(at).set(resource(size))?;
        }
        remaining.set_if_wanted(resource(input.multiprocessors - made * size));
        count.set(made)
    }
    fn cuDevResourceGenerateDesc(description: Out<u64>, list: In<Resource>, count: u32) |call| {
        description.check()?;
        let mut sum = 0u32;
        for index in 0..count as usize {
            let part = list.at(index)?;
            if part.kind != MULTIPROCESSORS {
                return Err(CuError::INVALID_RESOURCE_TYPE);
            }
            sum = sum.saturating_add(part.multiprocessors);
        }
        if sum == 0 {
            return Err(CuError::INVALID_VALUE);
        }
        description.set(call.describe_resource(sum))
    }
    fn cuGreenCtxCreate(green: Out<u64>, description: u64, device: i32, flags: u32) |call| {
        green.check()?;
        if flags != DEFAULT_STREAM {
            return Err(CuError::INVALID_VALUE);
        }
        green.set(call.green_create(description, device)?)
    }
    fn cuGreenCtxDestroy(green: u64) |call| { call.green_destroy(green) }
    fn cuCtxFromGreenCtx(context: Out<u64>, green: u64) |call| {
        context.check()?;
        context.set(call.green_context(green)?)
    }
    fn cuGreenCtxStreamCreate(stream: Out<u64>, green: u64, flags: u32, priority: i32) |call| {
        stream.check()?;
        if flags != NON_BLOCKING {
            return Err(CuError::INVALID_VALUE);
        }
        stream.set(call.green_stream(green, priority)?)
    }
    fn cuGreenCtxRecordEvent(green: u64, event: u64) |call| { call.green_record(green, event) }
    fn cuGreenCtxWaitEvent(green: u64, event: u64) |call| { call.green_wait(green, event) }
    fn cuGreenCtxGetId(green: u64, id: Out<u64>) |call| {
        id.check()?;
        id.set(call.green_id(green)?)
    }
    fn cuStreamGetGreenCtx(stream: u64, green: Out<u64>) |call| {
        green.check()?;
        green.set(call.stream_green(stream, crate::driver::DefaultStream::Legacy)?)
    }
}

twins! { TWINS;
    fn cuStreamGetCtx_v2 / cuStreamGetCtx_v2_ptsz(
        stream: u64,
        context: Out<u64>,
        green: Out<u64>,
    ) |call, default| {
        let (of, part) =
            (call.stream_context(stream, default)?, call.stream_green(stream, default)?);
        // One of the two is null.
        context.set_if_wanted(if part == 0 { of } else { 0 });
        green.set_if_wanted(part);
        Ok(())
    }
}
