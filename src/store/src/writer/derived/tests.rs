//! The data made from passing batches equals the data made by reading back.

use crate::Meta;
use crate::action::ActionColumns;
use crate::lod::build;
use crate::lod::feed::{Feed, Made};
use crate::row::{AccessColumns, AccessRow, EdgeRow, OpRow};
use crate::schema::ACCESS_BITS;
use crate::writer::Writer;
use crate::writer::batch::Batch;
use chrono::DateTime;
use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::Path;
use streamsan_model::*;

/// A step of a recording. Numbers choose among what there is by then.
#[derive(Clone, Debug)]
enum Step {
    Call {
        row: u8,
        action: u8,
        time: Option<u16>,
        touched: Vec<u8>,
        runs: bool,
        fails: bool,
    },
    /// An edge that ends at the newest operation.
    Edge {
        from: u16,
        kind: u8,
        documented: bool,
    },
    /// A call that was stored while it ran returns, and has edges.
    Return {
        which: u16,
        fails: bool,
        from: Vec<u16>,
    },
    Accesses {
        of: u16,
        touched: Vec<u8>,
    },
    Finding {
        first: u16,
        second: u16,
        nearest: Option<u16>,
    },
    /// An edge at an operation that is not stored.
    EdgeOfNone {
        from: u16,
    },
    Commit,
    /// An edge that nothing announces.
    LateEdge {
        from: u16,
        to: u16,
    },
    ReturnAgain {
        which: u16,
    },
    Clear,
}

/// Hands steps over.
struct Script {
    writer: Writer,
    operations: Vec<OpSeq>,
    running: Vec<OpSeq>,
    g: u64,
    now: u64,
    /// The newest operation can have edges: nothing came behind it, but for so many commits less one.
    open: u8,
}

fn access(allocation: u8) -> Access {
    Access {
        allocation: AllocationId(if allocation > 250 {
            u32::MAX
        } else {
            u32::from(allocation) % 7
        }),
        extent: Extent::Range(ByteRange::new(1, 2)),
        mode: Mode::Read,
        basis: Basis::Exact,
    }
}

fn finding(first: OpSeq, second: OpSeq, nearest: Option<OpSeq>) -> Finding {
    let side = |op| FindingAccess {
        op,
        stream: Some(StreamId(0)),
        api: "cuSomething".into(),
        kernel: None,
        access: access(0),
        stack: None,
    };
    Finding {
        fingerprint: Fingerprint(1),
        severity: Severity::Race,
        class: RaceClass::MissingWait,
        kind: ConflictKind::WriteAfterWrite,
        confidence: Confidence::Certain,
        allocation: AllocationId(0),
        overlap: ByteRange::new(1, 2),
        first: side(first),
        second: side(second),
        knows: None,
        nearest,
        masked_by: None,
        proposed_edge: None,
    }
}

impl Script {
    fn new(path: &Path) -> Self {
        let meta = Meta {
            tool_version: String::new(),
            started_at: DateTime::UNIX_EPOCH,
            command: vec![],
            host: String::new(),
            driver: String::new(),
            extra: Default::default(),
        };
        let writer = Writer::create(path, &meta).unwrap();
        Self { writer, operations: Vec::new(), running: Vec::new(), g: 3, now: 5_000, open: 0 }
    }

    fn one(&self, number: u16) -> Option<OpSeq> {
        let count = self.operations.len();
        // Mostly recent ones.
        let back = usize::from(number)
            % if number.is_multiple_of(3) { count.max(1) } else { 8.min(count.max(1)) };
        self.operations.get(count.checked_sub(back + 1)?).copied()
    }

    fn edge(&mut self, from: u16, to: OpSeq, kind: u8, documented: bool) {
        let Some(from) = self.one(from) else { return };
        let kind = EdgeKind::ALL[usize::from(kind) % EdgeKind::ALL.len()];
        let tier = if documented { Tier::Documented } else { Tier::Incidental };
        self.writer.edge(&Edge { from, to, kind, tier }).unwrap();
    }

