//! Records as a program could write them into the memory that it shares with the collector.

use crate::scratch;
use std::ffi::CString;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use streamsan_wire::{
    Api, Control, GraphPart, Mapping, PROCESS_BYTES, ProcessFile, ProcessStat, RING_HEADER_BYTES,
    Record, RecordKind, RingHeader, RingOptions, RunDirectory, map_existing, map_new,
};

/// Bytes of a ring.
const RING: usize = 64 << 10;

fn map(directory: &str, name: &str, bytes: usize) -> Mapping {
    let path = CString::new(format!("{directory}/{name}")).expect("no NUL");
    match bytes {
        0 => map_existing(&path).expect("a file of the run directory"),
        bytes => map_new(&path, bytes).expect("there is room"),
    }
}

/// Puts a process with one ring that holds `bytes` into the directory, and says that as many
/// records were begun as can be in it.
fn publish(directory: &RunDirectory, bytes: &[u8]) {
    static START: OnceLock<u64> = OnceLock::new();
    let start_time = *START.get_or_init(|| {
        let stat = std::fs::read("/proc/self/stat").expect("own stat");
        ProcessStat::parse(&stat).expect("parses").start_time
    });
    let path = directory.path().to_str().expect("UTF-8");
    let length = bytes.len().min(RING) / 8 * 8;
    let control = map(path, "control", 0);
    let process = map(path, "process-0", PROCESS_BYTES);
    let ring = map(path, "ring-0-0", RING_HEADER_BYTES + RING);
    // SAFETY: mappings of the right sizes, which nobody else uses; those of new files are zeroes,
    // which all of these are valid as, and they are unmapped after their last use.
    unsafe {
        let header = ring.start.cast::<RingHeader>().as_mut();
        header.initialise(RING as u64);
        let data = ring.start.add(RING_HEADER_BYTES);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), data.as_ptr(), length);
        header.head.store(length as u64, Ordering::Release);
        let file = process.start.cast::<ProcessFile>().as_mut();
        file.pid = std::process::id();
        file.start_time = start_time;
        file.stamp();
        file.rings.store(1, Ordering::Release);
        let shared = control.start.cast::<Control>().as_ref();
        shared.g.store(1 << 40, Ordering::Release);
        shared.processes.store(1, Ordering::Release);
        control.unmap();
        process.unmap();
        ring.unmap();
    }
}

/// Reads everything that a record refers to, as the collector would.
fn look_at(record: &Record<'_>) {
    let printed = format!("{record:?}");
    drop(printed);
    match record {
        Record::Begin { api, args, blobs, .. } => {
            let count = api.signature().params.len() + 2;
            for at in 0..count {
                black_box((args.get(at), blobs.get(at), blobs.member_params(at)));
            }
            black_box((blobs.kernel_params(), blobs.launch_attributes()));
        }
        Record::Kernel { params: Some(layout), .. } => {
            let sum = layout.iter().fold(0_u64, |sum, (at, size)| sum ^ u64::from(at ^ size));
            black_box(sum);
        }
        Record::Accesses { list, .. } => drop(list.iter().last()),
        Record::Measured { runs, .. } => drop(runs.iter().last()),
        Record::Stack { frames, .. } => drop(frames.iter().last()),
        Record::Graph(GraphPart::Edges { edges, .. }) => drop(edges.iter().last()),
        _ => {}
    }
}

pub(crate) fn run(input: &[u8]) {
    // The files that others left in the usual place are looked through each time.
    let parent = Some(scratch::folder());
    let options = RingOptions { ring_bytes: RING as u64, parent, ..RingOptions::default() };
    let mut directory = RunDirectory::create(options).expect("a run directory");
    publish(&directory, input);
    let mut last = 0;
    for most in [1, usize::MAX] {
        let drained = directory.drain(most, &mut |envelope| {
            assert!(envelope.g > last, "indices ascend");
            last = envelope.g;
            look_at(&envelope.record);
        });
        drained.expect("readable rings");
        directory.release();
    }
    directory.coverage();
}

/// A record: its kind and call, its index, and the words behind.
fn record(kind: RecordKind, api: u16, g: u64, words: &[u64]) -> Vec<u8> {
    let size = 24 + 8 * words.len() as u64;
    let first = size | (kind as u64) << 32 | u64::from(api) << 48;
    [first, g, g].iter().chain(words).flat_map(|word| word.to_le_bytes()).collect()
}

/// One record of each kind, and one of each call.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let text = u64::from_le_bytes(*b"a_name__");
    let start = record(RecordKind::ThreadStart, 0, 1, &[7]);
    let kinds = [
        (RecordKind::Begin, vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]),
        (RecordKind::End, vec![2, 0, 3, 4]),
        (RecordKind::Kernel, vec![5, 8 | 1 << 32, 6, 7, 8 << 32, text]),
        (RecordKind::Accesses, vec![2, 1, 0x1000, 0x2000, 1, 0x3000, 0x4000, 2]),
        (RecordKind::Measured, vec![2, 0, 1 | 1 << 32, 0x1000, 8, 16, 4, 1 | 2 << 32]),
        (RecordKind::NotMeasured, vec![2, 3 | 8 << 32, text]),
        (RecordKind::HostFunctionBegin, vec![2]),
        (RecordKind::HostFunctionEnd, vec![2]),
        (RecordKind::Host, vec![0, 2, 8, 1, 2, text]),
        (RecordKind::HostReturn, vec![2, 0]),
        (RecordKind::Image, vec![2, 1 | 8 << 32, 9, 0, 100, text]),
        (RecordKind::Object, vec![1, 0x1000, 0x2000, 8, 4, text, text]),
        (RecordKind::Stack, vec![9, 0, 0, 1, 0x1010, 1, 8, text]),
        (RecordKind::Graph, vec![0, 1, 2, 3, 4, 5, 6, 7]),
    ];
    let mut all = start.clone();
    let mut seeds = Vec::new();
    for (g, (kind, words)) in (2..).zip(&kinds) {
        let one = record(*kind, 0, g, words);
        all.extend(&one);
        seeds.push([start.clone(), one].concat());
    }
    seeds.push(all);
    let calls = (0..Api::COUNT as u16).zip(2..);
    let words: Vec<u64> = (0..20).collect();
    let calls = calls.flat_map(|(api, g)| record(RecordKind::Begin, api, g, &words));
    seeds.push([start, calls.collect()].concat());
    seeds
}
