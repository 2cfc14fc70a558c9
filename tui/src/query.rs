//! Questions to the trace, answered by a separate thread.
//!
//! Only the newest question of each kind counts: a newer question replaces a waiting one and
//! interrupts one that is being answered. An answer has the number of its question, so that the
//! state can drop answers that come too late.

use crate::Explain;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use streamsan_model::{
    AllocationId, Axis, CallCount, Cell, Detail, Finding, Footprint, FootprintBy, Grid, History,
    Hits, Interrupt, LaneId, Lifetime, OpFilter, OpSeq, Overview, Place, QueryError, StreamId,
    StreamNames, Strip, TraceQuery,
};
use streamsan_names::printable;

/// Kinds of questions, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The contents of the trace.
    Open,
    /// An operation to select.
    Select,
    /// The cells of the rows.
    Strips,
    /// The cells of the minimap.
    Minimap,
    /// The words about a finding.
    Explain,
    /// The history of an allocation.
    History,
    /// The list of allocations.
    Allocations,
    /// Calls by entry point.
    Calls,
    /// Bytes over time.
    Footprint,
    /// The operations that a filter finds.
    Hits,
    /// The news of a trace that is being recorded.
    Refresh,
}

impl Slot {
    /// Number of kinds.
    pub const COUNT: usize = 11;
}

/// Which operation to select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// This one.
    Op(OpSeq),
    /// Some steps along a row from here: forwards above 0, as far as there are any.
    Steps { lane: LaneId, from: OpSeq, steps: i64 },
    /// The nearest one of a row.
    Nearest { lane: LaneId, axis: Axis, at: u64 },
    /// The next one (the previous one) whose name contains the text, from the other end of the
    /// trace if there is none.
    Match { text: String, from: OpSeq, forward: bool },
}

/// A question.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// See [`Slot::Open`].
    Open,
    /// See [`Slot::Select`].
    Select(Target),
    /// See [`Slot::Strips`].
    Strips(Grid, Vec<LaneId>),
    /// See [`Slot::Minimap`].
    Minimap(Axis, u32),
    /// See [`Slot::Explain`].
    Explain(Box<Finding>),
    /// See [`Slot::History`].
    History(AllocationId),
    /// See [`Slot::Allocations`].
    Allocations,
    /// See [`Slot::Calls`].
    Calls,
    /// See [`Slot::Footprint`].
    Footprint(FootprintBy, u32),
    /// See [`Slot::Hits`].
    Hits(OpFilter),
    /// See [`Slot::Refresh`].
    Refresh,
}

impl Request {
    /// Its kind.
    pub fn slot(&self) -> Slot {
        match self {
            Self::Open => Slot::Open,
            Self::Select(_) => Slot::Select,
            Self::Strips(..) => Slot::Strips,
            Self::Minimap(..) => Slot::Minimap,
            Self::Explain(_) => Slot::Explain,
            Self::History(_) => Slot::History,
            Self::Allocations => Slot::Allocations,
            Self::Calls => Slot::Calls,
            Self::Footprint(..) => Slot::Footprint,
            Self::Hits(_) => Slot::Hits,
            Self::Refresh => Slot::Refresh,
        }
    }
}

/// The data that is known once a trace is open.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The overview of the trace.
    pub overview: Overview,
    /// The names of its streams.
    streams: StreamNames,
    /// All findings, by the later operation.
    pub findings: Vec<Finding>,
    /// Where their sides are drawn.
    pub places: Places,
}

impl Opened {
    pub(crate) fn new(overview: Overview, findings: Vec<Finding>, places: Places) -> Self {
        let streams = StreamNames::of(&overview.entities, printable);
        Self { overview, streams, findings, places }
    }

    /// Takes a newer overview, answers the old one.
    pub(crate) fn replace_overview(&mut self, overview: Overview) -> Overview {
        self.streams = StreamNames::of(&overview.entities, printable);
        std::mem::replace(&mut self.overview, overview)
    }

    /// The name of a stream, as the report has it.
    pub(crate) fn stream(&self, id: StreamId) -> String {
        self.streams.name(id, &self.overview.entities)
    }

    /// The same as the object of a sentence: `the default stream`.
    pub(crate) fn the_stream(&self, id: StreamId) -> String {
        let name = self.stream(id);
        if name.starts_with("stream ") { name } else { format!("the {name}") }
    }

