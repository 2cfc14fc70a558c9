//! Operations per second into the store, as the collector hands them over: a pipeline of launches
//! and copies with two accesses each, records and waits, committed every 50,000 operations.

use chrono::DateTime;
use divan::Bencher;
use divan::counter::ItemsCount;
use streamsan_model::{
    Access, Action, AllocationId, Basis, ByteRange, Copy, EventId, Extent, GridControl, HostTime,
    KernelId, MemoryKind, Mode, OpSeq, Operation, ProcessId, SourceOrder, Status, StreamId,
    ThreadId, TraceItem,
};
use streamsan_store::{Meta, Reader, Writer};

const OPERATIONS: u64 = 500_000;
const COMMIT_EVERY: usize = 50_000;

fn main() {
    divan::main();
}

fn item(n: u64) -> TraceItem {
    let stream = StreamId((n % 8) as u32);
    let event = EventId((n % 8) as u32);
    let (api, action) = match n % 4 {
        0 => (
            "cuLaunchKernel",
            Action::Launch {
                stream,
                kernel: KernelId(0),
                programmatic: false,
                control: GridControl::default(),
                cooperative: false,
                event: None,
            },
        ),
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
        ),
        2 => ("cuEventRecord", Action::EventRecord { event, stream }),
        _ => ("cuStreamWaitEvent", Action::StreamWaitEvent { stream, event }),
    };
    let access = |allocation: u64, mode| Access {
        allocation: AllocationId(allocation as u32),
        extent: Extent::Range(ByteRange::with_len(0x7f00_0000_0000 + allocation * 65_536, 65_536)),
        mode,
        basis: Basis::Exact,
    };
    let start_ns = 1_000_000_000_000 + n * 2_000;
    TraceItem::Operation(Operation {
        g: OpSeq(2 * n + 1),
        exit: Some(OpSeq(2 * n + 2)),
        process: ProcessId(0),
        thread: ThreadId(0),
        api: api.into(),
        time: Some(HostTime { start_ns, end_ns: start_ns + 1_500 }),
        status: Status::SUCCESS,
        action,
        accesses: if n % 4 < 2 {
            vec![access(n % 1000, Mode::Write), access((n + 1) % 1000, Mode::Read)]
        } else {
            vec![]
        },
        stack: None,
    })
}

fn store(path: &std::path::Path, items: &[TraceItem]) -> Writer {
    let meta = Meta {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: DateTime::UNIX_EPOCH,
        command: vec![],
        host: String::new(),
        driver: String::new(),
        extra: Default::default(),
    };
    let mut writer = Writer::create(path, &meta).expect("the temporary directory is writable");
    for chunk in items.chunks(COMMIT_EVERY) {
        for item in chunk {
            writer.item(item).expect("there is room");
        }
        writer.commit().expect("there is room");
    }
    writer
}

/// While the program runs.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn record(bencher: Bencher<'_, '_>) {
    let items: Vec<TraceItem> = (0..OPERATIONS).map(item).collect();
    bencher
        .counter(ItemsCount::new(OPERATIONS))
        .with_inputs(|| tempfile::tempdir().expect("there is a temporary directory"))
        .bench_local_values(|folder| {
            let writer = store(&folder.path().join("trace.db"), &items);
            (folder, writer)
        });
}

/// At its end: indexes, and one file.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn finalize(bencher: Bencher<'_, '_>) {
    let items: Vec<TraceItem> = (0..OPERATIONS).map(item).collect();
    bencher
        .counter(ItemsCount::new(OPERATIONS))
        .with_inputs(|| {
            let folder = tempfile::tempdir().expect("there is a temporary directory");
            let writer = store(&folder.path().join("trace.db"), &items);
            (folder, writer)
        })
        .bench_local_values(|(folder, writer)| {
            writer.finalize().expect("there is room");
            folder
        });
}

/// For `check`: everything back from the file.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn read(bencher: Bencher<'_, '_>) {
    let items: Vec<TraceItem> = (0..OPERATIONS).map(item).collect();
    let folder = tempfile::tempdir().expect("there is a temporary directory");
    let path = folder.path().join("trace.db");
    store(&path, &items).finalize().expect("there is room");
    bencher.counter(ItemsCount::new(OPERATIONS)).bench_local(|| {
        let reader = Reader::open(&path).expect("it was just written");
        assert_eq!(reader.items().filter(Result::is_ok).count() as u64, OPERATIONS);
    });
}
