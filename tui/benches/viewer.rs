//! The viewer on a long trace: 10 million operations in 64 streams, 1,000 races. Measures the first
//! frame, what every key costs the interface, how long until its answers are drawn, and memory.
//!
//! `cargo bench -p streamsan-tui` (about 1 GB in the temporary directory while it runs; the number
//! of operations may be given as an argument). It drives the real state, worker thread and view
//! code over a trace that the real writer wrote, in a process of its own so that the memory
//! measured is the viewer's. Ends with an error where a budget is not kept.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use streamsan_model::*;
use streamsan_store::{Meta, Reader, Writer};
use streamsan_tui::query::{Answer, Numbered, Source, Worker};
use streamsan_tui::{State, Theme, render};

const STREAMS: u64 = 64;
const RACES: u64 = 1_000;
const COMMIT_EVERY: u64 = 200_000;

/// The budgets.
const FIRST_FRAME: Duration = Duration::from_secs(1);
const KEY: Duration = Duration::from_millis(16);
const MEMORY_MIB: u64 = 200;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, path] = arguments.as_slice()
        && role == "view"
    {
        return view(Path::new(path));
    }
    // Run as a test, it is a short one.
    let bench = arguments.iter().any(|argument| argument == "--bench");
    let given = arguments.iter().find_map(|argument| argument.parse().ok());
    let operations = given.unwrap_or(if bench { 10_000_000 } else { 50_000 });
    let folder = tempfile::tempdir().expect("there is a temporary directory");
    let path = folder.path().join("long.db");
    let (written, finished) = generate(&path, operations);
    let size = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    println!(
        "{operations} operations: written in {written:.1?}, finished in {finished:.1?}, {} MiB",
        size >> 20
    );
    let program = std::env::current_exe().expect("the path of this program");
    let status = Command::new(program).arg("view").arg(&path).status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn launch(stream: StreamId, kernel: u64) -> Action {
    Action::Launch {
        stream,
        kernel: KernelId(kernel as u32),
        programmatic: false,
        control: GridControl::default(),
        cooperative: false,
        event: None,
    }
}

fn operation(n: u64) -> Operation {
    // Bursts of a stream, as programs issue them.
    let stream = StreamId((n / 12 * 7 % STREAMS) as u32);
    let event = EventId((n / 12 % 256) as u32);
    let (api, action, touches) = match n % 12 {
        0 => ("cuStreamWaitEvent", Action::StreamWaitEvent { stream, event }, false),
        1 => (
            "cuMemcpyHtoDAsync_v2",
            Action::Copy(Copy {
                stream,
                synchronous: false,
                source: MemoryKind::Pinned,
                destination: MemoryKind::Device,
                peer: None,
                bytes: 65_536,
                source_order: SourceOrder::Stream,
                sync_memops: false,
            }),
            true,
        ),
        11 => ("cuEventRecord", Action::EventRecord { event, stream }, false),
        10 if n % 960 == 10 => {
            ("cuCtxSynchronize", Action::ContextSynchronize { context: ContextId(0) }, false)
        }
        place => ("cuLaunchKernel", launch(stream, (n / 97 + place) % 40), place % 3 == 0),
    };
    let start_ns = 1_000_000_000_000 + n * 2_100 + n / 50_000 * 3_000_000;
    let access = |mode| Access {
        allocation: AllocationId((n % 500) as u32),
        extent: Extent::Range(ByteRange::with_len(0x7f00_0000_0000 + n % 500 * 65_536, 65_536)),
        mode,
        basis: Basis::Exact,
    };
    Operation {
        g: OpSeq(2 * n + 1),
        exit: Some(OpSeq(2 * n + 2)),
        process: ProcessId(0),
        thread: ThreadId((n / 1200 % 4) as u32),
        api: Arc::from(api),
        time: Some(HostTime { start_ns, end_ns: start_ns + 1_500 }),
        status: Status::SUCCESS,
        action,
        accesses: if touches { vec![access(Mode::Write)] } else { vec![] },
        stack: None,
    }
}