    /// The stream of an access or an operation, or the host.
    pub(crate) fn side(&self, id: Option<StreamId>) -> String {
        id.map_or_else(|| "host".to_owned(), |id| self.stream(id))
    }

    /// The name of a row.
    pub(crate) fn lane(&self, id: LaneId) -> String {
        match id {
            LaneId::Stream(id) => self.stream(id),
            LaneId::Host(id) => match self.overview.entities.thread(id) {
                Some(thread) => format!("thread {}", thread.tid),
                None => format!("thread {id}"),
            },
        }
    }
}

/// Where operations are drawn, by issue order.
pub type Places = Vec<(OpSeq, Place)>;

/// The news of a trace that is being recorded.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    /// Anything at all.
    pub changed: bool,
    /// The new overview, if it has changed.
    pub overview: Option<Overview>,
    /// All findings and where their sides are drawn, where these have changed.
    pub findings: Option<(Vec<Finding>, Places)>,
    /// There is more.
    pub more: bool,
    /// The recording has ended.
    pub ended: bool,
}

/// An answer.
#[derive(Debug)]
pub enum Answer {
    /// To [`Request::Open`].
    Opened(Box<Opened>),
    /// To [`Request::Select`]; `None` where there is no such operation.
    Selected(Option<Box<Detail>>),
    /// To [`Request::Strips`].
    Strips(Grid, Vec<Strip>),
    /// To [`Request::Minimap`].
    Minimap(Axis, Vec<Cell>),
    /// To [`Request::Explain`].
    Explained(String),
    /// To [`Request::History`].
    History(Option<Box<History>>),
    /// To [`Request::Allocations`].
    Allocations(Vec<Lifetime>),
    /// To [`Request::Calls`].
    Calls(Vec<CallCount>),
    /// To [`Request::Footprint`].
    Footprint(FootprintBy, Box<Footprint>),
    /// To [`Request::Hits`].
    Hits(Box<Hits>),
    /// To [`Request::Refresh`].
    Refreshed(Box<Fresh>),
    /// The question failed.
    Failed(String),
    /// The thread that answers has panicked: nothing will be answered any more.
    Broken,
}

/// A question with its number.
#[derive(Clone, Debug)]
pub struct Numbered<T> {
    /// Counts up.
    pub number: u64,
    /// The kind of the question.
    pub slot: Slot,
    /// The question, or the answer.
    pub value: T,
}

/// Allocations that the memory pane lists.
const ALLOCATIONS: u32 = 1000;

/// Answers a question, here and now.
pub fn answer(query: &dyn TraceQuery, explain: &mut Explain, request: &Request) -> Answer {
    let mut answer = || -> Result<Answer, QueryError> {
        Ok(match request {
            Request::Open => Answer::Opened(Box::new(Opened::new(
                query.overview()?,
                query.findings()?,
                query.finding_places()?,
            ))),
            Request::Select(target) => {
                let detail = find(query, target)?.map(|g| query.detail(g)).transpose()?;
                Answer::Selected(detail.flatten().map(Box::new))
            }
            Request::Strips(grid, lanes) => Answer::Strips(*grid, query.strips(*grid, lanes)?),
            Request::Minimap(axis, columns) => {
                Answer::Minimap(*axis, query.minimap(*axis, *columns)?)
            }
            Request::Explain(finding) => Answer::Explained(explain(finding)),
            Request::History(id) => Answer::History(query.history(*id)?.map(Box::new)),
            Request::Allocations => Answer::Allocations(query.allocations(ALLOCATIONS)?),
            Request::Calls => Answer::Calls(query.calls()?),
            Request::Footprint(by, columns) => {
                Answer::Footprint(*by, Box::new(query.footprint(*by, *columns)?))
            }
            Request::Hits(filter) => Answer::Hits(Box::new(query.hits(filter)?)),
            Request::Refresh => Answer::Refreshed(Box::new(look(query)?)),
        })
    };
    answer().unwrap_or_else(|error| Answer::Failed(error.to_string()))
}

fn look(query: &dyn TraceQuery) -> Result<Fresh, QueryError> {
    let step = query.refresh()?;
    let findings = || Ok::<_, QueryError>((query.findings()?, query.finding_places()?));
    Ok(Fresh {
        changed: step.changed,
        overview: step.changed.then(|| query.overview()).transpose()?,
        findings: step.findings.then(findings).transpose()?,
        more: step.more,
        ended: step.ended,
    })
}

