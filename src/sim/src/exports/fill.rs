//! Memsets.

use super::enter::twins;
use crate::driver::{FillSpec, Issue};

fn row(start: u64, value: u32, element: u64, width: u64) -> FillSpec {
    FillSpec { start, pitch: 0, value, element, width, height: 1 }
}

twins! { TWINS;
    fn cuMemsetD8_v2 / cuMemsetD8_v2_ptds(
        start: u64,
        value: u8,
        count: u64,
    ) |call, default| {
        call.fill(row(start, value.into(), 1, count), Issue::synchronous(default))
    }
    fn cuMemsetD8Async / cuMemsetD8Async_ptsz(
        start: u64,
        value: u8,
        count: u64,
        stream: u64,
    ) |call, default| {
        call.fill(row(start, value.into(), 1, count), Issue::asynchronous(stream, default))
    }
    fn cuMemsetD2D8_v2 / cuMemsetD2D8_v2_ptds(
        start: u64,
        pitch: u64,
        value: u8,
        width: u64,
        height: u64,
    ) |call, default| {
        let spec = FillSpec { pitch, height, ..row(start, value.into(), 1, width) };
        call.fill(spec, Issue::synchronous(default))
    }
    fn cuMemsetD2D8Async / cuMemsetD2D8Async_ptsz(
        start: u64,
        pitch: u64,
        value: u8,
        width: u64,
        height: u64,
        stream: u64,
    ) |call, default| {
        let spec = FillSpec { pitch, height, ..row(start, value.into(), 1, width) };
        call.fill(spec, Issue::asynchronous(stream, default))
    }
    fn cuMemsetD16_v2 / cuMemsetD16_v2_ptds(
        start: u64,
        value: u16,
        count: u64,
    ) |call, default| {
        call.fill(row(start, value.into(), 2, count), Issue::synchronous(default))
    }
    fn cuMemsetD16Async / cuMemsetD16Async_ptsz(
        start: u64,
        value: u16,
        count: u64,
        stream: u64,
    ) |call, default| {
        call.fill(row(start, value.into(), 2, count), Issue::asynchronous(stream, default))
    }
    fn cuMemsetD2D16_v2 / cuMemsetD2D16_v2_ptds(
        start: u64,
        pitch: u64,
        value: u16,
        width: u64,
        height: u64,
    ) |call, default| {
        let spec = FillSpec { pitch, height, ..row(start, value.into(), 2, width) };
        call.fill(spec, Issue::synchronous(default))
    }
    fn cuMemsetD2D16Async / cuMemsetD2D16Async_ptsz(
        start: u64,
        pitch: u64,
        value: u16,
        width: u64,
        height: u64,
        stream: u64,
    ) |call, default| {
        let spec = FillSpec { pitch, height, ..row(start, value.into(), 2, width) };
        call.fill(spec, Issue::asynchronous(stream, default))
    }
    fn cuMemsetD32_v2 / cuMemsetD32_v2_ptds(
        start: u64,
        value: u32,
        count: u64,
    ) |call, default| {
        call.fill(row(start, value, 4, count), Issue::synchronous(default))
    }
    fn cuMemsetD32Async / cuMemsetD32Async_ptsz(
        start: u64,
        value: u32,
        count: u64,
        stream: u64,
    ) |call, default| {
        call.fill(row(start, value, 4, count), Issue::asynchronous(stream, default))
    }
    fn cuMemsetD2D32_v2 / cuMemsetD2D32_v2_ptds(
        start: u64,
        pitch: u64,
        value: u32,
        width: u64,
        height: u64,
    ) |call, default| {
        let spec = FillSpec { pitch, height, ..row(start, value, 4, width) };
        call.fill(spec, Issue::synchronous(default))
    }
    fn cuMemsetD2D32Async / cuMemsetD2D32Async_ptsz(
        start: u64,
        pitch: u64,
        value: u32,
        width: u64,
        height: u64,
        stream: u64,
    ) |call, default| {
        let spec = FillSpec { pitch, height, ..row(start, value, 4, width) };
        call.fill(spec, Issue::asynchronous(stream, default))
    }
}