fn entities(writer: &mut Writer) {
    let mut put = |entity| writer.item(&TraceItem::Entity(entity)).expect("there is room");
    put(Entity::Process(Process {
        id: ProcessId(0),
        pid: 1,
        parent_pid: 0,
        executable: "/bin/long".to_owned(),
        arguments: vec!["long".to_owned()],
    }));
    for id in 0..4 {
        put(Entity::Thread(Thread { id: ThreadId(id), process: ProcessId(0), tid: 100 + id }));
    }
    put(Entity::Context(Context {
        id: ContextId(0),
        process: ProcessId(0),
        device: DeviceId(0),
        primary: true,
        parent: None,
        concurrent_managed_access: true,
        handle: 1,
    }));
    for id in 0..STREAMS as u32 {
        put(Entity::Stream(Stream {
            id: StreamId(id),
            context: ContextId(0),
            kind: StreamKind::NonBlocking,
            thread: None,
            priority: 0,
            handle: u64::from(id) + 16,
            driver_id: u64::from(id),
            name: None,
        }));
    }
    for id in 0..256 {
        put(Entity::Event(Event {
            id: EventId(id),
            context: ContextId(0),
            handle: u64::from(id),
            flags: 2,
            imported: false,
            name: None,
        }));
    }
    for id in 0..500u32 {
        put(Entity::Allocation(Allocation {
            id: AllocationId(id),
            process: ProcessId(0),
            context: Some(ContextId(0)),
            kind: MemoryKind::Device,
            range: ByteRange::with_len(0x7f00_0000_0000 + u64::from(id) * 65_536, 65_536),
            api: "cuMemAlloc_v2".to_owned(),
            backing: None,
            name: None,
            stack: None,
        }));
    }
    for id in 0..40 {
        let name = format!("_ZN2at6native13reduce_kernelILi512ELi{id}EEEvT_");
        put(Entity::Kernel(Kernel { id: KernelId(id), name, params: vec![] }));
    }
}

/// Writes the trace; how long that and its end took.
fn generate(path: &Path, operations: u64) -> (Duration, Duration) {
    let begin = Instant::now();
    let meta = Meta {
        tool_version: "bench".to_owned(),
        started_at: chrono::DateTime::UNIX_EPOCH,
        command: vec![],
        host: String::new(),
        driver: String::new(),
        extra: Default::default(),
    };
    let mut writer = Writer::create(path, &meta).expect("the directory is writable");
    entities(&mut writer);
    for n in 0..operations {
        let operation = operation(n);
        if let Action::StreamWaitEvent { .. } = operation.action
            && let Some(record) = n.checked_sub(1)
        {
            let edge = Edge {
                from: OpSeq(2 * record + 1),
                to: operation.g,
                kind: EdgeKind::EventWait,
                tier: Tier::Documented,
            };
            writer.edge(&edge).expect("there is room");
        }
        writer.item(&TraceItem::Operation(operation)).expect("there is room");
        if n % COMMIT_EVERY == 0 {
            writer.commit().expect("there is room");
        }
    }
    for race in 0..RACES {
        let first = operation(operations * race / RACES / 12 * 12 + 3);
        let second = operation((first.g.0 / 2 + 12).min(operations - 1) / 12 * 12 + 6);
        let side = |op: &Operation, mode| FindingAccess {
            op: op.g,
            stream: op.action.stream(),
            api: op.api.to_string(),
            kernel: Some("_Z5scalePfi".to_owned()),
            access: Access {
                allocation: AllocationId(7),
                extent: Extent::Range(ByteRange::with_len(0x7f00_0007_0000, 4096)),
                mode,
                basis: Basis::Exact,
            },
            stack: None,
        };
        let finding = Finding {
            fingerprint: Fingerprint(race),
            severity: Severity::Race,
            class: RaceClass::MissingWait,
            kind: ConflictKind::ReadAfterWrite,
            confidence: Confidence::Certain,
            allocation: AllocationId(7),
            overlap: ByteRange::with_len(0x7f00_0007_0000, 4096),
            first: side(&first, Mode::Write),
            second: side(&second, Mode::Read),
            knows: None,
            nearest: None,
            masked_by: None,
            proposed_edge: None,
        };
        writer.finding(&finding).expect("there is room");
    }
    writer.commit().expect("there is room");
    let written = begin.elapsed();
    let begin = Instant::now();
    writer.finalize().expect("there is room");
    (written, begin.elapsed())
}

