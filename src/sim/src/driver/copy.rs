//! Copies of one, two and three dimensions: argument checks, what the host waits for, and the
//! operation itself.
//!
//! Source of the host's waits: CUDA Driver API, "API synchronization behavior". Where the manual
//! says "may" or "might", a copy here does not wait: a program that relies on the wait is wrong.

use std::sync::Arc;

use super::graph::NodeKind;
use super::sim::Call;
use super::state::Driver;
use super::stream::DefaultStream;
use super::work::Work;
use crate::errors::{CuError, Outcome};
use crate::memory::{AddressMap, Origin, load_bytes, store_bytes};
use crate::os;
use crate::schedule::OpId;

/// The kind of pointer that a copy was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Host,
    Device,
    /// Told by the address (`cuMemcpy`, `CU_MEMORYTYPE_UNIFIED`).
    Unified,
    /// An array's handle stands for the address: bytes, rows and slices to the first one copied.
    Array([u64; 3]),
}

/// One end of a copy, as the program gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyEnd {
    pub(crate) role: Role,
    /// Address of the first byte.
    pub(crate) start: u64,
    /// Bytes from row to row.
    pub(crate) pitch: u64,
    /// Bytes from slice to slice.
    pub(crate) slice: u64,
}

impl CopyEnd {
    pub(crate) fn flat(role: Role, start: u64) -> CopyEnd {
        CopyEnd { role, start, pitch: 0, slice: 0 }
    }
}

/// A copy, as the program gave it. All extents are bytes, rows and slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopySpec {
    pub(crate) source: CopyEnd,
    pub(crate) destination: CopyEnd,
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) depth: u64,
}

/// Where and how an operation is submitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Issue {
    pub(crate) stream: u64,
    pub(crate) default: DefaultStream,
    /// The form without `Async`.
    pub(crate) synchronous: bool,
    /// The two contexts of a peer copy.
    pub(crate) peers: Option<(u64, u64)>,
}

impl Issue {
    pub(crate) fn synchronous(default: DefaultStream) -> Issue {
        Issue { stream: 0, default, synchronous: true, peers: None }
    }

    pub(crate) fn asynchronous(stream: u64, default: DefaultStream) -> Issue {
        Issue { stream, default, synchronous: false, peers: None }
    }
}

/// Where the bytes of one end lie.
#[derive(Clone, Debug)]
enum BytesPlace {
    /// In the address map, checked again when the copy runs.
    Mapped,
    /// In the program's own memory.
    Pageable,
    /// Read at the call, row after row.
    Staged(Vec<u8>),
}

#[derive(Clone, Debug)]
struct Side {
    place: BytesPlace,
    start: u64,
    pitch: u64,
    slice: u64,
}

/// A copy on its way.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    source: Side,
    destination: Side,
    width: u64,
    height: u64,
    depth: u64,
}

/// Bytes moved at a time.
const CHUNK: u64 = 1 << 16;
/// Pageable memory staged by pending copies at most; a copy beyond waits for itself.
const STAGED_LIMIT: u64 = 1 << 30;

/// The address map's class of one end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Device,
    Managed,
    Pinned,
    Pageable,
}

impl Class {
    fn is_host(self) -> bool {
        matches!(self, Class::Pinned | Class::Pageable)
    }
}

impl CopySpec {
    /// Whether there is nothing to copy.
    pub(crate) fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// Bytes from the first to behind the last byte of one end.
    fn extent(&self, end: &CopyEnd) -> Outcome<u64> {
        let rows = (self.height - 1).checked_mul(end.pitch);
        let slices = (self.depth - 1).checked_mul(end.slice);
        let sum = rows
            .zip(slices)
            .and_then(|(rows, slices)| rows.checked_add(slices)?.checked_add(self.width));
        sum.filter(|bytes| end.start.checked_add(*bytes).is_some()).ok_or(CuError::INVALID_VALUE)
    }

    fn check_pitches(&self) -> Outcome {
        for end in [&self.source, &self.destination] {
            let short_row = self.height > 1 && end.pitch < self.width;
            let short_slice = self.depth > 1 && end.slice < end.pitch.saturating_mul(self.height);
            if short_row || short_slice {
                return Err(CuError::INVALID_VALUE);
            }
        }
        Ok(())
    }
}

