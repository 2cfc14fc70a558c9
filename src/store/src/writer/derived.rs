//! The thread that makes level-of-detail data of the batches that were inserted, beside the inserting.

#[cfg(test)]
mod tests;

use super::batch::{Batch, Spares};
use crate::lod::build;
use crate::lod::feed::{Feed, Made, Pieces};
use crate::row::{AccessRow, EdgeRow, OpRow};
use crate::schema::ACCESS_BITS;
use rusqlite::Connection;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// Batches that may wait; behind them the inserting waits.
const MOST_WAITING: usize = 16;

/// Level-of-detail data in the making. Without its thread it is read back at the end.
pub(super) struct Derived {
    running: Option<Running>,
}

struct Running {
    batches: SyncSender<Box<Batch>>,
    pieces: Receiver<Pieces>,
    emptied: Receiver<Box<Batch>>,
    /// Pieces that are inserted go back to the thread that made them. Memory that goes back on another
    /// thread is not used again for long, and a run's memory would grow.
    inserted: Sender<Pieces>,
    thread: JoinHandle<Feed>,
}

impl Derived {
    /// For a trace that already holds operations.
    pub(super) fn read_back() -> Self {
        Self { running: None }
    }

    /// For an empty trace.
    pub(super) fn start() -> Self {
        let (batches, queue) = sync_channel::<Box<Batch>>(MOST_WAITING);
        let (give, pieces) = channel();
        let (give_back, emptied) = channel();
        let (inserted, spent) = channel::<Pieces>();
        let thread = std::thread::Builder::new().name("trace detail".to_owned()).spawn(move || {
            let mut feed = Feed::new();
            for mut batch in queue {
                spent.try_iter().for_each(|pieces| feed.take_back(pieces));
                take(&mut feed, &batch);
                batch.clear();
                // A receiver that is gone needs no batch.
                let _ = give_back.send(batch);
                if let Some(pieces) = feed.end_batch() {
                    // The receiver takes the rows, or is gone together with the trace.
                    let _ = give.send(pieces);
                }
            }
            feed
        });
        Self {
            running: thread.ok().map(|thread| Running {
                batches,
                pieces,
                emptied,
                inserted,
                thread,
            }),
        }
    }

    /// Takes a batch that was inserted, and inserts rows that are ready. Processed batches become
    /// spare ones.
    pub(super) fn take(
        &mut self,
        mut batch: Box<Batch>,
        connection: &Connection,
        spares: &Spares,
    ) -> rusqlite::Result<()> {
        let Some(running) = &self.running else {
            batch.clear();
            spares.put(batch);
            return Ok(());
        };
        running.emptied.try_iter().for_each(|batch| spares.put(batch));
        if running.batches.send(batch).is_err() {
            // It panicked.
            self.running = None;
            return Ok(());
        }
        running.pieces.try_iter().try_for_each(|mut pieces| {
            pieces.insert(connection)?;
            // Its thread may have ended by a panic.
            let _ = running.inserted.send(pieces);
            Ok(())
        })
    }

    /// Fills the tables. Runs in the caller's transaction.
    pub(super) fn finish(&mut self, connection: &Connection) -> rusqlite::Result<Made> {
        let feed = self.running.take().and_then(|Running { batches, pieces, thread, .. }| {
            drop(batches);
            Some((thread.join().ok()?, pieces))
        });
        let Some((feed, pieces)) = feed else {
            build::build(connection)?;
            return Ok(Made::Nothing);
        };
        pieces.try_iter().try_for_each(|mut pieces| pieces.insert(connection))?;
        feed.finish(connection)
    }
}

/// In the order in which a batch is inserted.
fn take(feed: &mut Feed, batch: &Batch) {
    if try_take(feed, batch).is_err() {
        feed.lose();
    }
}

/// The error is a column that is NULL and may not be.
fn try_take(feed: &mut Feed, batch: &Batch) -> Result<(), usize> {
    if batch.cleared {
        feed.clear();
    }
    for returned in &batch.returns {
        feed.returned(returned.g, returned.result);
    }
    for row in batch.operations.iter() {
        feed.operation(&OpRow::of_numbers(&row)?);
    }
    let first = |id: i64| id >> ACCESS_BITS << ACCESS_BITS;
    let stays = |id: i64| batch.replaced.is_empty() || !batch.replaced.contains_key(&first(id));
    for row in batch.accesses.iter() {
        let row = AccessRow::of_numbers(&row)?;
        if stays(row.id) {
            feed.access(&row);
        }
    }
    let mut replaced: Vec<i64> = batch.replaced.keys().copied().collect();
    replaced.sort_unstable();
    let mut allocations = Vec::new();
    for rows in batch.replacements.chunk_by(|a, b| first(a.id) == first(b.id)) {
        let id = first(rows[0].id);
        allocations.clear();
        allocations.extend(rows.iter().map(|row| row.columns.allocation));
        feed.replace_accesses((id >> ACCESS_BITS) as u64, &allocations);
        if let Ok(at) = replaced.binary_search(&id) {
            replaced.remove(at);
        }
    }
    replaced.iter().for_each(|id| feed.replace_accesses((id >> ACCESS_BITS) as u64, &[]));
    for row in batch.edges.iter() {
        feed.edge(&EdgeRow::of_numbers(&row)?);
    }
    batch.sides.iter().for_each(|&(g, sides)| feed.side(g, sides));
    Ok(())
}
