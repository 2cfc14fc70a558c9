//! Copies.

use super::args::In;
use super::enter::twins;
use crate::driver::{COPY_WORDS, CopyEnd, CopySpec, Issue, Role};
use crate::errors::{CuError, Outcome};

/// One end of CUDA_MEMCPY2D.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct End2D {
    x: u64,
    y: u64,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: u64,
}

/// CUDA_MEMCPY2D.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Copy2D {
    source: End2D,
    destination: End2D,
    width: u64,
    height: u64,
}

/// One end of CUDA_MEMCPY3D, and of CUDA_MEMCPY3D_PEER, which has a context where the other has a
/// reserved word.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct End3D {
    x: u64,
    y: u64,
    z: u64,
    level: u64,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    context: u64,
    pitch: u64,
    height: u64,
}

/// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Copy3D {
    source: End3D,
    destination: End3D,
    width: u64,
    height: u64,
    depth: u64,
}

const _: () = assert!(size_of::<Copy2D>() == 128 && size_of::<Copy3D>() == 200);

const HOST: u32 = 1;
const DEVICE: u32 = 2;
const ARRAY: u32 = 3;
const UNIFIED: u32 = 4;

/// Role and base address of an end, by its memory type.
fn base(kind: u32, host: u64, device: u64) -> Outcome<(Role, u64)> {
    match kind {
        HOST => Ok((Role::Host, host)),
        DEVICE => Ok((Role::Device, device)),
        UNIFIED => Ok((Role::Unified, device)),
        _ => Err(CuError::INVALID_VALUE),
    }
}

impl End3D {
    fn end(&self, copy: &Copy3D) -> Outcome<CopyEnd> {
        if self.kind == ARRAY {
            return Ok(CopyEnd::flat(Role::Array([self.x, self.y, self.z]), self.array));
        }
        let (role, start) = base(self.kind, self.host, self.device)?;
        let many_rows = copy.height > 1 || self.y > 0;
        let row = self.x.checked_add(copy.width);
        let short = row.is_none_or(|row| (many_rows || copy.depth > 1) && self.pitch < row);
        let slice = self.pitch.checked_mul(self.height).ok_or(CuError::INVALID_VALUE)?;
        let rows = self.y.checked_add(copy.height);
        let low = rows.is_none_or(|rows| (copy.depth > 1 || self.z > 0) && self.height < rows);
        if short || low {
            return Err(CuError::INVALID_VALUE);
        }
        let offset = self.z.checked_mul(slice).and_then(|offset| {
            offset.checked_add(self.y.checked_mul(self.pitch)?)?.checked_add(self.x)
        });
        let start = offset.and_then(|offset| start.checked_add(offset));
        let start = start.ok_or(CuError::INVALID_VALUE)?;
        Ok(CopyEnd { role, start, pitch: self.pitch, slice })
    }
}

impl Copy3D {
    pub(super) fn spec(&self) -> Outcome<CopySpec> {
        let source = self.source.end(self)?;
        let destination = self.destination.end(self)?;
        let (width, height, depth) = (self.width, self.height, self.depth);
        Ok(CopySpec { source, destination, width, height, depth })
    }
}

impl CopyEnd {
    /// The end as CUDA_MEMCPY3D has it, its offsets folded into the address.
    fn describe(&self) -> End3D {
        let (kind, host, device, array) = match self.role {
            Role::Host => (HOST, self.start, 0, 0),
            Role::Device => (DEVICE, 0, self.start, 0),
            Role::Unified => (UNIFIED, 0, self.start, 0),
            Role::Array(_) => (ARRAY, 0, 0, self.start),
        };
        let [x, y, z] = if let Role::Array(at) = self.role { at } else { [0; 3] };
        let height = self.slice.checked_div(self.pitch).unwrap_or(0);
        let (pitch, context) = (self.pitch, 0);
        End3D { x, y, z, level: 0, kind, host, device, array, context, pitch, height }
    }
}

impl End3D {
    fn words(&self) -> [u64; 11] {
        let &End3D { x, y, z, level, kind, host, device, array, context, pitch, height } = self;
        [x, y, z, level, kind.into(), host, device, array, context, pitch, height]
    }
}

impl Copy3D {
    /// The structure word by word.
    pub(super) fn words(&self) -> [u64; COPY_WORDS] {
        let mut words = [0; COPY_WORDS];
        words[..11].copy_from_slice(&self.source.words());
        words[11..22].copy_from_slice(&self.destination.words());
        words[22..].copy_from_slice(&[self.width, self.height, self.depth]);
        words
    }
}

impl From<&CopySpec> for Copy3D {
    fn from(spec: &CopySpec) -> Copy3D {
        Copy3D {
            source: spec.source.describe(),
            destination: spec.destination.describe(),
            width: spec.width,
            height: spec.height,
            depth: spec.depth,
        }
    }
}

impl From<End2D> for End3D {
    fn from(end: End2D) -> End3D {
        let End2D { x, y, kind, host, device, array, pitch } = end;
        End3D { x, y, z: 0, level: 0, kind, host, device, array, context: 0, pitch, height: 0 }
    }
}

impl Copy2D {
    fn spec(self) -> Outcome<CopySpec> {
        let (source, destination) = (self.source.into(), self.destination.into());
        let (width, height) = (self.width, self.height);
        Copy3D { source, destination, width, height, depth: 1 }.spec()
    }
}

