//! Stream memory operations: writes of words, and waits that hold a stream until a word has a
//! value.
//!
//! A wait that is not satisfied leaves its operation paused. Whoever waits for it runs other work
//! in between, for any of it may write the word; so may the program.

use std::sync::Arc;

use super::graph::{NodeKind, WordsNode};
use super::sim::Call;
use super::state::Driver;
use super::stream::DefaultStream;
use super::work::{Turn, Work};
use crate::errors::{CuError, Outcome};
use crate::memory::{AddressMap, Origin, load_bytes, store_bytes};

/// One operation on a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WordOp {
    pub(crate) address: u64,
    /// Whether the word has 64 bits, not 32.
    pub(crate) wide: bool,
    pub(crate) value: u64,
    pub(crate) action: WordAction,
}

/// The action on a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WordAction {
    Write,
    /// Until the word is not behind the value, counting round.
    AwaitReached,
    AwaitEqual,
    /// Until a bit of the value is set in the word.
    AwaitAnd,
    /// Until a bit is set in neither.
    AwaitNor,
}

impl WordAction {
    /// The condition of CUstreamWaitValue_flags.
    pub(crate) fn wait(flags: u32) -> Outcome<WordAction> {
        Ok(match flags {
            0 => WordAction::AwaitReached,
            1 => WordAction::AwaitEqual,
            2 => WordAction::AwaitAnd,
            3 => WordAction::AwaitNor,
            // Remote writes cannot be flushed, as the device's attribute says.
            _ if flags & FLUSH != 0 => return Err(CuError::NOT_SUPPORTED),
            _ => return Err(CuError::INVALID_VALUE),
        })
    }
}

const FLUSH: u32 = 1 << 30;
/// Operations of a batch at most.
const BATCH_LIMIT: usize = 256;

/// Operations on words on their way.
#[derive(Clone, Debug)]
pub(super) struct Words {
    ops: Arc<[WordOp]>,
    /// Place of the next one.
    next: usize,
}

impl WordOp {
    fn width(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// Does it, and says whether it is done.
    fn run(&self, map: &AddressMap) -> Outcome<bool> {
        map.range(self.address, self.width() as u64).ok_or(CuError::ILLEGAL_ADDRESS)?;
        // The program may wait for the word, or set it: one atomic access, also of its own memory.
        if self.action == WordAction::Write {
            store_bytes(self.address, &self.value.to_le_bytes()[..self.width()]);
            return Ok(true);
        }
        let mut bytes = [0; 8];
        load_bytes(self.address, &mut bytes[..self.width()]);
        let (word, value) = (u64::from_le_bytes(bytes), self.value);
        let mask = if self.wide { u64::MAX } else { u64::from(u32::MAX) };
        Ok(match self.action {
            WordAction::Write => true,
            WordAction::AwaitReached if self.wide => word.wrapping_sub(value) as i64 >= 0,
            WordAction::AwaitReached => (word as u32).wrapping_sub(value as u32) as i32 >= 0,
            WordAction::AwaitEqual => word == value & mask,
            WordAction::AwaitAnd => word & value != 0,
            WordAction::AwaitNor => !(word | value) & mask != 0,
        })
    }
}

impl Words {
    pub(super) fn new(ops: Arc<[WordOp]>) -> Words {
        Words { ops, next: 0 }
    }

    pub(super) fn run(&mut self, map: &AddressMap) -> Turn {
        while let Some(op) = self.ops.get(self.next) {
            match op.run(map) {
                Ok(true) => self.next += 1,
                Ok(false) => return Turn::Blocked,
                Err(error) => return Turn::Done(500, Err(error)),
            }
        }
        Turn::Done(500, Ok(()))
    }
}

impl Driver {
    /// Words lie in device memory or in pinned memory, aligned, and not in managed memory.
    pub(super) fn check_words(&self, ops: &[WordOp]) -> Outcome {
        let fits = |op: &WordOp| {
            let width = op.width() as u64;
            let region = self.map.range(op.address, width);
            op.address.is_multiple_of(width)
                && region
                    .is_some_and(|region| region.is_named() && region.origin != Origin::Managed)
        };
        if ops.len() <= BATCH_LIMIT && ops.iter().all(fits) {
            Ok(())
        } else {
            Err(CuError::INVALID_VALUE)
        }
    }
}

impl Call {
    /// Submits operations on words as one operation of a stream.
    pub(crate) fn words(&self, node: WordsNode, stream: u64, default: DefaultStream) -> Outcome {
        let mut driver = self.lock();
        let id = driver.resolve(stream, default)?;
        driver.check_words(&node.ops)?;
        if node.ops.is_empty() {
            return Ok(());
        }
        if driver.is_capturing(id)? {
            let context = driver.streams.get(&id).map_or(0, |stream| stream.context);
            let node = WordsNode { context, ..node };
            return driver.capture(id, NodeKind::Words(node)).map(|_| ());
        }
        driver.submit(id, Work::Words(Words::new(node.ops)), &[]);
        drop(self.sim.submitted(driver));
        Ok(())
    }
}
