//! Device memory, page-locked host memory, and the copies and memsets between them.
//!
//! Sizes and offsets are in bytes everywhere.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::{self, NonNull};

use cudarc::driver::{result, sys};

use crate::{Failure, Stream};

/// Visible to every context, not only to the one that was current at the allocation.
const PORTABLE: u32 = sys::CU_MEMHOSTALLOC_PORTABLE;

/// A range of device memory: an address, never dereferenced on the host.
#[derive(Clone, Copy, Debug)]
pub struct DeviceRange {
    address: u64,
    len: usize,
}

impl DeviceRange {
    /// A range whose address came from the driver.
    pub(crate) fn at(address: u64, len: usize) -> Self {
        Self { address, len }
    }

    /// Its length in bytes.
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether it holds no byte.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// A part of it.
    ///
    /// # Panics
    /// If the part does not lie inside.
    pub fn part(self, bytes: Range<usize>) -> Self {
        assert!(bytes.start <= bytes.end && bytes.end <= self.len, "part outside the range");
        Self { address: self.address + bytes.start as u64, len: bytes.len() }
    }

    /// The address, as a kernel argument takes it.
    pub fn address(self) -> u64 {
        self.address
    }
}

/// An allocation in device memory. Not freed on drop: a program shows its frees.
#[derive(Debug)]
pub struct DeviceBuffer(DeviceRange);

impl DeviceBuffer {
    /// Plain allocation.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn alloc(len: usize) -> Result<Self, Failure> {
        // SAFETY: the memory is only named by address until something is written to it.
        let address = unsafe { result::malloc_sync(len) }?;
        Ok(Self(DeviceRange { address, len }))
    }

    /// Stream-ordered allocation: valid in `stream` from here on, elsewhere after waiting for it.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn alloc_async(len: usize, stream: &Stream) -> Result<Self, Failure> {
        // SAFETY: the stream is alive; the memory is only named by address.
        let address = unsafe { result::malloc_async(stream.raw(), len) }?;
        Ok(Self(DeviceRange { address, len }))
    }

    /// The whole allocation.
    pub fn all(&self) -> DeviceRange {
        self.0
    }

    /// A part of the allocation.
    ///
    /// # Panics
    /// If the part does not lie inside the allocation.
    pub fn part(&self, bytes: Range<usize>) -> DeviceRange {
        assert!(bytes.start <= bytes.end && bytes.end <= self.0.len, "part outside the buffer");
        DeviceRange { address: self.0.address + bytes.start as u64, len: bytes.len() }
    }

    /// `cuMemFree`.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn free(self) -> Result<(), Failure> {
        // SAFETY: allocated once, taken here, so freed once.
        Ok(unsafe { result::free_sync(self.0.address) }?)
    }

    /// `cuMemFreeAsync` in `stream`.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn free_async(self, stream: &Stream) -> Result<(), Failure> {
        // SAFETY: allocated once, taken here, so freed once.
        Ok(unsafe { result::free_async(self.0.address, stream.raw()) }?)
    }
}

/// Page-locked host memory. Reached through its pointer only: no reference to bytes that a copy may
/// be changing is ever made.
#[derive(Debug)]
pub struct PinnedBuffer {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to the process, not to a thread; accesses go through raw pointers.
unsafe impl Send for PinnedBuffer {}

impl PinnedBuffer {
    /// Allocates `len` bytes, each `value`.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    ///
    /// # Panics
    /// If the driver reports success with a null pointer.
    pub fn filled(len: usize, value: u8) -> Result<Self, Failure> {
        // SAFETY: the size is not zero in any program, and the memory is written below.
        let start = unsafe { result::malloc_host(len, PORTABLE) }?.cast::<u8>();
        let start = NonNull::new(start).expect("an allocation that succeeded has an address");
        // SAFETY: `len` bytes were just allocated there and nothing else knows of them yet.
        unsafe { ptr::write_bytes(start.as_ptr(), value, len) };
        Ok(Self { start, len })
    }

    /// Its address.
    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }

    /// Reads byte `at` on the host, whatever is going on in the buffer.
    ///
    /// # Panics
    /// If `at` lies outside the buffer.
    pub fn byte(&self, at: usize) -> u8 {
        assert!(at < self.len, "byte outside the buffer");
        // SAFETY: inside the allocation; volatile, because the device may write the same byte.
        unsafe { self.start.as_ptr().add(at).read_volatile() }
    }

    /// Reads 32-bit word `at` on the host.
    ///
    /// # Panics
    /// If the word lies outside the buffer.
    pub fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes([0, 1, 2, 3].map(|byte| self.byte(at * 4 + byte)))
    }

    /// Writes 32-bit words on the host, from the start of the buffer on.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn write_words(&self, words: impl IntoIterator<Item = u32>) {
        for (index, word) in words.into_iter().enumerate() {
            assert!((index + 1) * 4 <= self.len, "word outside the buffer");
            // SAFETY: inside the allocation, which is aligned to more than a word.
            unsafe { self.start.as_ptr().cast::<u32>().add(index).write_volatile(word) };
        }
    }

    /// `cuMemFreeHost`.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn free(self) -> Result<(), Failure> {
        // SAFETY: allocated once, taken here, so freed once.
        Ok(unsafe { result::free_host(self.start.as_ptr().cast::<c_void>()) }?)
    }

    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset + len <= self.len, "copy outside the page-locked buffer");
        // SAFETY: checked to lie inside the allocation.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