pub(super) fn flat(destination: (Role, u64), source: (Role, u64), bytes: u64) -> CopySpec {
    CopySpec {
        source: CopyEnd::flat(source.0, source.1),
        destination: CopyEnd::flat(destination.0, destination.1),
        width: bytes,
        height: 1,
        depth: 1,
    }
}

use Role::{Device, Host, Unified};

twins! { TWINS;
    fn cuMemcpy / cuMemcpy_ptds(to: u64, from: u64, bytes: u64) |call, default| {
        call.copy(&flat((Unified, to), (Unified, from), bytes), Issue::synchronous(default))
    }
    fn cuMemcpyAsync / cuMemcpyAsync_ptsz(
        to: u64,
        from: u64,
        bytes: u64,
        stream: u64,
    ) |call, default| {
        let issue = Issue::asynchronous(stream, default);
        call.copy(&flat((Unified, to), (Unified, from), bytes), issue)
    }
    fn cuMemcpyHtoD_v2 / cuMemcpyHtoD_v2_ptds(to: u64, from: u64, bytes: u64) |call, default| {
        call.copy(&flat((Device, to), (Host, from), bytes), Issue::synchronous(default))
    }
    fn cuMemcpyHtoDAsync_v2 / cuMemcpyHtoDAsync_v2_ptsz(
        to: u64,
        from: u64,
        bytes: u64,
        stream: u64,
    ) |call, default| {
        let issue = Issue::asynchronous(stream, default);
        call.copy(&flat((Device, to), (Host, from), bytes), issue)
    }
    fn cuMemcpyDtoH_v2 / cuMemcpyDtoH_v2_ptds(to: u64, from: u64, bytes: u64) |call, default| {
        call.copy(&flat((Host, to), (Device, from), bytes), Issue::synchronous(default))
    }
    fn cuMemcpyDtoHAsync_v2 / cuMemcpyDtoHAsync_v2_ptsz(
        to: u64,
        from: u64,
        bytes: u64,
        stream: u64,
    ) |call, default| {
        let issue = Issue::asynchronous(stream, default);
        call.copy(&flat((Host, to), (Device, from), bytes), issue)
    }
    fn cuMemcpyDtoD_v2 / cuMemcpyDtoD_v2_ptds(to: u64, from: u64, bytes: u64) |call, default| {
        call.copy(&flat((Device, to), (Device, from), bytes), Issue::synchronous(default))
    }
    fn cuMemcpyDtoDAsync_v2 / cuMemcpyDtoDAsync_v2_ptsz(
        to: u64,
        from: u64,
        bytes: u64,
        stream: u64,
    ) |call, default| {
        let issue = Issue::asynchronous(stream, default);
        call.copy(&flat((Device, to), (Device, from), bytes), issue)
    }
    fn cuMemcpyPeer / cuMemcpyPeer_ptds(
        to: u64,
        to_context: u64,
        from: u64,
        from_context: u64,
        bytes: u64,
    ) |call, default| {
        let peers = Some((to_context, from_context));
        let issue = Issue { peers, ..Issue::synchronous(default) };
        call.copy(&flat((Device, to), (Device, from), bytes), issue)
    }
    fn cuMemcpyPeerAsync / cuMemcpyPeerAsync_ptsz(
        to: u64,
        to_context: u64,
        from: u64,
        from_context: u64,
        bytes: u64,
        stream: u64,
    ) |call, default| {
        let peers = Some((to_context, from_context));
        let issue = Issue { peers, ..Issue::asynchronous(stream, default) };
        call.copy(&flat((Device, to), (Device, from), bytes), issue)
    }
    fn cuMemcpy2D_v2 / cuMemcpy2D_v2_ptds(copy: In<Copy2D>) |call, default| {
        call.copy(&copy.get()?.spec()?, Issue::synchronous(default))
    }
    fn cuMemcpy2DUnaligned_v2 / cuMemcpy2DUnaligned_v2_ptds(copy: In<Copy2D>) |call, default| {
        call.copy(&copy.get()?.spec()?, Issue::synchronous(default))
    }
    fn cuMemcpy2DAsync_v2 / cuMemcpy2DAsync_v2_ptsz(
        copy: In<Copy2D>,
        stream: u64,
    ) |call, default| {
        call.copy(&copy.get()?.spec()?, Issue::asynchronous(stream, default))
    }
    fn cuMemcpy3D_v2 / cuMemcpy3D_v2_ptds(copy: In<Copy3D>) |call, default| {
        call.copy(&copy.get()?.spec()?, Issue::synchronous(default))
    }
    fn cuMemcpy3DAsync_v2 / cuMemcpy3DAsync_v2_ptsz(
        copy: In<Copy3D>,
        stream: u64,
    ) |call, default| {
        call.copy(&copy.get()?.spec()?, Issue::asynchronous(stream, default))
    }
    fn cuMemcpy3DPeer / cuMemcpy3DPeer_ptds(copy: In<Copy3D>) |call, default| {
        let copy = copy.get()?;
        let peers = Some((copy.destination.context, copy.source.context));
        call.copy(&copy.spec()?, Issue { peers, ..Issue::synchronous(default) })
    }
    fn cuMemcpy3DPeerAsync / cuMemcpy3DPeerAsync_ptsz(
        copy: In<Copy3D>,
        stream: u64,
    ) |call, default| {
        let copy = copy.get()?;
        let peers = Some((copy.destination.context, copy.source.context));
        call.copy(&copy.spec()?, Issue { peers, ..Issue::asynchronous(stream, default) })
    }
}
