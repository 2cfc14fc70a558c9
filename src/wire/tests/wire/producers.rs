//! Producers in threads of this process: total order, the watermark, and memory that a program
//! has written over.

use std::ffi::CString;
use std::sync::atomic::Ordering;

use streamsan_wire::{
    Control, IDLE, Mapping, PROCESS_BYTES, ProcessFile, ProcessStat, Producer, RING_HEADER_BYTES,
    Record, RecordKind, RingHeader, RingOptions, RunDirectory, map_existing, map_new,
};

const RING: u64 = 64 << 10;

/// This process as a traced one.
struct Traced {
    directory: String,
    control: &'static Control,
    process: &'static ProcessFile,
    rings: u32,
}

fn path(text: String) -> CString {
    CString::new(text).expect("no NUL")
}

impl Traced {
    fn join(directory: &RunDirectory) -> Self {
        let directory = directory.path().to_str().expect("UTF-8").to_owned();
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
            (control, &*process)
        };
        control.processes.store(1, Ordering::Release);
        Self { directory, control, process, rings: 0 }
    }

    fn ring(&mut self) -> (Producer, Mapping) {
        let name = format!("{}/ring-0-{}", self.directory, self.rings);
        let mapping = map_new(&path(name), RING_HEADER_BYTES + RING as usize).expect("ring");
        // SAFETY: a fresh mapping that is never unmapped; this is its only producer.
        let producer = unsafe {
            mapping.start.cast::<RingHeader>().as_mut().initialise(RING);
            Producer::new(mapping)
        };
        // SAFETY: no preconditions.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        producer.header().tid.store(tid, Ordering::Relaxed);
        self.rings += 1;
        self.process.rings.store(self.rings, Ordering::Release);
        (producer, mapping)
    }
}

fn start(producer: &mut Producer, control: &Control, tid: u32) {
    while !producer.has_room(8, 0) {
        std::thread::yield_now();
    }
    let kind = RecordKind::ThreadStart;
    producer.publish(&control.g, 1, kind, (0, 0), 8, |body| body.word(u64::from(tid)));
}

/// Publishes a HostFunctionEnd that carries `value`.
fn publish(producer: &mut Producer, control: &Control, value: u64) -> u64 {
    while !producer.has_room(8, 0) {
        std::thread::yield_now();
    }
    let kind = RecordKind::HostFunctionEnd;
    producer.publish(&control.g, 1, kind, (0, 0), 8, |body| body.word(value))
}

fn create() -> RunDirectory {
    RunDirectory::create(RingOptions { ring_bytes: RING, ..RingOptions::default() })
        .expect("a run directory")
}

#[test]
fn records_of_many_threads_come_in_one_order_and_none_comes_late() {
    const THREADS: u64 = 4;
    const RECORDS: u64 = 30_000;
    let mut directory = create();
    let mut traced = Traced::join(&directory);
    let control = traced.control;
    let producers: Vec<_> = (0..THREADS).map(|_| traced.ring().0).collect();
    let mut seen = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = producers
            .into_iter()
            .enumerate()
            .map(|(thread, mut producer)| {
                scope.spawn(move || {
                    let producer = &mut producer;
                    start(producer, control, thread as u32);
                    for record in 0..RECORDS {
                        publish(producer, control, (thread as u64) << 32 | record);
                    }
                })
            })
            .collect();
        loop {
            let ended = threads.iter().all(|thread| thread.is_finished());
            let count = directory
                .drain(777, &mut |envelope| {
                    let Record::HostFunctionEnd { op } = envelope.record else { panic!() };
                    assert_eq!(u64::from(envelope.tid), op >> 32);
                    seen.push((envelope.g, op));
                })
                .expect("readable rings");
            directory.release();
            if ended && count == 0 {
                break;
            }
        }
    });
    assert_eq!(seen.len() as u64, THREADS * RECORDS);
    assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0), "a record came late");
    for thread in 0..THREADS {
        let own: Vec<_> = seen.iter().filter(|(_, op)| op >> 32 == thread).collect();
        assert!(own.iter().enumerate().all(|(i, (_, op))| *op == thread << 32 | i as u64));
    }
    assert_eq!(directory.processes()[0].corrupted, 0);
}