impl Driver {
    /// Finds out what kind of memory one end lies in, and whether all of it is there. The flag
    /// says that synchronous operations on it were asked to be fully synchronous.
    fn classify(&self, end: &CopyEnd, extent: u64) -> Outcome<(Class, bool)> {
        if end.start == 0 {
            return Err(CuError::INVALID_VALUE);
        }
        let Some(region) = self.map.containing(end.start) else {
            // Unknown to the driver: the program's own memory, which is no device pointer.
            let pageable =
                end.role != Role::Device && self.map.overlapping(end.start, extent).is_none();
            let found = pageable.then_some((Class::Pageable, false));
            return found.ok_or(CuError::INVALID_VALUE);
        };
        let class = match region.origin {
            _ if !region.is_named() => return Err(CuError::INVALID_VALUE),
            Origin::Device
            | Origin::Global
            | Origin::Graph
            | Origin::Array
            | Origin::Mapped
            | Origin::Pool(_) => Class::Device,
            Origin::Managed => Class::Managed,
            Origin::Pinned | Origin::Registered => Class::Pinned,
        };
        if self.map.range(end.start, extent).is_none() {
            // Host memory may be registered in part; then it is not pinned to the copy.
            let partly = region.origin == Origin::Registered && end.role != Role::Device;
            return if partly { Ok((Class::Pageable, false)) } else { Err(CuError::INVALID_VALUE) };
        }
        // Under unified addressing a device pointer passes for a host pointer.
        Ok((class, region.sync_memops))
    }
}

/// A copy whose arguments are in order, and what is known of its ends.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) copy: Copy,
    from: Class,
    to: Class,
    /// Memory whose synchronous operations were asked to be fully synchronous.
    asked: bool,
}

impl Prepared {
    /// The roles that the two ends have by the memory they lie in.
    pub(super) fn roles(&self) -> [Role; 2] {
        [self.from, self.to].map(|class| match class {
            Class::Device => Role::Device,
            Class::Managed => Role::Unified,
            Class::Pinned | Class::Pageable => Role::Host,
        })
    }
}

impl Driver {
    /// Checks a copy of at least one byte.
    pub(super) fn prepare_copy(&self, spec: &CopySpec) -> Outcome<Prepared> {
        let spec = &self.without_arrays(spec)?;
        spec.check_pitches()?;
        let source_extent = spec.extent(&spec.source)?;
        let (from, source_sync) = self.classify(&spec.source, source_extent)?;
        let destination_extent = spec.extent(&spec.destination)?;
        let (to, destination_sync) = self.classify(&spec.destination, destination_extent)?;
        let place = |class| {
            if class == Class::Pageable { BytesPlace::Pageable } else { BytesPlace::Mapped }
        };
        let side = |end: &CopyEnd, class| Side {
            place: place(class),
            start: end.start,
            pitch: end.pitch,
            slice: end.slice,
        };
        let (source, destination) = (side(&spec.source, from), side(&spec.destination, to));
        let (width, height, depth) = (spec.width, spec.height, spec.depth);
        let copy = Copy { source, destination, width, height, depth };
        Ok(Prepared { copy, from, to, asked: source_sync || destination_sync })
    }
}

impl Call {
    pub(crate) fn copy(&self, spec: &CopySpec, issue: Issue) -> Outcome {
        let mut driver = self.lock();
        let stream = driver.resolve(issue.stream, issue.default)?;
        if spec.is_empty() {
            return Ok(());
        }
        if driver.is_capturing(stream)? {
            if issue.synchronous {
                return driver.refuse_capture(stream);
            }
            let context = driver.streams.get(&stream).map_or(0, |stream| stream.context);
            let node = driver.copy_node(*spec, None, context)?;
            return driver.capture(stream, NodeKind::Copy(Box::new(node))).map(|_| ());
        }
        let Prepared { mut copy, from, to, asked } = driver.prepare_copy(spec)?;
        let mut also: Vec<OpId> = Vec::new();
        if let Some((a, b)) = issue.peers {
            for context in [a, b] {
                driver.usable(context)?;
                also.extend(driver.peer_barrier(context, issue.synchronous));
            }
        }

        let stages = from == Class::Pageable && !to.is_host();
        if stages && issue.synchronous {
            // A stream synchronisation precedes the copy to the staging buffer.
            let targets = driver.stream_targets(stream);
            driver = self.sim.wait(driver, &targets);
        }
        if stages {
            copy = copy.staged(spec)?;
        }
        let op = driver.submit(stream, Work::Copy(Box::new(copy)), &also);
        if issue.synchronous
            && let Some((a, b)) = issue.peers
        {
            for context in [a, b] {
                driver.set_legacy_tail(context, op);
            }
        }
        let full = driver.staged > STAGED_LIMIT;
        let asked = asked || driver.sync_memops(stream);
        let mut driver = self.sim.submitted(driver);
        let both_host = from.is_host() && to.is_host();
        let waits = if issue.synchronous {
            let managed = from == Class::Managed || to == Class::Managed;
            to.is_host() || from == Class::Pinned || managed || asked
        } else {
            both_host
        };
        if waits || full {
            driver = self.sim.wait(driver, &[op]);
            if let Some(context) = driver.streams.get(&stream).map(|stream| stream.context) {
                driver.usable(context)?;
            }
        }
        Ok(())
    }
}

