//! Questions to the trace, answered by a separate thread.
//!
//! Only the newest question of each kind counts: a newer question replaces a waiting one and
//! interrupts one that is being answered. An answer has the number of its question, so that the
//! state can drop answers that come too late.

use crate::Explain;
use crate::traces::{LaneRef, OpRef, Opened};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use streamsan_model::{
    AllocationId, Axis, CallCount, CallNumber, Cell, Detail, Finding, Footprint, FootprintBy, Grid,
    History, Hits, Interrupt, LaneId, Lifetime, OpFilter, OpSeq, Overview, Place, QueryError,
    Strip, TraceQuery,
};

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
    /// Which of the calls of its name an operation is.
    CallNumber,
    /// The news of a trace that is being recorded.
    Refresh,
}

impl Slot {
    /// Number of kinds.
    pub const COUNT: usize = 12;
}

/// Which operation to select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// This one.
    Op(OpRef),
    /// Some steps along a row from here: forwards above 0, as far as there are any.
    Steps { lane: LaneRef, from: OpSeq, steps: i64 },
    /// The nearest one of a row; the position is one of the row's trace.
    Nearest { lane: LaneRef, axis: Axis, at: u64 },
    /// The next one (the previous one) whose name contains the text: in the trace of `from`, then in
    /// the traces behind it, then from the other end.
    Match { text: String, from: OpRef, forward: bool },
    /// The one of a row with this name and number.
    Call { lane: LaneRef, call: CallNumber },
}

/// The rows of a trace that are on the screen, with its part of the screen's grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRows {
    /// The trace, a place in the list of traces.
    pub trace: usize,
    /// The grid in the positions of the trace.
    pub grid: Grid,
    /// Columns of the screen before those of the grid.
    pub before: u32,
    /// The rows.
    pub lanes: Vec<LaneId>,
}

/// A question. A number before the other parts is that of the trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// See [`Slot::Open`].
    Open,
    /// See [`Slot::Select`].
    Select(Target),
    /// See [`Slot::Strips`]: the screen's grid, and each trace's part of it.
    Strips(Grid, Vec<TraceRows>),
    /// See [`Slot::Minimap`]. The columns are those of each trace alone.
    Minimap(Axis, u32),
    /// See [`Slot::Explain`].
    Explain(usize, Box<Finding>),
    /// See [`Slot::History`].
    History(usize, AllocationId),
    /// See [`Slot::Allocations`].
    Allocations(usize),
    /// See [`Slot::Calls`].
    Calls(usize),
    /// See [`Slot::Footprint`].
    Footprint(usize, FootprintBy, u32),
    /// See [`Slot::Hits`]: a filter for each trace, whose ids are those of the trace.
    Hits(Vec<OpFilter>),
    /// See [`Slot::CallNumber`].
    CallNumber(OpRef),
    /// See [`Slot::Refresh`]. Only a single trace is one that goes on.
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
            Self::Explain(..) => Slot::Explain,
            Self::History(..) => Slot::History,
            Self::Allocations(_) => Slot::Allocations,
            Self::Calls(_) => Slot::Calls,
            Self::Footprint(..) => Slot::Footprint,
            Self::Hits(_) => Slot::Hits,
            Self::CallNumber(_) => Slot::CallNumber,
            Self::Refresh => Slot::Refresh,
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
    /// To [`Request::Open`]: every trace.
    Opened(Vec<Opened>),
    /// To [`Request::Select`], with the trace; `None` where there is no such operation.
    Selected(Option<(usize, Box<Detail>)>),
    /// To [`Request::Strips`]: of each trace, with the columns of the screen before its own.
    Strips(Grid, Vec<(usize, u32, Vec<Strip>)>),
    /// To [`Request::Minimap`]: of each trace.
    Minimap(Axis, Vec<Vec<Cell>>),
    /// To [`Request::Explain`].
    Explained(String),
    /// To [`Request::History`].
    History(usize, Option<Box<History>>),
    /// To [`Request::Allocations`].
    Allocations(usize, Vec<Lifetime>),
    /// To [`Request::Calls`].
    Calls(usize, Vec<CallCount>),
    /// To [`Request::Footprint`].
    Footprint(usize, FootprintBy, Box<Footprint>),
    /// To [`Request::Hits`]: of each trace.
    Hits(Vec<Hits>),
    /// To [`Request::CallNumber`].
    CallNumber(OpRef, Option<CallNumber>),
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