/// The viewer without a terminal.
struct Session {
    state: State,
    worker: Worker,
    answers: Receiver<Numbered<Answer>>,
    buffer: Buffer,
}

impl Session {
    fn ask(&mut self) {
        self.state.take_requests().into_iter().for_each(|request| self.worker.ask(request));
        self.state.take_effects();
    }

    fn draw(&mut self) {
        self.buffer.reset();
        let area = *self.buffer.area();
        render(&self.state, Theme::default(), area, &mut self.buffer);
    }

    /// Takes answers until there is nothing to wait for, drawing after each.
    fn settle(&mut self) {
        self.ask();
        while self.state.is_busy() {
            let answer = self.answers.recv().expect("the worker lives");
            self.state.receive(answer);
            self.ask();
            self.draw();
        }
    }
}

/// Every key with keys before it, some again and again.
const KEYS: &[(&str, &str, usize)] = &[
    ("zoom in", "w", 24),
    ("zoom out", "s", 24),
    ("zoom in again", "w", 9),
    ("move right", "d", 40),
    ("move left", "a", 40),
    ("page right", "D", 20),
    ("next operation", "l", 60),
    ("previous operation", "h", 60),
    ("row down", "j", 60),
    ("row up", "k", 60),
    ("next race", "r", 100),
    ("previous race", "R", 100),
    ("other side", "o", 10),
    ("follow edges", "]", 10),
    ("follow edges back", "[", 10),
    ("switch axis", "x", 9),
    ("whole trace", "0", 2),
    ("whole trace, other axis", "x", 1),
    ("whole trace, zoom in", "w", 24),
    ("whole trace, time", "0", 1),
    ("whole trace, logical", "x", 1),
    ("logical, zoom in", "w", 22),
    ("logical, move", "d", 30),
    ("first operation", "^", 1),
    ("last operation", "$", 1),
    ("centre", "f", 4),
    ("search for the same", "#", 10),
    ("races pane", "2", 1),
    ("sort races", "S", 5),
    ("statistics pane", "4", 1),
    ("memory pane", "3", 1),
    ("explanation pane", "5", 1),
    ("details pane", "1", 1),
    ("help", "?", 2),
    ("pin", "p", 2),
    ("mark", "m", 1),
    ("mark", "a", 1),
];

fn view(path: &Path) -> ExitCode {
    let (width, height) = (200, 60);
    let begin = Instant::now();
    let reader = Reader::open(path).expect("it was just written");
    let (sender, answers) = channel();
    let explain = Box::new(|finding: &Finding| finding.class.description().to_owned());
    let source = Source { query: Box::new(reader), explain };
    let worker = Worker::start(vec![source], move |answer| sender.send(answer).is_ok())
        .expect("a thread starts");
    let state = State::new("long.db", (width, height));
    let buffer = Buffer::empty(Rect { x: 0, y: 0, width, height });
    let mut session = Session { state, worker, answers, buffer };
    session.draw();
    session.settle();
    session.draw();
    let first = begin.elapsed();
    println!("first whole frame: {first:.1?} (budget {FIRST_FRAME:.0?})");
    let mut fine = first <= FIRST_FRAME;
    println!("{:<26} {:>10} {:>10} {:>12} {:>12}", "key", "median", "worst", "answered", "worst");
    for &(what, key, times) in KEYS {
        let c = key.chars().next().expect("a key");
        let (mut keys, mut answered) = (Vec::new(), Vec::new());
        for _ in 0..times {
            let begin = Instant::now();
            session.state.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
            session.ask();
            session.draw();
            keys.push(begin.elapsed());
            session.settle();
            session.draw();
            answered.push(begin.elapsed());
        }
        keys.sort();
        answered.sort();
        let worst = keys[keys.len() - 1];
        fine &= worst <= KEY;
        println!(
            "{what:<26} {:>10.1?} {worst:>10.1?} {:>12.1?} {:>12.1?}{}",
            keys[keys.len() / 2],
            answered[answered.len() / 2],
            answered[answered.len() - 1],
            if worst > KEY { "  OVER BUDGET" } else { "" }
        );
    }
    let memory = peak_memory_mib();
    println!("peak memory: {memory} MiB (budget {MEMORY_MIB} MiB)");
    fine &= memory <= MEMORY_MIB;
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Largest resident set so far.
fn peak_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
