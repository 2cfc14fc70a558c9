//! Runs a program under the runtime and collects what it recorded.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use streamsan_wire::{
    Access, Api, Envelope, GraphPart, HostCall, ImageOrigin, MeasuredRun, NotMeasured, ProcessInfo,
    ProcessKey, RUN_DIR_VARIABLE, Record, RingOptions, RunDirectory, StackFrame, StackMode,
    ThreadKey,
};

use streamsan_testing::fake_driver as fake;

/// A record that owns its parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Owned {
    Begin {
        api: Api,
        depth: u8,
        context: u64,
        args: Vec<u64>,
        blobs: Vec<(u32, Vec<u8>)>,
    },
    End {
        begin: u64,
        api: Api,
        result: i32,
        outs: Vec<u64>,
    },
    Image {
        op: u64,
        origin: ImageOrigin,
        size: u64,
        path: String,
    },
    Kernel {
        function: u64,
        name: String,
        params: Option<Vec<(u32, u32)>>,
    },
    Accesses {
        op: u64,
        list: Vec<Access>,
        complete: bool,
    },
    Measured {
        op: u64,
        node: u64,
        runs: Vec<MeasuredRun>,
        flags: u32,
        complete: bool,
    },
    NotMeasured {
        op: u64,
        reason: NotMeasured,
        detail: String,
    },
    HostFunctionBegin {
        op: u64,
    },
    HostFunctionEnd {
        op: u64,
    },
    Host {
        call: HostCall,
        args: Vec<u64>,
        text: String,
    },
    HostReturn {
        host: u64,
        result: i64,
    },
    Graph(OwnedPart),
    Object {
        number: u32,
        path: String,
    },
    /// Object and offset of each frame.
    Stack {
        key: u64,
        truncated: bool,
        frames: Vec<(u32, u64)>,
    },
}

/// Part of a graph, owned; of an edge whether it is programmatic.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OwnedPart {
    Node {
        graph: u32,
        index: u32,
        kind: i32,
        readable: bool,
        updatable: bool,
        handle: u64,
        blobs: Vec<(u32, Vec<u8>)>,
    },
    Edges {
        graph: u32,
        edges: Vec<(u32, u32, bool)>,
    },
    End {
        graph: u32,
        nodes: u32,
        edges: u32,
        complete: bool,
        handle: u64,
    },
    Captured {
        op: u64,
        graph: u64,
        node: u64,
    },
    Clones {
        op: u64,
        pairs: Vec<(u64, u64)>,
    },
}

impl OwnedPart {
    fn new(part: GraphPart<'_>) -> Self {
        match part {
            GraphPart::Node { graph, index, kind, readable, updatable, handle, blobs } => {
                let blobs = blobs.iter().map(|(tag, bytes)| (tag, bytes.to_vec())).collect();
                Self::Node { graph, index, kind, readable, updatable, handle, blobs }
            }
            GraphPart::Edges { graph, edges } => {
                let edges = edges.iter().map(|e| (e.from, e.to, e.is_programmatic())).collect();
                Self::Edges { graph, edges }
            }
            GraphPart::End { graph, nodes, edges, complete, handle } => {
                Self::End { graph, nodes, edges, complete, handle }
            }
            GraphPart::Captured { op, graph, node } => Self::Captured { op, graph, node },
            GraphPart::Clones { op, pairs } => {
                let pairs: Vec<u64> = pairs.iter().collect();
                Self::Clones { op, pairs: pairs.chunks(2).map(|p| (p[0], p[1])).collect() }
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) process: ProcessKey,
    pub(crate) thread: ThreadKey,
    pub(crate) tid: u32,
    pub(crate) g: u64,
    pub(crate) t_ns: u64,
    /// Key of the stack of a BEGIN.
    pub(crate) stack: u64,
    pub(crate) record: Owned,
}

impl Event {
    fn new(envelope: Envelope<'_>) -> Self {
        let record = match envelope.record {
            Record::Begin { api, depth, context, args, blobs, .. } => Owned::Begin {
                api,
                depth,
                context,
                args: args.iter().collect(),
                blobs: blobs.iter().map(|(tag, bytes)| (tag, bytes.to_vec())).collect(),
            },
            Record::End { begin, api, result, outs } => {
                Owned::End { begin, api, result, outs: outs.iter().collect() }
            }
            Record::Kernel { function, name, params, .. } => Owned::Kernel {
                function,
                name: name.to_owned(),
                params: params.map(|p| p.iter().collect()),
            },
            Record::Accesses { op, list, complete } => {
                Owned::Accesses { op, list: list.iter().collect(), complete }
            }
            Record::Measured { op, node, complete, flags, runs } => {
                Owned::Measured { op, node, runs: runs.iter().collect(), flags, complete }
            }
            Record::NotMeasured { op, reason, detail } => Owned::NotMeasured {
                op,
                reason,
                detail: String::from_utf8_lossy(detail).into_owned(),
            },
            Record::HostFunctionBegin { op } => Owned::HostFunctionBegin { op },
            Record::HostFunctionEnd { op } => Owned::HostFunctionEnd { op },
            Record::Host { call, args, text, .. } => Owned::Host {
                call,
                args: args.iter().collect(),
                text: String::from_utf8_lossy(text).into_owned(),
            },
            Record::Image { op, image } => Owned::Image {
                op,
                origin: image.origin,
                size: image.size,
                path: String::from_utf8_lossy(image.path).into_owned(),
            },
            Record::Object(object) => Owned::Object {
                number: object.number,
                path: String::from_utf8_lossy(object.path).into_owned(),
            },
            Record::Stack { key, truncated, frames } => Owned::Stack {
                key,
                truncated,
                frames: frames
                    .iter()
                    .map(|frame| match frame {
                        StackFrame::Native { object, offset } => (object, offset),
                        StackFrame::Python { .. } => panic!("no Python here"),
                    })
                    .collect(),
            },
            Record::Graph(part) => Owned::Graph(OwnedPart::new(part)),
            Record::HostReturn { host, result } => Owned::HostReturn { host, result },
        };
        let Envelope { process, thread, tid, g, t_ns, .. } = envelope;
        let stack = match envelope.record {
            Record::Begin { stack, .. } | Record::Host { stack, .. } => stack,
            _ => 0,
        };
        Self { process, thread, tid, g, t_ns, stack, record }
    }

    pub(crate) fn begins(&self, wanted: Api) -> bool {
        matches!(self.record, Owned::Begin { api, .. } if api == wanted)
    }
}

/// The records that a run left.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) events: Vec<Event>,
    pub(crate) processes: Vec<ProcessInfo>,
    pub(crate) coverage: Vec<(String, u64)>,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) rings: usize,
    /// The longest time for which the reader may have given no sign that it gets on.
    pub(crate) longest_silence: Duration,
}