    fn call(&mut self, step: &Step) {
        let Step::Call { row, action, time, touched, runs, fails } = step else { return };
        self.g += 1 + u64::from(*action) % 3;
        let stream = StreamId(u32::from(row % 5));
        let allocation = AllocationId(u32::from(row / 5 % 3));
        let action = match action % 8 {
            0 => Action::HostFunction { stream },
            1 => Action::StreamSynchronize { stream },
            2 => Action::HostAccess,
            3 => Action::Allocate { allocation, stream: None },
            4 => Action::Free { allocation, stream: Some(stream) },
            5 => Action::GraphLaunch {
                stream,
                executable: ExecutableId(1),
                graph: GraphId(u32::from(row % 2)),
            },
            6 => Action::Other,
            _ => Action::Prefetch { stream },
        };
        self.now += time.map_or(0, u64::from);
        let g = OpSeq(self.g);
        self.operations.push(g);
        if *runs {
            self.running.push(g);
        }
        let start_ns = self.now - u64::from(*row);
        let operation = Operation {
            g,
            exit: (!runs).then_some(g),
            process: ProcessId(u32::from(row % 2)),
            thread: ThreadId(u32::from(row / 16 % 3)),
            api: ["cuOne", "cuTwo"][usize::from(row % 2)].into(),
            time: time.map(|time| HostTime { start_ns, end_ns: start_ns + u64::from(time) }),
            status: Status(i32::from(*fails)),
            action,
            accesses: touched.iter().copied().map(access).collect(),
            stack: None,
        };
        self.writer.item(&TraceItem::Operation(operation)).unwrap();
    }

    fn step(&mut self, step: &Step) {
        self.open = match step {
            Step::Call { .. } => 2,
            Step::Edge { .. } => self.open,
            Step::Commit => self.open.saturating_sub(1),
            _ => 0,
        };
        match step {
            Step::Call { .. } => self.call(step),
            &Step::Edge { from, kind, documented } => {
                // A call that runs has its edges when it has returned.
                let newest = self.operations.last().filter(|g| !self.running.contains(g));
                if let Some(&to) = newest.filter(|_| self.open > 0) {
                    self.edge(from, to, kind, documented);
                }
            }
            Step::Return { which, fails, from } if !self.running.is_empty() => {
                let g = self.running.remove(usize::from(*which) % self.running.len());
                let status = Status(i32::from(*fails));
                self.g += 1;
                let exit = OpSeq(self.g);
                self.writer.item(&TraceItem::Returned { g, exit, status }).unwrap();
                from.iter().for_each(|&from| self.edge(from, g, from as u8, true));
            }
            Step::Accesses { of, touched } => {
                let touched: Vec<_> = touched.iter().copied().map(access).collect();
                let Some(g) = self.one(*of) else { return };
                self.writer.replace_accesses(g, &touched).unwrap();
            }
            &Step::Finding { first, second, nearest } => {
                let (Some(first), Some(second)) = (self.one(first), self.one(second)) else {
                    return;
                };
                let nearest = nearest.and_then(|number| self.one(number));
                self.writer.finding(&finding(first, second, nearest)).unwrap();
            }
            &Step::EdgeOfNone { from } => {
                // Number 2 and 3 are no operation's, as all between two of them.
                self.edge(from, OpSeq(u64::from(2 + from % 2)), 0, true);
            }
            Step::Commit => self.writer.begin_commit().unwrap(),
            &Step::LateEdge { from, to } => {
                if let Some(to) = self.one(to) {
                    self.edge(from, to, 0, true);
                }
            }
            &Step::ReturnAgain { which } => {
                let Some(g) = self.one(which) else { return };
                let status = Status(9);
                self.running.retain(|&running| running != g);
                self.writer.item(&TraceItem::Returned { g, exit: g, status }).unwrap();
            }
            Step::Clear => self.writer.clear_analysis().unwrap(),
            Step::Return { .. } => {}
        }
    }

    fn finish(mut self) -> Made {
        self.writer.flush().unwrap();
        self.writer.worker.finish(false).unwrap();
        self.writer.check().unwrap();
        self.writer.worker.made().unwrap()
    }
}