#[test]
fn a_publication_in_progress_holds_back_what_comes_after_it() {
    let mut directory = create();
    let mut traced = Traced::join(&directory);
    let control = traced.control;
    let (mut slow, _) = traced.ring();
    let (mut quick, _) = traced.ring();
    start(&mut slow, control, 1);
    start(&mut quick, control, 2);
    let drained = |directory: &mut RunDirectory| {
        let mut values = Vec::new();
        directory
            .drain(usize::MAX, &mut |envelope| {
                let Record::HostFunctionEnd { op } = envelope.record else { panic!() };
                values.push(op);
            })
            .expect("readable rings");
        values
    };
    publish(&mut quick, control, 1);
    // The steps of `publish`, stopped after it took its index.
    slow.header().pending.store(control.g.load(Ordering::Relaxed), Ordering::Relaxed);
    control.g.fetch_add(1, Ordering::AcqRel);
    publish(&mut quick, control, 2);
    assert_eq!(drained(&mut directory), [1]);
    assert_eq!(drained(&mut directory), []);
    // The thread dies there: its gap is closed.
    slow.header().tid.store(i32::MAX as u32, Ordering::Relaxed);
    assert_eq!(drained(&mut directory), [2]);
    slow.header().pending.store(IDLE, Ordering::Release);
    publish(&mut quick, control, 3);
    assert_eq!(drained(&mut directory), [3]);
}

#[test]
fn released_space_is_used_again_and_unreleased_space_is_not() {
    let mut directory = create();
    let mut traced = Traced::join(&directory);
    let control = traced.control;
    let (mut producer, _) = traced.ring();
    start(&mut producer, control, 1);
    let mut written = 0;
    while producer.has_room(8, 0) {
        publish(&mut producer, control, written);
        written += 1;
    }
    let mut read = 0;
    let mut count = |directory: &mut RunDirectory, max| {
        directory.drain(max, &mut |_| read += 1).expect("readable rings")
    };
    assert_eq!(count(&mut directory, 10), 10);
    assert!(directory.pressure() > 0.99);
    assert!(!producer.has_room(8, 0), "handed out is not released");
    directory.release();
    assert!(producer.has_room(8, 0));
    assert_eq!(count(&mut directory, usize::MAX), written as usize - 10);
    directory.release();
    assert!(directory.pressure() < 0.01);
    assert_eq!(directory.coverage(), []);
}

#[test]
fn memory_that_a_program_wrote_over_is_reported_and_never_followed() {
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut corrupted = 0;
    for round in 0..60 {
        let mut directory = create();
        let mut traced = Traced::join(&directory);
        let control = traced.control;
        let (mut producer, mapping) = traced.ring();
        let (mut sound, _) = traced.ring();
        start(&mut producer, control, 1);
        start(&mut sound, control, 2);
        for value in 0..100 {
            publish(&mut producer, control, value);
            publish(&mut sound, control, value);
        }
        // Some bytes of records, or of the words that say how far they reach.
        for _ in 0..=round % 8 {
            let at = match next() % 4 {
                0 => 64 + next() % 24,
                _ => RING_HEADER_BYTES as u64 + next() % 3200,
            };
            // SAFETY: inside the mapping; nobody else uses it now.
            unsafe { mapping.start.as_ptr().add(at as usize).write(next() as u8) };
        }
        let mut last = 0;
        for _ in 0..3 {
            directory
                .drain(usize::MAX, &mut |envelope| {
                    assert!(envelope.g > last);
                    last = envelope.g;
                })
                .expect("readable rings");
            directory.release();
        }
        corrupted += directory.processes()[0].corrupted;
    }
    assert!(corrupted > 20, "only {corrupted} of 60 rings were seen to be damaged");
}

#[test]
fn the_directory_is_gone_afterwards_and_its_ring_size_is_checked() {
    // A parent of its own: elsewhere another test may take the name as soon as it is free.
    let parent = tempfile::tempdir().expect("a temporary directory");
    let options = RingOptions {
        ring_bytes: RING,
        parent: Some(parent.path().to_owned()),
        ..RingOptions::default()
    };
    let directory = RunDirectory::create(options).expect("a run directory");
    let place = directory.path().to_owned();
    assert!(place.join("control").exists());
    drop(directory);
    assert!(!place.exists());
    for ring_bytes in [0, 4096, 100_000] {
        let refused = RunDirectory::create(RingOptions { ring_bytes, ..RingOptions::default() });
        assert!(refused.is_err(), "{ring_bytes}");
    }
}

/// A control file of a run whose collector had this process id.
fn left_behind_by(parent: &std::path::Path, collector: u32) -> std::path::PathBuf {
    let options =
        RingOptions { ring_bytes: RING, parent: Some(parent.to_owned()), ..RingOptions::default() };
    let directory = RunDirectory::create(options).expect("a run directory");
    let place = directory.path().to_owned();
    let control = path(format!("{}/control", place.display()));
    let control = map_existing(&control).expect("control").start.cast::<Control>();
    // SAFETY: mapped in its whole length and never unmapped; only this thread looks at it.
    unsafe { (*control.as_ptr()).collector = collector };
    // As a collector that is killed: nothing is removed.
    std::mem::forget(directory);
    place
}