impl Recorded {
    pub(crate) fn calls(&self, name: &str) -> u64 {
        self.coverage.iter().find(|(n, _)| n == name).map_or(0, |(_, calls)| *calls)
    }

    pub(crate) fn count(&self, wanted: Api) -> usize {
        self.events.iter().filter(|event| event.begins(wanted)).count()
    }
}

/// How a run differs from the usual.
pub(crate) struct Options {
    pub(crate) ring_bytes: u64,
    /// Reads nothing until the program has ended.
    pub(crate) late: bool,
    /// Reads nothing for so long once a process is there, and says meanwhile that it gets on.
    pub(crate) busy: Duration,
    /// How long programs wait for a reader that does nothing.
    pub(crate) patience: Duration,
    /// LD_PRELOAD in place of the runtime alone.
    pub(crate) preload: Option<String>,
    pub(crate) stacks: StackMode,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ring_bytes: 1 << 20,
            late: false,
            busy: Duration::ZERO,
            patience: RingOptions::default().patience,
            preload: None,
            stacks: StackMode::OFF,
        }
    }
}

/// A directory with the fake driver, in which programs are built.
pub(crate) fn bench() -> &'static Path {
    static BENCH: OnceLock<PathBuf> = OnceLock::new();
    BENCH.get_or_init(|| {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("injected");
        let path = parent.join(std::process::id().to_string());
        // The folders that earlier runs left.
        for old in std::fs::read_dir(&parent).into_iter().flatten().flatten() {
            if !Path::new("/proc").join(old.file_name()).exists() {
                let _ = std::fs::remove_dir_all(old.path());
            }
        }
        std::fs::create_dir_all(&path).unwrap();
        fake::build(&path);
        path
    })
}

/// The runtime, which cargo builds beside the test.
pub(crate) fn runtime() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.with_file_name("libstreamsan_runtime.so");
    assert!(library.exists(), "{} is missing", library.display());
    library
}

/// The command that runs `program` under the runtime.
fn command(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", runtime())
        .env("LD_LIBRARY_PATH", bench())
        .env(RUN_DIR_VARIABLE, directory)
        .stdout(Stdio::piped());
    command
}

/// Runs `program` under the runtime.
pub(crate) fn run(program: &Path, args: &[&str]) -> Recorded {
    run_with(program, args, &Options::default())
}

pub(crate) fn run_with(program: &Path, args: &[&str], options: &Options) -> Recorded {
    let options_of_rings = RingOptions {
        ring_bytes: options.ring_bytes,
        stacks: options.stacks,
        patience: options.patience,
        ..RingOptions::default()
    };
    let mut directory = RunDirectory::create(options_of_rings).unwrap();
    let mut command = command(program, directory.path());
    if let Some(preload) = &options.preload {
        command.env("LD_PRELOAD", preload);
    }
    let child = command.args(args).spawn().unwrap();
    let waiter = std::thread::spawn(move || child.wait_with_output().unwrap());
    let mut events = Vec::new();
    let mut rings = 0;
    let mut busy_since = Instant::now();
    let (mut sign, mut longest_silence) = (Instant::now(), Duration::ZERO);
    loop {
        // Each turn gives one while the program waits: two signs lie in two turns.
        longest_silence = longest_silence.max(2 * sign.elapsed());
        sign = Instant::now();
        let ended = waiter.is_finished() && !directory.any_alive();
        if options.late && !ended {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        if directory.processes().is_empty() {
            busy_since = Instant::now();
        } else if busy_since.elapsed() < options.busy {
            directory.note_progress();
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        let count = directory.drain(1000, &mut |e| events.push(Event::new(e))).unwrap();
        rings = rings.max(ring_files(directory.path()));
        directory.release();
        if count == 0 {
            if ended {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert_eq!(directory.attach_failures(), 0);
    let output = waiter.join().unwrap();
    assert!(events.windows(2).all(|pair| pair[0].g < pair[1].g), "g must strictly increase");
    Recorded {
        events,
        processes: directory.processes().to_vec(),
        coverage: directory.coverage(),
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        rings,
        longest_silence,
    }
}

fn ring_files(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with("ring-")).count()
}