/// A trace that answers questions, and the words about its findings.
pub struct Source {
    /// The trace.
    pub query: Box<dyn TraceQuery + Send>,
    /// The words about a finding.
    pub explain: Explain,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

/// Answers a question, here and now.
pub fn answer(sources: &mut [Source], request: &Request) -> Answer {
    try_answer(sources, request).unwrap_or_else(|error| Answer::Failed(error.to_string()))
}

fn try_answer(sources: &mut [Source], request: &Request) -> Result<Answer, QueryError> {
    let query = |trace: usize| -> Result<&dyn TraceQuery, QueryError> {
        let source = sources.get(trace);
        source.map(|source| &*source.query as _).ok_or_else(|| no_trace(trace))
    };
    let all = || sources.iter().map(|source| &*source.query as &dyn TraceQuery);
    Ok(match request {
        Request::Open => Answer::Opened(all().map(open).collect::<Result<_, _>>()?),
        Request::Select(target) => {
            let found = find(sources, target)?;
            let detail = |(trace, g)| {
                let detail: Option<Detail> = query(trace)?.detail(g)?;
                Ok::<_, QueryError>(detail.map(|detail| (trace, Box::new(detail))))
            };
            Answer::Selected(found.map(detail).transpose()?.flatten())
        }
        Request::Strips(grid, rows) => {
            let strips = |rows: &TraceRows| {
                let strips = query(rows.trace)?.strips(rows.grid, &rows.lanes)?;
                Ok::<_, QueryError>((rows.trace, rows.before, strips))
            };
            Answer::Strips(*grid, rows.iter().map(strips).collect::<Result<_, _>>()?)
        }
        Request::Minimap(axis, columns) => {
            let cells = all().map(|query| query.minimap(*axis, *columns));
            Answer::Minimap(*axis, cells.collect::<Result<_, _>>()?)
        }
        Request::Explain(trace, finding) => {
            let source = sources.get_mut(*trace).ok_or_else(|| no_trace(*trace))?;
            Answer::Explained((source.explain)(finding))
        }
        Request::History(trace, id) => {
            Answer::History(*trace, query(*trace)?.history(*id)?.map(Box::new))
        }
        Request::Allocations(trace) => {
            Answer::Allocations(*trace, query(*trace)?.allocations(ALLOCATIONS)?)
        }
        Request::Calls(trace) => Answer::Calls(*trace, query(*trace)?.calls()?),
        Request::Footprint(trace, by, columns) => {
            let footprint = query(*trace)?.footprint(*by, *columns)?;
            Answer::Footprint(*trace, *by, Box::new(footprint))
        }
        Request::Hits(filters) => {
            let hits = all().zip(filters).map(|(query, filter)| query.hits(filter));
            Answer::Hits(hits.collect::<Result<_, _>>()?)
        }
        Request::CallNumber(op) => Answer::CallNumber(*op, query(op.trace)?.call_number(op.g)?),
        Request::Refresh => Answer::Refreshed(Box::new(look(query(0)?)?)),
    })
}

fn no_trace(trace: usize) -> QueryError {
    QueryError(format!("there is no trace {}", trace + 1))
}

fn open(query: &dyn TraceQuery) -> Result<Opened, QueryError> {
    Ok(Opened::new(query.overview()?, query.findings()?, query.finding_places()?))
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

/// The operation that is meant, with its trace.
fn find(sources: &[Source], target: &Target) -> Result<Option<(usize, OpSeq)>, QueryError> {
    let query = |trace: usize| sources.get(trace).map(|s| &s.query).ok_or_else(|| no_trace(trace));
    let found = match *target {
        Target::Op(op) => return Ok(Some((op.trace, op.g))),
        Target::Steps { lane, from, steps } => {
            let (query, mut at) = (query(lane.trace)?, None);
            for _ in 0..steps.unsigned_abs() {
                match query.neighbour(lane.id, at.unwrap_or(from), steps > 0)? {
                    Some(next) => at = Some(next),
                    None => break,
                }
            }
            at.map(|g| (lane.trace, g))
        }
        Target::Nearest { lane, axis, at } => {
            query(lane.trace)?.nearest(lane.id, axis, at)?.map(|g| (lane.trace, g))
        }
        Target::Call { lane, ref call } => {
            query(lane.trace)?.call_of_number(lane.id, call)?.map(|g| (lane.trace, g))
        }
        Target::Match { ref text, from, forward } => {
            let count = sources.len();
            let end = if forward { OpSeq(0) } else { OpSeq(u64::MAX) };
            // At last the rest of the trace in which it began.
            for step in 0..=count {
                let by = if forward { step } else { count - step % count };
                let trace = (from.trace + by) % count;
                let from = if step == 0 { from.g } else { end };
                if let Some(g) = query(trace)?.search(text, from, forward)? {
                    return Ok(Some((trace, g)));
                }
            }
            None
        }
    };
    Ok(found)
}

#[derive(Debug, Default)]
struct Queue {
    waiting: [Option<Numbered<Request>>; Slot::COUNT],
    /// The question that is being answered.
    current: Option<Slot>,
    closed: bool,
}

/// Tells of a panic of the thread that bears it.
struct Listener<F: Fn(Numbered<Answer>) -> bool>(F);

impl<F: Fn(Numbered<Answer>) -> bool> Drop for Listener<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let last = Numbered { number: 0, slot: Slot::Open, value: Answer::Broken };
            // Nobody may be there to hear it.
            let _ = (self.0)(last);
        }
    }
}