fn tables(connection: &Connection) -> Vec<(&'static str, Vec<Vec<Value>>)> {
    let names = ["axis", "lane", "finding", "lifetime", "call", "use", "edge"];
    let names = names.into_iter().chain(["rows"]);
    let table = |name: &'static str| {
        let sql = match name {
            "rows" => "SELECT * FROM lod ORDER BY 1, 2, 3, 4".to_owned(),
            "use" => "SELECT * FROM lod_use ORDER BY 1, 2, 3".to_owned(),
            _ => format!("SELECT * FROM lod_{name} ORDER BY 1"),
        };
        let mut statement = connection.prepare(&sql).unwrap();
        let width = statement.column_count();
        let rows = statement.query_map([], |row| (0..width).map(|at| row.get(at)).collect());
        (name, rows.unwrap().map(Result::unwrap).collect())
    };
    names.map(table).collect()
}

/// Hands the steps over, and compares the tables with those that are read back.
fn check(steps: impl IntoIterator<Item = Step>) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let mut script = Script::new(&path);
    steps.into_iter().for_each(|step| script.step(&step));
    let made = script.finish();
    let connection = Connection::open(&path).unwrap();
    let found = tables(&connection);
    connection.execute_batch("BEGIN").unwrap();
    build::build(&connection).unwrap();
    for ((name, found), (_, expected)) in found.into_iter().zip(tables(&connection)) {
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{name}");
        }
    }
    made
}

fn touched() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..4)
}

fn call() -> impl Strategy<Value = Step> {
    let numbers = (any::<(u8, u8)>(), prop::option::weighted(0.9, 0u16..3000), touched());
    (numbers, prop::bool::weighted(0.1), prop::bool::weighted(0.1)).prop_map(
        |(((row, action), time, touched), runs, fails)| Step::Call {
            row,
            action,
            time,
            touched,
            runs,
            fails: fails && !runs,
        },
    )
}

/// Steps of a recording that is analysed while it runs.
fn ordinary() -> impl Strategy<Value = Step> {
    let several = prop::collection::vec(any::<u16>(), 0..3);
    prop_oneof![
        8 => call(),
        6 => any::<(u16, u8, bool)>()
            .prop_map(|(from, kind, documented)| Step::Edge { from, kind, documented }),
        2 => (any::<(u16, bool)>(), several)
            .prop_map(|((which, fails), from)| Step::Return { which, fails, from }),
        1 => (any::<u16>(), touched()).prop_map(|(of, touched)| Step::Accesses { of, touched }),
        1 => any::<(u16, u16, Option<u16>)>()
            .prop_map(|(first, second, nearest)| Step::Finding { first, second, nearest }),
        1 => any::<u16>().prop_map(|from| Step::EdgeOfNone { from }),
        1 => Just(Step::Commit),
    ]
}

/// Unusual steps.
fn unordinary() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => ordinary(),
        1 => any::<(u16, u16)>().prop_map(|(from, to)| Step::LateEdge { from, to }),
        1 => any::<u16>().prop_map(|which| Step::ReturnAgain { which }),
        1 => Just(Step::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn tables_of_an_ordinary_recording_need_no_reading_back(
        steps in prop::collection::vec(ordinary(), 0..300),
    ) {
        prop_assert_eq!(check(steps), Made::All);
    }

    #[test]
    fn tables_are_the_same_whatever_comes_late(
        steps in prop::collection::vec(unordinary(), 0..300),
    ) {
        check(steps);
    }
}