fn find(query: &dyn TraceQuery, target: &Target) -> Result<Option<OpSeq>, QueryError> {
    match *target {
        Target::Op(g) => Ok(Some(g)),
        Target::Steps { lane, from, steps } => {
            let mut at = None;
            for _ in 0..steps.unsigned_abs() {
                match query.neighbour(lane, at.unwrap_or(from), steps > 0)? {
                    Some(next) => at = Some(next),
                    None => break,
                }
            }
            Ok(at)
        }
        Target::Nearest { lane, axis, at } => query.nearest(lane, axis, at),
        Target::Match { ref text, from, forward } => {
            if let Some(found) = query.search(text, from, forward)? {
                return Ok(Some(found));
            }
            let end = if forward { OpSeq(0) } else { OpSeq(u64::MAX) };
            query.search(text, end, forward)
        }
    }
}

#[derive(Debug, Default)]
struct Queue {
    waiting: [Option<Numbered<Request>>; Slot::COUNT],
    /// The question that is being answered.
    current: Option<Slot>,
    closed: bool,
}

/// Tells of a panic of the thread that bears it.
struct Farewell<T: From<Numbered<Answer>>>(Sender<T>);

impl<T: From<Numbered<Answer>>> Drop for Farewell<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let last = Numbered { number: 0, slot: Slot::Open, value: Answer::Broken };
            // Nobody may be there to hear it.
            let _ = self.0.send(T::from(last));
        }
    }
}

/// The thread that owns the trace.
pub struct Worker {
    queue: Arc<(Mutex<Queue>, Condvar)>,
    interrupt: Interrupt,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl Worker {
    /// Starts the thread. It sends answers to `answers` until the receiver is gone.
    ///
    /// # Errors
    ///
    /// The system cannot start a thread.
    pub fn start<T: From<Numbered<Answer>> + Send + 'static>(
        query: Box<dyn TraceQuery + Send>,
        mut explain: Explain,
        answers: Sender<T>,
    ) -> std::io::Result<Self> {
        let queue = Arc::new((Mutex::new(Queue::default()), Condvar::new()));
        let interrupt = query.interrupt();
        let shared = queue.clone();
        let thread =
            std::thread::Builder::new().name("trace reader".to_owned()).spawn(move || {
                let _farewell = Farewell(answers.clone());
                while let Some(request) = next(&shared) {
                    let value = answer(&*query, &mut explain, &request.value);
                    if matches!(&value, Answer::Failed(why) if why.contains("interrupted")) {
                        // By a newer question of its kind, which is answered in its place; or by one
                        // that could not wait, or one that came just before: then it is asked again.
                        let waiting = &mut lock(&shared).waiting[request.slot as usize];
                        waiting.get_or_insert(request);
                        continue;
                    }
                    let (number, slot) = (request.number, request.slot);
                    if answers.send(T::from(Numbered { number, slot, value })).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self { queue, interrupt, thread: Some(thread) })
    }

    /// Asks. Never waits.
    pub fn ask(&self, request: Numbered<Request>) {
        let mut queue = lock(&self.queue);
        let slot = request.slot;
        queue.waiting[slot as usize] = Some(request);
        // A question that can be answered later must not delay an urgent one.
        let in_the_way = queue.current.is_some_and(|current| {
            current == slot
                || current as usize > Slot::Minimap as usize && current as usize > slot as usize
        });
        drop(queue);
        if in_the_way {
            (self.interrupt)();
        }
        self.queue.1.notify_one();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        lock(&self.queue).closed = true;
        self.queue.1.notify_one();
        (self.interrupt)();
        if let Some(thread) = self.thread.take() {
            // A panic of it was told by the panic hook.
            let _ = thread.join();
        }
    }
}

fn lock(queue: &(Mutex<Queue>, Condvar)) -> std::sync::MutexGuard<'_, Queue> {
    queue.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a question. `None` when there will be none.
fn next(shared: &(Mutex<Queue>, Condvar)) -> Option<Numbered<Request>> {
    let mut queue = lock(shared);
    queue.current = None;
    loop {
        if queue.closed {
            return None;
        }
        if let Some(request) = queue.waiting.iter_mut().find_map(Option::take) {
            queue.current = Some(request.slot);
            return Some(request);
        }
        queue = shared.1.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}
