//! Memory that is not plain device memory: arrays, mapped and managed memory, registered memory,
//! words that streams wait for, and the synchronous forms of memsets and copies.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::{result, sys};

use crate::{DeviceRange, Failure, PinnedBuffer, Stream};

/// A CUDA array of bytes: `height` rows of `width`.
#[derive(Debug)]
pub struct Array(sys::CUarray);

impl Array {
    /// # Errors
    /// [`Failure::Driver`].
    pub fn create(width: usize, height: usize) -> Result<Self, Failure> {
        let descriptor = sys::CUDA_ARRAY_DESCRIPTOR {
            Width: width,
            Height: height,
            Format: sys::CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
            NumChannels: 1,
        };
        let mut array = ptr::null_mut();
        // SAFETY: both pointers lead to local variables.
        unsafe { sys::cuArrayCreate_v2(&raw mut array, &raw const descriptor) }.result()?;
        Ok(Self(array))
    }

    /// Asynchronous 2-D copy of densely packed page-locked rows to `(x, y)`.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn fill(
        &self,
        (x, y): (usize, usize),
        (width, height): (usize, usize),
        source: &PinnedBuffer,
        stream: &Stream,
    ) -> Result<(), Failure> {
        let copy = sys::CUDA_MEMCPY2D {
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: ptr::with_exposed_provenance(source.address() as usize),
            srcPitch: width,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_ARRAY,
            dstArray: self.0,
            dstXInBytes: x,
            dstY: y,
            ..rows(width, height)
        };
        // SAFETY: the descriptor is valid; the driver checks the box.
        Ok(unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream.raw()) }.result()?)
    }

    /// Asynchronous 2-D copy of a box into device memory, densely packed.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn read(
        &self,
        (x, y): (usize, usize),
        (width, height): (usize, usize),
        target: DeviceRange,
        stream: &Stream,
    ) -> Result<(), Failure> {
        let copy = sys::CUDA_MEMCPY2D {
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_ARRAY,
            srcArray: self.0,
            srcXInBytes: x,
            srcY: y,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: target.address(),
            dstPitch: width,
            ..rows(width, height)
        };
        // SAFETY: the descriptor is valid; the driver checks the box.
        Ok(unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream.raw()) }.result()?)
    }

    /// # Errors
    /// [`Failure::Driver`].
    pub fn destroy(self) -> Result<(), Failure> {
        // SAFETY: made once, taken here, so destroyed once.
        Ok(unsafe { sys::cuArrayDestroy(self.0) }.result()?)
    }
}

/// A copy of rows between nothing and nothing.
fn rows(width: usize, height: usize) -> sys::CUDA_MEMCPY2D {
    sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: ptr::null(),
        srcDevice: 0,
        srcArray: ptr::null_mut(),
        srcPitch: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: ptr::null_mut(),
        dstDevice: 0,
        dstArray: ptr::null_mut(),
        dstPitch: 0,
        WidthInBytes: width,
        Height: height,
    }
}

/// Physical memory of device 0.
#[derive(Debug)]
pub struct Physical {
    handle: u64,
    /// Its size in bytes: the granularity of the driver.
    pub len: usize,
}

impl Physical {
    /// # Errors
    /// [`Failure::Driver`].
    pub fn create() -> Result<Self, Failure> {
        // SAFETY: all zeroes is a value of this plain structure of C.
        let mut properties: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
        properties.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        let (mut len, mut handle) = (0, 0);
        let granularity = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: every pointer leads to a local variable.
        unsafe {
            let (size, properties) = (&raw mut len, &raw const properties);
            sys::cuMemGetAllocationGranularity(size, properties, granularity).result()?;
            sys::cuMemCreate(&raw mut handle, len, properties, 0).result()?;
        }
        Ok(Self { handle, len })
    }

    /// Maps all of it at addresses of its own.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn map(&self) -> Result<Mapping, Failure> {
        let mut address = 0;
        // SAFETY: all zeroes is a value of this plain structure of C.
        let mut access: sys::CUmemAccessDesc = unsafe { std::mem::zeroed() };
        access.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        access.flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        // SAFETY: every pointer leads to a local variable; the range was just reserved.
        unsafe {
            sys::cuMemAddressReserve(&raw mut address, self.len, 0, 0, 0).result()?;
            sys::cuMemMap(address, self.len, 0, self.handle, 0).result()?;
            sys::cuMemSetAccess(address, self.len, &raw const access, 1).result()?;
        }
        Ok(Mapping(DeviceRange::at(address, self.len)))
    }

    /// # Errors
    /// [`Failure::Driver`].
    pub fn release(self) -> Result<(), Failure> {
        // SAFETY: made once, taken here, so released once.
        Ok(unsafe { sys::cuMemRelease(self.handle) }.result()?)
    }
}

/// Addresses that stand for physical memory.
#[derive(Debug)]
pub struct Mapping(DeviceRange);

impl Mapping {
    /// All of it.
    pub fn all(&self) -> DeviceRange {
        self.0
    }

    /// Unmaps it and gives the addresses back.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn unmap(self) -> Result<(), Failure> {
        // SAFETY: mapped once, taken here.
        unsafe {
            sys::cuMemUnmap(self.0.address(), self.0.len()).result()?;
            Ok(sys::cuMemAddressFree(self.0.address(), self.0.len()).result()?)
        }
    }
}