/// More than the first operations, by which the levels are chosen, and more rows than are kept back.
fn long_recording(extra: fn(u32) -> Option<Step>) -> Made {
    let mut state = 7u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let steps = (0..220_000).flat_map(|n| {
        let (a, b) = (random(), random());
        let call = Step::Call {
            row: (a >> 4) as u8,
            action: if a % 4 == 0 { 6 } else { (b >> 3) as u8 },
            time: (a % 50 != 0).then_some((b % 900) as u16),
            touched: vec![(b >> 11) as u8; (a % 2) as usize],
            runs: a % 500 == 0,
            fails: false,
        };
        let other = match b % 12 {
            0..4 => Step::Edge { from: (a >> 7) as u16, kind: b as u8, documented: true },
            4 => Step::Return { which: a as u16, fails: a % 3 == 0, from: vec![b as u16] },
            5 if n % 7 == 0 => {
                Step::Finding { first: a as u16, second: b as u16, nearest: Some(a as u16 / 2) }
            }
            6 if n % 5 == 0 => Step::Accesses { of: b as u16, touched: vec![a as u8] },
            7 if n % 50 == 0 => Step::Commit,
            _ => Step::Edge { from: 1, kind: 0, documented: false },
        };
        [Some(call), Some(other), extra(n)]
    });
    check(steps.flatten())
}

#[test]
fn tables_of_a_long_recording_need_no_reading_back() {
    assert_eq!(long_recording(|_| None), Made::All);
}

#[test]
fn depths_are_read_back_where_the_analysis_is_done_again() {
    let clear = |n| (n == 200_000).then_some(Step::Clear);
    assert_eq!(long_recording(clear), Made::AllButDepths);
}

#[test]
fn all_is_read_back_where_the_order_is_lost() {
    let again = |n| (n == 210_000).then_some(Step::ReturnAgain { which: 30_000 });
    assert_eq!(long_recording(again), Made::Nothing);
}

/// The most of what is in memory while operations of this number pass by: each touches one of a few
/// allocations and follows another one, a few of them one of long ago.
fn most_held(operations: u64) -> [usize; 4] {
    let (mut feed, mut most, mut random) = (Feed::new(), [0; 4], 7u64);
    let mut batch = Batch::default();
    for g in 1..=operations {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let stream = StreamId((random >> 33) as u32 % 4);
        let row = OpRow {
            g: g as i64,
            exit_after: Some(0),
            process: 0,
            thread: 0,
            api: 1,
            action: ActionColumns::from(&Action::Prefetch { stream }),
            start_ns: Some(g as i64 * 700),
            duration_ns: Some(10),
            result: 0,
            stack: None,
        };
        batch.operations.push(&row.numbers());
        let columns = AccessColumns::encode(&access((random >> 40) as u8), |_| 0);
        batch.accesses.push(&AccessRow { id: (g << ACCESS_BITS) as i64, columns }.numbers());
        let from = if random >> 54 == 0 { random % g } else { g - g.min(1 + (random >> 50) % 9) };
        let id = (g << ACCESS_BITS) as i64;
        batch.edges.push(&EdgeRow { id, from: from as i64, kind: 0, tier: 0 }.numbers());
        if g % 1024 == 0 {
            super::take(&mut feed, &batch);
            batch.clear();
            feed.end_batch();
            most = std::array::from_fn(|at| most[at].max(feed.held()[at]));
        }
    }
    most
}

/// Three times as many operations do not keep more, but for what is of the logarithm of their number.
#[test]
fn what_is_kept_does_not_grow_with_the_operations() {
    let (short, long) = (most_held(90_000), most_held(270_000));
    for (part, (short, long)) in ["bytes of depths", "edges", "full pieces", "rows"]
        .into_iter()
        .zip(short.into_iter().zip(long))
    {
        assert!(short > 0, "{part}");
        assert!(long <= short + short / 10, "{part}: {short}, then {long}");
    }
}

/// The last times lie before others: levels that these needed are not there in the end.
#[test]
fn axis_of_times_that_becomes_shorter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let mut script = Script::new(&path);
    let call = |time| Step::Call {
        row: 0,
        action: 0,
        time: Some(time),
        touched: vec![],
        runs: false,
        fails: false,
    };
    for n in 0..250_000u64 {
        script.now = if n == 249_999 { 5_001 } else { 5_000 + n * 70_000 };
        script.step(&call(0));
    }
    assert_eq!(script.finish(), Made::All);
    let connection = Connection::open(&path).unwrap();
    let found = tables(&connection);
    connection.execute_batch("BEGIN").unwrap();
    build::build(&connection).unwrap();
    assert!(found == tables(&connection));
}
