//! CUDA arrays, and the copies of one dimension to and from them.

use super::args::{In, Out};
use super::enter::{api, twins};
use crate::driver::{ArrayShape, CopyEnd, CopySpec, Issue, Role};

/// CUDA_ARRAY_DESCRIPTOR.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Descriptor {
    width: u64,
    height: u64,
    format: u32,
    channels: u32,
}

/// CUDA_ARRAY3D_DESCRIPTOR.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Descriptor3D {
    width: u64,
    height: u64,
    depth: u64,
    format: u32,
    channels: u32,
    flags: u32,
}

const _: () = assert!(size_of::<Descriptor>() == 24 && size_of::<Descriptor3D>() == 40);

fn in_array(array: u64, offset: u64) -> CopyEnd {
    CopyEnd::flat(Role::Array([offset, 0, 0]), array)
}

fn row(destination: CopyEnd, source: CopyEnd, width: u64) -> CopySpec {
    CopySpec { source, destination, width, height: 1, depth: 1 }
}

use Role::{Device, Host};

api! { TABLE;
    fn cuArrayCreate_v2(array: Out<u64>, descriptor: In<Descriptor>) |call| {
        array.check()?;
        let Descriptor { width, height, format, channels } = descriptor.get()?;
        let shape = ArrayShape { width, height, depth: 0, format, channels, flags: 0 };
        array.set(call.array_create(shape)?)
    }
    fn cuArray3DCreate_v2(array: Out<u64>, descriptor: In<Descriptor3D>) |call| {
        array.check()?;
        let Descriptor3D { width, height, depth, format, channels, flags } = descriptor.get()?;
        let shape = ArrayShape { width, height, depth, format, channels, flags };
        array.set(call.array_create(shape)?)
    }
    fn cuArrayGetDescriptor_v2(descriptor: Out<Descriptor>, array: u64) |call| {
        descriptor.check()?;
        let ArrayShape { width, height, format, channels, .. } = call.array_shape(array)?;
        descriptor.set(Descriptor { width, height, format, channels })
    }
    fn cuArray3DGetDescriptor_v2(descriptor: Out<Descriptor3D>, array: u64) |call| {
        descriptor.check()?;
        let ArrayShape { width, height, depth, format, channels, flags } =
            call.array_shape(array)?;
        descriptor.set(Descriptor3D { width, height, depth, format, channels, flags })
    }
    fn cuArrayDestroy(array: u64) |call| { call.array_destroy(array) }
}

twins! { TWINS;
    fn cuMemcpyHtoA_v2 / cuMemcpyHtoA_v2_ptds(
        array: u64,
        offset: u64,
        from: u64,
        bytes: u64,
    ) |call, default| {
        let spec = row(in_array(array, offset), CopyEnd::flat(Host, from), bytes);
        call.copy(&spec, Issue::synchronous(default))
    }
    fn cuMemcpyAtoH_v2 / cuMemcpyAtoH_v2_ptds(
        to: u64,
        array: u64,
        offset: u64,
        bytes: u64,
    ) |call, default| {
        let spec = row(CopyEnd::flat(Host, to), in_array(array, offset), bytes);
        call.copy(&spec, Issue::synchronous(default))
    }
    fn cuMemcpyDtoA_v2 / cuMemcpyDtoA_v2_ptds(
        array: u64,
        offset: u64,
        from: u64,
        bytes: u64,
    ) |call, default| {
        let spec = row(in_array(array, offset), CopyEnd::flat(Device, from), bytes);
        call.copy(&spec, Issue::synchronous(default))
    }
    fn cuMemcpyAtoD_v2 / cuMemcpyAtoD_v2_ptds(
        to: u64,
        array: u64,
        offset: u64,
        bytes: u64,
    ) |call, default| {
        let spec = row(CopyEnd::flat(Device, to), in_array(array, offset), bytes);
        call.copy(&spec, Issue::synchronous(default))
    }
    fn cuMemcpyAtoA_v2 / cuMemcpyAtoA_v2_ptds(
        to: u64,
        to_offset: u64,
        from: u64,
        from_offset: u64,
        bytes: u64,
    ) |call, default| {
        let spec = row(in_array(to, to_offset), in_array(from, from_offset), bytes);
        call.copy(&spec, Issue::synchronous(default))
    }
    fn cuMemcpyHtoAAsync_v2 / cuMemcpyHtoAAsync_v2_ptsz(
        array: u64,
        offset: u64,
        from: u64,
        bytes: u64,
        stream: u64,
    ) |call, default| {
        let spec = row(in_array(array, offset), CopyEnd::flat(Host, from), bytes);
        call.copy(&spec, Issue::asynchronous(stream, default))
    }
    fn cuMemcpyAtoHAsync_v2 / cuMemcpyAtoHAsync_v2_ptsz(
        to: u64,
        array: u64,
        offset: u64,
        bytes: u64,
        stream: u64,
    ) |call, default| {
        let spec = row(CopyEnd::flat(Host, to), in_array(array, offset), bytes);
        call.copy(&spec, Issue::asynchronous(stream, default))
    }
}
