//! How fast the collector's side reads: records a second out of four rings, merged by index.

use std::ffi::CString;
use std::sync::atomic::Ordering;

use divan::counter::ItemsCount;
use streamsan_wire::{
    Control, PROCESS_BYTES, ProcessFile, ProcessStat, Producer, RING_HEADER_BYTES, RecordKind,
    RingHeader, RingOptions, RunDirectory, map_existing, map_new,
};

const RINGS: u32 = 4;
const RECORDS: usize = 4_000;
const RING: u64 = 1 << 20;

fn main() {
    divan::main();
}

fn path(text: String) -> CString {
    CString::new(text).expect("no NUL")
}

/// This process as a traced one with some rings.
fn join(directory: &RunDirectory) -> (&'static Control, Vec<Producer>) {
    let directory = directory.path().display();
    let control = map_existing(&path(format!("{directory}/control"))).expect("control");
    let file = map_new(&path(format!("{directory}/process-0")), PROCESS_BYTES).expect("file");
    let stat = std::fs::read("/proc/self/stat").expect("own stat");
    // SAFETY: fresh mappings of the right size that are never unmapped.
    let (control, process) = unsafe {
        let control: &'static Control = control.start.cast::<Control>().as_ref();
        let process = &mut *file.start.as_ptr().cast::<ProcessFile>();
        process.pid = std::process::id();
        process.start_time = ProcessStat::parse(&stat).expect("parses").start_time;
        process.stamp();
        (control, process)
    };
    let producers = (0..RINGS)
        .map(|ring| {
            let name = path(format!("{directory}/ring-0-{ring}"));
            let mapping = map_new(&name, RING_HEADER_BYTES + RING as usize).expect("ring");
            // SAFETY: a fresh mapping that is never unmapped; this is its only producer.
            let mut producer = unsafe {
                mapping.start.cast::<RingHeader>().as_mut().initialise(RING);
                Producer::new(mapping)
            };
            assert!(producer.has_room(8, 0));
            producer.publish(&control.g, 1, RecordKind::ThreadStart, (0, 0), 8, |b| b.word(1));
            producer
        })
        .collect();
    process.rings.store(RINGS, Ordering::Release);
    control.processes.store(1, Ordering::Release);
    (control, producers)
}

/// `in_a_row`: records that one thread publishes before the next does.
#[divan::bench(args = [1, 16])]
fn drain(bencher: divan::Bencher<'_, '_>, in_a_row: usize) {
    let mut directory =
        RunDirectory::create(RingOptions { ring_bytes: RING, ..RingOptions::default() })
            .expect("a directory");
    let (control, mut producers) = join(&directory);
    let directory = std::cell::RefCell::new(&mut directory);
    bencher
        .counter(ItemsCount::new(RECORDS))
        .with_inputs(|| {
            directory.borrow_mut().release();
            for record in 0..RECORDS {
                let producer = &mut producers[record / in_a_row % RINGS as usize];
                assert!(producer.has_room(80, 0));
                // A copy's size: a context, four parameters and what follows them.
                producer.publish(&control.g, 1, RecordKind::HostFunctionEnd, (0, 0), 80, |body| {
                    body.zeros(80);
                });
            }
        })
        .bench_local_values(|()| {
            let mut sum = 0;
            let sink = &mut |envelope: streamsan_wire::Envelope<'_>| sum += envelope.g;
            let count = directory.borrow_mut().drain(usize::MAX, sink).expect("readable rings");
            assert_eq!(count, RECORDS);
            sum
        });
}
