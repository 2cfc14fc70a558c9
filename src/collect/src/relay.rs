//! The way from the collector to the recorder, which works on a thread of its own: draining, merging and
//! resolving go on while the engine and the feeding of the writer take what was resolved before.
//!
//! Steps are handed on in batches, in their order. The waiting steps are bounded in bytes; at the
//! bound the collector waits, and tells the programs that wait for room as long as the recorder
//! gets on. Where no thread can be started, the recorder works on the collector's.
//!
//! Invariant: all batches but one that wait are full, so that the bound in bytes bounds their number
//! too. A batch keeps the room of a full one whatever is in it.

use super::launch::KnownLaunch;
use super::recorder::Recorder;
use std::collections::VecDeque;
use std::mem::size_of_val;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use streamsan_model::{Access, Entity, OpSeq, TraceItem};

/// Steps of a batch, and bytes of one that is not held back for more.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 128 << 10;
/// Bytes that may wait: about ten thousand operations.
const MOST_WAITING: usize = if cfg!(test) { 64 << 10 } else { 4 << 20 };
/// How many times as much memory a step takes as its rows take in the file.
const IN_MEMORY: usize = 4;
/// Between two looks at a recorder or a disk that is behind, and how long a disk may take nothing before
/// programs no longer wait for it. One commit may take seconds.
const PAUSE: Duration = Duration::from_millis(1);
const DISK_PATIENCE: Duration = Duration::from_secs(30);

/// The messages to the recorder.
#[derive(Debug)]
pub(super) enum Step {
    Item(TraceItem),
    /// The accesses of a launch, and how many of them come before its kernel's wait, where that
    /// differs from what was said.
    Exact(OpSeq, Vec<Access>, Option<u32>),
    Known(KnownLaunch),
    /// A fact about the recording.
    Note(&'static str, String),
    AnalyseMeanwhile,
    BeginCommit,
    #[cfg(test)]
    Panic,
}

impl Step {
    /// About how many bytes it takes, with the room of lists that is not filled.
    fn bytes(&self) -> usize {
        let own = size_of_val(self);
        own + match self {
            Self::Item(TraceItem::Operation(operation)) => room(&operation.accesses),
            Self::Item(TraceItem::Entity(Entity::Graph(graph))) => {
                let accesses = graph.nodes.iter().map(|node| room(&node.accesses));
                room(&graph.nodes) + accesses.sum::<usize>()
            }
            Self::Exact(_, accesses, _) => room(accesses),
            Self::Known(known) => known.accesses.as_ref().map_or(0, room),
            _ => 0,
        }
    }

