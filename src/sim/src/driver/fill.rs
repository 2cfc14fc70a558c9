//! Memsets.

use std::sync::Arc;

use super::copy::Issue;
use super::graph::{FillNode, NodeKind};
use super::sim::Call;
use super::state::Driver;
use super::work::Work;
use crate::errors::{CuError, Outcome};
use crate::memory::{AddressMap, Origin, store_bytes};
use crate::os;

/// A memset, as the program gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillSpec {
    pub(crate) start: u64,
    /// Bytes from row to row; unused for one row.
    pub(crate) pitch: u64,
    pub(crate) value: u32,
    /// Bytes of one element: 1, 2 or 4.
    pub(crate) element: u64,
    /// Elements of a row.
    pub(crate) width: u64,
    pub(crate) height: u64,
}

/// A memset on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill {
    spec: FillSpec,
    /// Bytes of a row.
    row: u64,
}

impl Driver {
    /// Checks a memset of at least one element. The flag says that its target is pinned memory,
    /// or memory whose synchronous operations were asked to be fully synchronous.
    pub(super) fn prepare_fill(&self, spec: FillSpec) -> Outcome<(Fill, bool)> {
        if !matches!(spec.element, 1 | 2 | 4) {
            return Err(CuError::INVALID_VALUE);
        }
        let row = spec.width.checked_mul(spec.element).ok_or(CuError::INVALID_VALUE)?;
        let rows = (spec.height - 1).checked_mul(spec.pitch);
        let extent = rows.and_then(|rows| rows.checked_add(row)).ok_or(CuError::INVALID_VALUE)?;
        let aligned = spec.start.is_multiple_of(spec.element)
            && (spec.height == 1 || spec.pitch.is_multiple_of(spec.element));
        if !aligned || (spec.height > 1 && spec.pitch < row) {
            return Err(CuError::INVALID_VALUE);
        }
        let region = self.map.range(spec.start, extent).ok_or(CuError::INVALID_VALUE)?;
        if !region.is_named() {
            return Err(CuError::INVALID_VALUE);
        }
        Ok((Fill { spec, row }, region.is_host() || region.sync_memops))
    }
}

impl Call {
    pub(crate) fn fill(&self, spec: FillSpec, issue: Issue) -> Outcome {
        let mut driver = self.lock();
        let stream = driver.resolve(issue.stream, issue.default)?;
        if spec.width == 0 || spec.height == 0 {
            return Ok(());
        }
        let (fill, synchronous) = driver.prepare_fill(spec)?;
        if driver.is_capturing(stream)? {
            if issue.synchronous {
                return driver.refuse_capture(stream);
            }
            let context = driver.streams.get(&stream).map_or(0, |stream| stream.context);
            let node = FillNode { fill, spec, context };
            return driver.capture(stream, NodeKind::Fill(node)).map(|_| ());
        }
        // Asynchronous to the host unless the target is pinned host memory (CUDA Driver API, "API
        // synchronization behavior").
        let waits = issue.synchronous && (synchronous || driver.sync_memops(stream));
        let op = driver.submit(stream, Work::Fill(fill), &[]);
        let mut driver = self.sim.submitted(driver);
        if waits {
            driver = self.sim.wait(driver, &[op]);
            driver.current()?;
        }
        Ok(())
    }
}

impl Fill {
    pub(super) fn bytes(&self) -> u64 {
        self.row * self.spec.height
    }

    pub(super) fn run(&self, map: &Arc<AddressMap>) -> Outcome {
        let element = &self.spec.value.to_le_bytes()[..self.spec.element as usize];
        let pattern = element.repeat((self.row.min(1 << 16) / self.spec.element) as usize);
        for y in 0..self.spec.height {
            let start = self.spec.start + y * self.spec.pitch;
            let region = map.range(start, self.row).ok_or(CuError::ILLEGAL_ADDRESS)?;
            let mut done = 0;
            while done < self.row {
                let length = (pattern.len() as u64).min(self.row - done);
                let part = &pattern[..length as usize];
                if region.origin != Origin::Registered {
                    store_bytes(start + done, part);
                } else if !os::write_registered(start + done, part) {
                    return Err(CuError::ILLEGAL_ADDRESS);
                }
                done += length;
            }
        }
        Ok(())
    }
}