/// Asynchronous copy from page-locked memory, from `offset` in it on.
///
/// # Errors
/// [`Failure::Driver`].
pub fn copy_to_device(
    target: DeviceRange,
    source: &PinnedBuffer,
    offset: usize,
    stream: &Stream,
) -> Result<(), Failure> {
    let source = source.at(offset, target.len).cast::<c_void>();
    // SAFETY: both ranges are inside live allocations of at least `target.len` bytes.
    let status =
        unsafe { sys::cuMemcpyHtoDAsync_v2(target.address, source, target.len, stream.raw()) };
    Ok(status.result()?)
}

/// Asynchronous copy from ordinary (pageable) host memory, which lives as long as the program.
///
/// # Errors
/// [`Failure::Driver`].
///
/// # Panics
/// If the sizes differ.
pub fn copy_pageable_to_device(
    target: DeviceRange,
    source: &'static [u8],
    stream: &Stream,
) -> Result<(), Failure> {
    assert_eq!(target.len, source.len(), "sizes differ");
    let source = source.as_ptr().cast::<c_void>();
    // SAFETY: the target is inside a live allocation; the source has as many bytes and is never
    // freed or changed.
    let status =
        unsafe { sys::cuMemcpyHtoDAsync_v2(target.address, source, target.len, stream.raw()) };
    Ok(status.result()?)
}

/// Asynchronous copy into page-locked memory, to `offset` in it.
///
/// # Errors
/// [`Failure::Driver`].
pub fn copy_to_host(
    target: &PinnedBuffer,
    offset: usize,
    source: DeviceRange,
    stream: &Stream,
) -> Result<(), Failure> {
    let target = target.at(offset, source.len).cast::<c_void>();
    // SAFETY: both ranges are inside live allocations of at least `source.len` bytes.
    let status =
        unsafe { sys::cuMemcpyDtoHAsync_v2(target, source.address, source.len, stream.raw()) };
    Ok(status.result()?)
}

/// Asynchronous copy inside device memory; the shorter of the two ranges decides the size.
///
/// # Errors
/// [`Failure::Driver`].
pub fn copy_on_device(
    target: DeviceRange,
    source: DeviceRange,
    stream: &Stream,
) -> Result<(), Failure> {
    let len = target.len.min(source.len);
    // SAFETY: both ranges are inside live allocations of at least `len` bytes.
    let done =
        unsafe { result::memcpy_dtod_async(target.address, source.address, len, stream.raw()) };
    Ok(done?)
}

/// `cuMemcpyHtoD` from ordinary (pageable) host memory, through the default stream.
///
/// # Errors
/// [`Failure::Driver`].
///
/// # Panics
/// If the sizes differ.
pub fn copy_to_device_blocking(target: DeviceRange, source: &[u8]) -> Result<(), Failure> {
    assert_eq!(target.len, source.len(), "sizes differ");
    // SAFETY: the driver has read a pageable source when the call returns.
    Ok(unsafe { result::memcpy_htod_sync(target.address, source) }?)
}

/// `cuMemcpyHtoD` from page-locked memory, through the default stream.
///
/// # Errors
/// [`Failure::Driver`].
pub fn pinned_to_device_blocking(
    target: DeviceRange,
    source: &PinnedBuffer,
) -> Result<(), Failure> {
    let source = source.at(0, target.len).cast::<c_void>();
    // SAFETY: both ranges are inside live allocations of at least `target.len` bytes.
    let status = unsafe { sys::cuMemcpyHtoD_v2(target.address, source, target.len) };
    Ok(status.result()?)
}

/// `cuMemcpyDtoH` into ordinary (pageable) host memory, through the default stream.
///
/// # Errors
/// [`Failure::Driver`].
pub fn copy_to_host_blocking(source: DeviceRange) -> Result<Vec<u8>, Failure> {
    let mut target = vec![0; source.len];
    // SAFETY: the target is as long as the source, and the call returns when it is filled.
    unsafe { result::memcpy_dtoh_sync(&mut target, source.address) }?;
    Ok(target)
}

/// Asynchronous memset of every byte.
///
/// # Errors
/// [`Failure::Driver`].
pub fn set_bytes(target: DeviceRange, value: u8, stream: &Stream) -> Result<(), Failure> {
    // SAFETY: the range is inside a live allocation.
    let done = unsafe { result::memset_d8_async(target.address, value, target.len, stream.raw()) };
    Ok(done?)
}

/// Some columns of a matrix in device memory: `width` bytes of each of `rows` rows, `pitch` apart.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    pub first: usize,
    pub width: usize,
    pub rows: usize,
    pub pitch: usize,
}

/// Asynchronous 2-D copy from densely packed page-locked memory into some columns of `matrix`.
///
/// # Errors
/// [`Failure::Driver`].
///
/// # Panics
/// If the columns do not lie inside the matrix.
pub fn copy_columns_to_device(
    matrix: &DeviceBuffer,
    columns: Columns,
    source: &PinnedBuffer,
    stream: &Stream,
) -> Result<(), Failure> {
    let Columns { first, width, rows, pitch } = columns;
    assert!(first + width <= pitch && pitch * rows <= matrix.0.len, "columns outside the matrix");
    let copy = sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: source.at(0, width * rows).cast::<c_void>(),
        srcDevice: 0,
        srcArray: ptr::null_mut(),
        srcPitch: width,
        dstXInBytes: first,
        dstY: 0,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: ptr::null_mut(),
        dstDevice: matrix.0.address,
        dstArray: ptr::null_mut(),
        dstPitch: pitch,
        WidthInBytes: width,
        Height: rows,
    };
    // SAFETY: both patterns were checked to lie inside their allocations.
    Ok(unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream.raw()) }.result()?)
}