impl Driver {
    /// Whether the context of a stream was asked to make synchronous operations fully so.
    pub(super) fn sync_memops(&self, stream: u64) -> bool {
        let context = self.streams.get(&stream).map(|stream| stream.context);
        let context = context.and_then(|context| self.contexts.get(context));
        context.is_some_and(|context| context.sync_memops())
    }

    /// The operations that a peer copy waits for in the context of one of its ends: a synchronous
    /// one starts after all that was submitted to either device.
    fn peer_barrier(&self, context: u64, synchronous: bool) -> Vec<OpId> {
        let Some(entry) = self.contexts.get(context).filter(|_| synchronous) else {
            return Vec::new();
        };
        self.stream_targets(entry.legacy)
    }

    /// Makes an operation the last of a context's legacy stream, so that its blocking streams
    /// wait for it.
    fn set_legacy_tail(&mut self, context: u64, op: OpId) {
        let legacy = self.contexts.get(context).map(|context| context.legacy);
        if let Some(stream) = legacy.and_then(|legacy| self.streams.get_mut(&legacy)) {
            stream.tail = Some(op);
        }
    }
}

impl Side {
    fn row(&self, y: u64, z: u64) -> u64 {
        self.start + y * self.pitch + z * self.slice
    }

    /// Reads all rows now.
    fn stage(self, spec: &CopySpec) -> Outcome<Side> {
        let bytes =
            spec.width.checked_mul(spec.height).and_then(|area| area.checked_mul(spec.depth));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or(CuError::INVALID_VALUE)?;
        let mut staged = Vec::new();
        staged.try_reserve_exact(bytes).map_err(|_| CuError::OUT_OF_MEMORY)?;
        staged.resize(bytes, 0);
        let rows = staged.chunks_exact_mut(spec.width as usize);
        // Page-locked memory is read as a device reads it, also where a fence stands.
        let read = match self.place {
            BytesPlace::Mapped => os::read_registered,
            BytesPlace::Staged(_) | BytesPlace::Pageable => os::read_host,
        };
        for (index, row) in (0u64..).zip(rows) {
            if !read(self.row(index % spec.height, index / spec.height), row) {
                return Err(CuError::INVALID_VALUE);
            }
        }
        let (pitch, slice) = (spec.width, spec.width * spec.height);
        Ok(Side { place: BytesPlace::Staged(staged), start: 0, pitch, slice })
    }

    fn read(&self, map: &AddressMap, address: u64, into: &mut [u8]) -> Outcome {
        match &self.place {
            BytesPlace::Staged(bytes) => {
                let at = address as usize;
                into.copy_from_slice(&bytes[at..at + into.len()]);
                Ok(())
            }
            BytesPlace::Pageable => {
                os::read_host(address, into).then_some(()).ok_or(CuError::ILLEGAL_ADDRESS)
            }
            BytesPlace::Mapped => {
                let region = map.range(address, into.len() as u64);
                let region = region.ok_or(CuError::ILLEGAL_ADDRESS)?;
                if region.origin == Origin::Registered {
                    return os::read_registered(address, into)
                        .then_some(())
                        .ok_or(CuError::ILLEGAL_ADDRESS);
                }
                load_bytes(address, into);
                Ok(())
            }
        }
    }

    fn write(&self, map: &AddressMap, address: u64, from: &[u8]) -> Outcome {
        let written = match &self.place {
            BytesPlace::Staged(_) | BytesPlace::Pageable => os::write_host(address, from),
            BytesPlace::Mapped => {
                let region = map.range(address, from.len() as u64);
                if region.ok_or(CuError::ILLEGAL_ADDRESS)?.origin == Origin::Registered {
                    os::write_registered(address, from)
                } else {
                    store_bytes(address, from);
                    true
                }
            }
        };
        written.then_some(()).ok_or(CuError::ILLEGAL_ADDRESS)
    }
}

impl Copy {
    /// The copy with its source read now.
    pub(super) fn staged(mut self, spec: &CopySpec) -> Outcome<Copy> {
        self.source = self.source.stage(spec)?;
        Ok(self)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.width * self.height * self.depth
    }

    pub(super) fn staged_bytes(&self) -> u64 {
        if let BytesPlace::Staged(bytes) = &self.source.place { bytes.len() as u64 } else { 0 }
    }

    pub(super) fn run(&self, map: &Arc<AddressMap>) -> Outcome {
        let mut buffer = vec![0; CHUNK.min(self.width) as usize];
        for z in 0..self.depth {
            for y in 0..self.height {
                let (from, to) = (self.source.row(y, z), self.destination.row(y, z));
                let mut done = 0;
                while done < self.width {
                    let length = CHUNK.min(self.width - done);
                    let part = &mut buffer[..length as usize];
                    self.source.read(map, from + done, part)?;
                    self.destination.write(map, to + done, part)?;
                    done += length;
                }
            }
        }
        Ok(())
    }
}