#[test]
fn what_a_killed_collector_left_is_removed_and_what_a_living_one_uses_is_not() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let other = parent.path().join("streamsan-notes");
    std::fs::create_dir(&other).expect("made");
    let living = left_behind_by(parent.path(), std::process::id());
    left_behind_by(parent.path(), i32::MAX as u32);
    let options = RingOptions {
        ring_bytes: RING,
        parent: Some(parent.path().to_owned()),
        ..RingOptions::default()
    };
    let directory = RunDirectory::create(options).expect("a run directory");
    assert!(directory.path().exists() && living.exists() && other.exists());
    // The name of the one that was removed is free again, so they are counted.
    assert_eq!(std::fs::read_dir(parent.path()).expect("readable").count(), 3);
}

#[test]
fn a_count_of_processes_that_was_written_over_costs_little_and_hides_nobody() {
    let mut directory = create();
    let mut traced = Traced::join(&directory);
    let (mut producer, _) = traced.ring();
    start(&mut producer, traced.control, 1);
    publish(&mut producer, traced.control, 7);
    traced.control.processes.store(u32::MAX, Ordering::Release);
    for expected in [1, 0, 0] {
        let count = directory.drain(usize::MAX, &mut |_| ()).expect("readable rings");
        assert_eq!(count, expected);
    }
}

#[test]
fn files_that_were_written_over_are_losses() {
    let mut directory = create();
    let mut traced = Traced::join(&directory);
    let (_, mapping) = traced.ring();
    let second = format!("{}/process-1", traced.directory);
    map_new(&path(second), PROCESS_BYTES).expect("file");
    traced.control.processes.store(2, Ordering::Release);
    // SAFETY: inside the mapping; nobody else uses it now.
    unsafe { mapping.start.as_ptr().cast::<u64>().write(0) };
    assert_eq!(directory.drain(usize::MAX, &mut |_| ()).expect("readable"), 0);
    assert_eq!(directory.processes().len(), 1);
    assert_eq!(directory.processes()[0].corrupted, 1);
    assert_eq!(directory.attach_failures(), 1);
}

#[test]
fn what_was_published_before_closing_is_told_from_what_comes_after() {
    let mut directory = create();
    let mut traced = Traced::join(&directory);
    let control = traced.control;
    let (mut producer, _) = traced.ring();
    start(&mut producer, control, 1);
    let last = publish(&mut producer, control, 1);
    let end = directory.close();
    assert_eq!(end, last + 1);
    publish(&mut producer, control, 2);
    assert_eq!(directory.drain(1, &mut |_| ()).expect("readable rings"), 1);
    assert_eq!(directory.handed_out(), last);
    assert_ne!(control.closed.load(Ordering::Acquire), 0);
}

/// A program that truncates the run's files loses its own records, and no other program's.
#[test]
fn files_that_are_cut_while_they_are_read_are_losses_of_their_process() {
    let open = |file: String| std::fs::OpenOptions::new().write(true).open(file).expect("there");
    for cut in ["ring", "process", "control"] {
        let mut directory = create();
        let mut traced = Traced::join(&directory);
        let (mut first, _) = traced.ring();
        let (mut second, _) = traced.ring();
        let name = match cut {
            "ring" => "ring-0-0",
            "process" => "process-0",
            _ => "control",
        };
        let file = open(format!("{}/{name}", traced.directory));
        for producer in [&mut first, &mut second] {
            start(producer, traced.control, 1);
            publish(producer, traced.control, 1);
        }
        assert_eq!(directory.drain(usize::MAX, &mut |_| ()).expect("readable rings"), 2);
        let left = publish(&mut second, traced.control, 2);
        file.set_len(0).expect("cut");
        let mut values = Vec::new();
        let count = directory.drain(usize::MAX, &mut |envelope| values.push(envelope.g));
        // The records of other programs are there, whatever file was truncated.
        assert_eq!((count.expect("readable rings"), values), (1, vec![left]), "{cut}");
        let lost = (directory.processes()[0].corrupted, directory.attach_failures());
        assert_eq!(lost, if cut == "control" { (0, 1) } else { (1, 0) }, "{cut}");
        assert_eq!(directory.drain(usize::MAX, &mut |_| ()).expect("readable rings"), 0);
        assert!(directory.close() > left, "{cut}");
        // Said once.
        assert_eq!((directory.processes()[0].corrupted, directory.attach_failures()), lost);
    }
}

/// A file that the collector has taken over has no name by which a program could truncate it.
#[test]
fn files_lose_their_names_when_they_are_mapped() {
    let mut directory = create();
    let mut traced = Traced::join(&directory);
    let _ring = traced.ring();
    assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 3);
    directory.drain(usize::MAX, &mut |_| ()).expect("readable rings");
    let left = std::fs::read_dir(directory.path()).expect("there");
    let left: Vec<_> = left.map(|entry| entry.expect("readable").file_name()).collect();
    assert_eq!(left, ["control"]);
}