    /// Does it; `gets_on` is called while the disk is behind and takes something.
    fn apply(&self, recorder: &mut Recorder, gets_on: &dyn Fn()) {
        wait_for_disk(recorder, gets_on);
        match self {
            Self::Item(item) => recorder.item(item),
            Self::Exact(g, accesses, early) => {
                recorder.replace_exact_accesses(*g, (accesses, *early));
            }
            Self::Known(known) => recorder.learn(known),
            Self::Note(fact, value) => recorder.note(fact, value),
            Self::AnalyseMeanwhile => recorder.analyse_meanwhile(),
            Self::BeginCommit => recorder.begin_commit(),
            #[cfg(test)]
            Self::Panic => panic!("a test asks for it"),
        }
    }
}

/// Bytes of a list.
fn room<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

/// Waits while as much waits for the disk as may.
fn wait_for_disk(recorder: &mut Recorder, gets_on: &dyn Fn()) {
    if !recorder.is_behind() {
        return;
    }
    let (mut bytes, mut since) = (recorder.bytes_behind(), Instant::now());
    loop {
        recorder.begin_commit();
        if !recorder.is_behind() {
            return;
        }
        thread::sleep(PAUSE);
        let left = recorder.bytes_behind();
        if left != bytes {
            (bytes, since) = (left, Instant::now());
        }
        if since.elapsed() < DISK_PATIENCE {
            gets_on();
        }
    }
}

#[derive(Debug, Default)]
struct Batch {
    steps: Vec<Step>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct BatchQueue {
    batches: VecDeque<Batch>,
    /// Bytes of these, and of the one that the recorder has.
    bytes: usize,
    /// Batches that are done with, to be filled again. Their steps are still in them: memory that goes
    /// back on another thread than its own is not used again for long, and a run's memory would grow.
    spares: Vec<Batch>,
    /// Nothing more comes.
    closed: bool,
}

/// The state that both sides see.
#[derive(Debug, Default)]
struct RelayState {
    queue: Mutex<BatchQueue>,
    /// A batch has come, or none comes any more.
    filled: Condvar,
    /// A batch is done.
    emptied: Condvar,
    /// Changes while the recorder gets on.
    progress: AtomicU64,
    /// How far the writing is behind.
    bytes_behind: AtomicU64,
    /// The recorder's thread has ended, for whatever reason.
    ended: AtomicBool,
}

impl RelayState {
    fn queue(&self) -> MutexGuard<'_, BatchQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get_on(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// The next batch, once there is one, in exchange for the one before; `None` when no more come.
    fn next(&self, done: Batch) -> Option<Batch> {
        let mut queue = self.queue();
        queue.bytes -= done.bytes;
        queue.spares.push(Batch { bytes: 0, ..done });
        self.emptied.notify_one();
        loop {
            if let Some(batch) = queue.batches.pop_front() {
                return Some(batch);
            }
            if queue.closed {
                return None;
            }
            queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Says at its end that the thread has ended.
struct Ending(Arc<RelayState>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
        // Under the lock, so that nobody falls asleep between looking and waiting.
        let _queue = self.0.queue();
        self.0.emptied.notify_all();
    }
}

fn record(shared: &Arc<RelayState>, given: &Receiver<Recorder>) -> Option<Recorder> {
    let _ending = Ending(Arc::clone(shared));
    let mut recorder = given.recv().ok()?;
    let mut batch = Batch::default();
    while let Some(next) = shared.next(batch) {
        batch = next;
        for step in &batch.steps {
            step.apply(&mut recorder, &|| shared.get_on());
            shared.get_on();
        }
        shared.bytes_behind.store(recorder.bytes_behind(), Ordering::Relaxed);
    }
    Some(recorder)
}

/// The recorder's thread.
#[derive(Debug)]
struct Beside {
    shared: Arc<RelayState>,
    thread: JoinHandle<Option<Recorder>>,
    /// The batch being gathered.
    batch: Batch,
}

impl Beside {
    fn put(&mut self, step: Step, gets_on: &dyn Fn()) {
        self.batch.bytes += step.bytes();
        self.batch.steps.push(step);
        if self.batch.steps.len() >= BATCH || self.batch.bytes >= BATCH_BYTES {
            self.flush(gets_on);
        }
    }

    /// Hands on what is gathered, if the recorder has nothing else to do: until then more may be
    /// gathered.
    fn flush_if_idle(&mut self, gets_on: &dyn Fn()) {
        if self.shared.queue().batches.is_empty() {
            self.flush(gets_on);
        }
    }

    fn flush(&mut self, gets_on: &dyn Fn()) {
        if self.batch.steps.is_empty() {
            return;
        }
        let mut seen = self.shared.progress.load(Ordering::Relaxed);
        let mut queue = self.shared.queue();
        while queue.bytes > MOST_WAITING && !self.shared.ended.load(Ordering::Acquire) {
            let waited = self.shared.emptied.wait_timeout(queue, PAUSE);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            let progress = self.shared.progress.load(Ordering::Relaxed);
            if std::mem::replace(&mut seen, progress) != progress {
                gets_on();
            }
        }
        let spare = queue.spares.pop().unwrap_or_default();
        let full = std::mem::replace(&mut self.batch, spare);
        queue.bytes += full.bytes;
        queue.batches.push_back(full);
        self.shared.filled.notify_one();
        drop(queue);
        self.batch.steps.clear();
    }

    fn bytes_behind(&self) -> u64 {
        let waiting = self.shared.queue().bytes + self.batch.bytes;
        self.shared.bytes_behind.load(Ordering::Relaxed) + (waiting / IN_MEMORY) as u64
    }

    /// Has everything done that was handed over.
    fn end(mut self, gets_on: &dyn Fn()) -> Recorder {
        self.flush(gets_on);
        self.close();
        let mut seen = self.shared.progress.load(Ordering::Relaxed);
        let mut queue = self.shared.queue();
        while !self.shared.ended.load(Ordering::Acquire) {
            let waited = self.shared.emptied.wait_timeout(queue, PAUSE);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            let progress = self.shared.progress.load(Ordering::Relaxed);
            if std::mem::replace(&mut seen, progress) != progress {
                gets_on();
            }
        }
        drop(queue);
        match self.thread.join() {
            Ok(Some(recorder)) => recorder,
            Ok(None) => unreachable!("the recorder was given to its thread"),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn close(&self) {
        self.shared.queue().closed = true;
        self.shared.filled.notify_one();
    }
}

#[derive(Debug)]
enum Place {
    Beside(Beside),
    /// On the collector's thread.
    Here(Box<Recorder>),
    /// It was given back.
    Gone,
}

/// The recorder, wherever it works.
#[derive(Debug)]
pub(super) struct Relay {
    place: Place,
}

impl Relay {
    /// Gives the recorder a thread of its own, if one can be started.
    pub(super) fn new(recorder: Recorder) -> Self {
        let shared = Arc::new(RelayState::default());
        let (give, given) = sync_channel(1);
        let seen = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("recorder".to_owned()).spawn(move || record(&seen, &given));
        match thread {
            Err(_) => Self::here(recorder),
            Ok(thread) => match give.send(recorder) {
                Ok(()) => Self {
                    place: Place::Beside(Beside { shared, thread, batch: Batch::default() }),
                },
                Err(unsent) => Self::here(unsent.0),
            },
        }
    }

    fn here(recorder: Recorder) -> Self {
        Self { place: Place::Here(Box::new(recorder)) }
    }

    /// Hands a step on. `gets_on` is called while this has to wait and the recorder gets on.
    pub(super) fn put(&mut self, step: Step, gets_on: &dyn Fn()) {
        match &mut self.place {
            Place::Beside(beside) => beside.put(step, gets_on),
            Place::Here(recorder) => step.apply(recorder, gets_on),
            Place::Gone => {}
        }
    }

    /// Nothing more comes for the moment. What is gathered goes to a recorder that has nothing to do;
    /// to one that is behind it goes with the next step or flush.
    pub(super) fn flush(&mut self, gets_on: &dyn Fn()) {
        if let Place::Beside(beside) = &mut self.place {
            beside.flush_if_idle(gets_on);
        }
    }

    /// About how many bytes of the file the recording is behind.
    pub(super) fn bytes_behind(&self) -> u64 {
        match &self.place {
            Place::Beside(beside) => beside.bytes_behind(),
            Place::Here(recorder) => recorder.bytes_behind(),
            Place::Gone => 0,
        }
    }

    /// The recorder, once all is done that was handed on.
    ///
    /// # Panics
    /// Where the recorder did, with its panic.
    pub(super) fn end(mut self, gets_on: &dyn Fn()) -> Recorder {
        match std::mem::replace(&mut self.place, Place::Gone) {
            Place::Beside(beside) => beside.end(gets_on),
            Place::Here(recorder) => *recorder,
            Place::Gone => unreachable!("the recorder is given back once"),
        }
    }
}

impl Drop for Relay {
    /// Leaves the trace as it was committed.
    fn drop(&mut self) {
        if let Place::Beside(beside) = std::mem::replace(&mut self.place, Place::Gone) {
            beside.close();
            // Whoever drops it this way does not ask how it went.
            let _ = beside.thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
