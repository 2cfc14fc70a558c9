//! Batches of copies: one operation of a stream whose entries are in no order among themselves
//! (CUDA Driver API, cuMemcpyBatchAsync).

use super::copy::{CopySpec, Prepared};
use super::sim::Call;
use super::stream::DefaultStream;
use super::work::{Job, Work};
use crate::errors::{CuError, Outcome};
use crate::schedule::Lane;

/// When the source of an entry may be read (CUmemcpySrcAccessOrder).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SourceOrder {
    Stream,
    /// Before the call returns.
    DuringCall,
    /// At any time from the call to the end of the copy.
    Any,
}

impl SourceOrder {
    pub(crate) fn from_number(number: u32) -> Outcome<SourceOrder> {
        Ok(match number {
            1 => SourceOrder::Stream,
            2 => SourceOrder::DuringCall,
            3 => SourceOrder::Any,
            _ => return Err(CuError::INVALID_VALUE),
        })
    }
}

/// An entry of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchEntry {
    pub(crate) spec: CopySpec,
    pub(crate) order: SourceOrder,
}

impl Call {
    /// Submits a batch. The legacy stream takes none. Nothing is submitted if an entry is refused,
    /// whose place comes with the error.
    pub(crate) fn copy_batch(
        &self,
        entries: &[BatchEntry],
        stream: u64,
        default: DefaultStream,
    ) -> Result<(), (CuError, usize)> {
        let whole = |error| (error, usize::MAX);
        let mut driver = self.lock();
        let id = driver.resolve(stream, default).map_err(whole)?;
        driver.refuse_capture(id).map_err(whole)?;
        if driver.is_legacy(id) || entries.is_empty() {
            return Err(whole(CuError::INVALID_VALUE));
        }
        // A source that may be read at any time is read as early as a program can least expect.
        let early = driver.policy.reorders_nodes();
        let mut copies = Vec::new();
        for (place, entry) in entries.iter().enumerate() {
            if entry.spec.is_empty() {
                return Err((CuError::INVALID_VALUE, place));
            }
            let prepared = driver.prepare_copy(&entry.spec).map_err(|error| (error, place))?;
            let now = match entry.order {
                SourceOrder::Stream => false,
                SourceOrder::DuringCall => true,
                SourceOrder::Any => early,
            };
            let Prepared { copy, .. } = prepared;
            let copy = if now { copy.staged(&entry.spec) } else { Ok(copy) };
            copies.push(copy.map_err(|error| (error, place))?);
        }
        let begin = driver.submit(id, Work::Marker, &[]);
        let (context, ordinal) =
            driver.streams.get(&id).map_or((0, 0), |stream| (stream.context, stream.ordinal));
        if early {
            copies.reverse();
        }
        let mut ops = Vec::new();
        for copy in copies {
            driver.staged += copy.staged_bytes();
            let lane = Lane { stream: driver.fresh_id(), ordinal };
            let job = Job { context, tag: 0, work: Work::Copy(Box::new(copy)) };
            ops.push(driver.queue.push(lane, &[begin], job));
        }
        driver.submit(id, Work::Marker, &ops);
        drop(self.sim.submitted(driver));
        Ok(())
    }
}