/// The thread that owns the traces.
pub struct Worker {
    queue: Arc<(Mutex<Queue>, Condvar)>,
    interrupts: Vec<Interrupt>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl Worker {
    /// Starts the thread. It tells its answers until nobody hears them any more, which `hear`
    /// answers by `false`.
    ///
    /// # Errors
    ///
    /// The system cannot start a thread.
    pub fn start(
        mut sources: Vec<Source>,
        hear: impl Fn(Numbered<Answer>) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let queue = Arc::new((Mutex::new(Queue::default()), Condvar::new()));
        let interrupts = sources.iter().map(|source| source.query.interrupt()).collect();
        let shared = queue.clone();
        let thread =
            std::thread::Builder::new().name("trace reader".to_owned()).spawn(move || {
                let listener = Listener(hear);
                while let Some(request) = next(&shared) {
                    let value = answer(&mut sources, &request.value);
                    if matches!(&value, Answer::Failed(why) if why.contains("interrupted")) {
                        // By a newer question of its kind, which is answered in its place; or by one
                        // that could not wait, or one that came just before: then it is asked again.
                        let waiting = &mut lock(&shared).waiting[request.slot as usize];
                        waiting.get_or_insert(request);
                        continue;
                    }
                    let (number, slot) = (request.number, request.slot);
                    if !(listener.0)(Numbered { number, slot, value }) {
                        return;
                    }
                }
            })?;
        Ok(Self { queue, interrupts, thread: Some(thread) })
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
            self.interrupt();
        }
        self.queue.1.notify_one();
    }

    /// Interrupts what is being answered: which trace that is of, only the thread knows.
    fn interrupt(&self) {
        self.interrupts.iter().for_each(|interrupt| interrupt());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        lock(&self.queue).closed = true;
        self.queue.1.notify_one();
        self.interrupt();
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