/// Managed memory that any stream may touch.
///
/// # Errors
/// [`Failure::Driver`].
pub fn alloc_managed(len: usize) -> Result<DeviceRange, Failure> {
    let mut address = 0;
    // SAFETY: the out-pointer is valid; 1 is CU_MEM_ATTACH_GLOBAL.
    unsafe { sys::cuMemAllocManaged(&raw mut address, len, 1) }.result()?;
    Ok(DeviceRange::at(address, len))
}

/// `cuMemFree` of an address.
///
/// # Errors
/// [`Failure::Driver`].
pub fn free_range(memory: DeviceRange) -> Result<(), Failure> {
    // SAFETY: the programs free what they have allocated, once.
    Ok(unsafe { result::free_sync(memory.address()) }?)
}

/// `cuMemFreeAsync` of an address.
///
/// # Errors
/// [`Failure::Driver`].
pub fn free_range_async(memory: DeviceRange, stream: &Stream) -> Result<(), Failure> {
    // SAFETY: as above.
    Ok(unsafe { result::free_async(memory.address(), stream.raw()) }?)
}

/// `cuMemPrefetchAsync` to device 0.
///
/// # Errors
/// [`Failure::Driver`].
pub fn prefetch(memory: DeviceRange, stream: &Stream) -> Result<(), Failure> {
    // SAFETY: the range is managed memory that is alive.
    let status =
        unsafe { sys::cuMemPrefetchAsync(memory.address(), memory.len(), 0, stream.raw()) };
    Ok(status.result()?)
}

/// `cuMemsetD8`: through the default stream, asynchronous to the host.
///
/// # Errors
/// [`Failure::Driver`].
pub fn set_bytes_default(target: DeviceRange, value: u8) -> Result<(), Failure> {
    // SAFETY: the range is inside a live allocation.
    Ok(unsafe { result::memset_d8_sync(target.address(), value, target.len()) }?)
}

/// `cuMemcpyDtoD`: through the default stream, asynchronous to the host.
///
/// # Errors
/// [`Failure::Driver`].
pub fn copy_on_device_default(target: DeviceRange, source: DeviceRange) -> Result<(), Failure> {
    let len = target.len().min(source.len());
    // SAFETY: both ranges are inside live allocations of at least `len` bytes.
    Ok(unsafe { sys::cuMemcpyDtoD_v2(target.address(), source.address(), len) }.result()?)
}

/// Synchronous memory operations on this memory wait from now on.
///
/// # Errors
/// [`Failure::Driver`].
pub fn set_sync_memops(memory: DeviceRange) -> Result<(), Failure> {
    let yes = 1u32;
    let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
    let value = ptr::from_ref(&yes).cast::<c_void>();
    // SAFETY: the value is what the attribute takes; the memory is alive.
    Ok(unsafe { sys::cuPointerSetAttribute(value, attribute, memory.address()) }.result()?)
}

/// `cuStreamWriteValue32` of the first word of `word`; without barrier earlier work of the stream
/// need not be visible to who sees the value.
///
/// # Errors
/// [`Failure::Driver`].
pub fn write_value(
    word: DeviceRange,
    value: u32,
    barrier: bool,
    stream: &Stream,
) -> Result<(), Failure> {
    let flags = if barrier {
        sys::CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT
    } else {
        sys::CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
    };
    // SAFETY: the word is device memory that is alive.
    let status =
        unsafe { sys::cuStreamWriteValue32_v2(stream.raw(), word.address(), value, flags as u32) };
    Ok(status.result()?)
}

/// `cuStreamWaitValue32`: until the first word of `word` is at least `value`.
///
/// # Errors
/// [`Failure::Driver`].
pub fn wait_value(word: DeviceRange, value: u32, stream: &Stream) -> Result<(), Failure> {
    // SAFETY: the word is device memory that is alive; 0 is CU_STREAM_WAIT_VALUE_GEQ.
    let status = unsafe { sys::cuStreamWaitValue32_v2(stream.raw(), word.address(), value, 0) };
    Ok(status.result()?)
}

/// Ordinary memory made page-locked.
#[derive(Debug)]
pub struct Registered(Vec<u8>);

impl Registered {
    /// # Errors
    /// [`Failure::Driver`].
    pub fn new(mut memory: Vec<u8>) -> Result<Self, Failure> {
        // SAFETY: the memory stays where it is for as long as it is registered.
        unsafe { sys::cuMemHostRegister_v2(memory.as_mut_ptr().cast(), memory.len(), 0) }
            .result()?;
        Ok(Self(memory))
    }

    /// Asynchronous copy of its first bytes to the device.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    ///
    /// # Panics
    /// When the target is longer than this memory.
    pub fn copy_to_device(&self, target: DeviceRange, stream: &Stream) -> Result<(), Failure> {
        assert!(target.len() <= self.0.len(), "copy outside the registered memory");
        let (source, len) = (self.0.as_ptr().cast::<c_void>(), target.len());
        // SAFETY: both sides are that long; the memory outlives the copy.
        let status =
            unsafe { sys::cuMemcpyHtoDAsync_v2(target.address(), source, len, stream.raw()) };
        Ok(status.result()?)
    }

    /// Gives the ordinary memory back.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn unregister(mut self) -> Result<Vec<u8>, Failure> {
        // SAFETY: registered once, taken here.
        unsafe { sys::cuMemHostUnregister(self.0.as_mut_ptr().cast()) }.result()?;
        Ok(self.0)
    }
}
