//! The records of host threads about themselves: annotations, and accesses of instrumented code.

use std::path::PathBuf;

use streamsan_wire::{Api, HostCall, RecordedMode, StackMode};

use crate::harness::{Event, Options, Owned, Recorded, bench, run, run_with};
use streamsan_testing::fake_driver as fake;

const PROGRAM: &str = include_str!("c/host.c");
const HEADER: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../annotate/include");

fn host_events(recorded: &Recorded) -> Vec<(&Event, HostCall, &[u64], &str)> {
    let host = |event: &'_ Event| matches!(event.record, Owned::Host { .. });
    recorded
        .events
        .iter()
        .filter(|event| host(event))
        .map(|event| match &event.record {
            Owned::Host { call, args, text } => (event, *call, &args[..], text.as_str()),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn annotations_are_recorded_in_order() {
    let program = fake::program(bench(), "annotated", PROGRAM, &[HEADER, "-l:libcuda.so.1"]);
    let recorded = run(&program, &["annotate"]);
    assert!(recorded.status.success());
    let events: Vec<_> = host_events(&recorded)
        .into_iter()
        .map(|(_, call, args, text)| (call, args.to_vec(), text))
        .collect();
    let expected = [
        (HostCall::HostRead, vec![0x1000, 16], ""),
        (HostCall::HostWrite, vec![0x2000, 32], ""),
        (HostCall::NameStream, vec![0x77], "download"),
        (HostCall::NameMemory, vec![0x3000], ""),
    ];
    assert_eq!(events, expected);
}

#[test]
fn accesses_have_stacks_and_names_have_none() {
    let program = fake::program(bench(), "placed", PROGRAM, &[HEADER, "-l:libcuda.so.1"]);
    let stacks = StackMode { native: true, python: false };
    let recorded = run_with(&program, &["annotate"], &Options { stacks, ..Options::default() });
    let events = host_events(&recorded);
    let with_stack: Vec<_> =
        events.iter().map(|(event, call, ..)| (*call, event.stack != 0)).collect();
    let expected = [
        (HostCall::HostRead, true),
        (HostCall::HostWrite, true),
        (HostCall::NameStream, false),
        (HostCall::NameMemory, false),
    ];
    assert_eq!(with_stack, expected);
    assert_ne!(events[0].0.stack, events[1].0.stack);
}

#[test]
fn an_index_parts_the_calls_before_from_those_after() {
    let program = fake::program(bench(), "indexed", PROGRAM, &[HEADER, "-l:libcuda.so.1"]);
    let recorded = run(&program, &["index"]);
    let told: Vec<u64> =
        recorded.stdout.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let calls = recorded.events.iter().filter(|event| event.begins(Api::cuStreamSynchronize));
    let calls: Vec<u64> = calls.map(|event| event.g).collect();
    let (&[before, after], &[first, second]) = (&told[..], &calls[..]) else {
        panic!("{told:?}, {calls:?}")
    };
    assert!(before <= first && first < after && after <= second, "{told:?}, {calls:?}");
}

/// The stub that instrumented programs are linked with, which cargo builds beside the test.
fn stub() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.with_file_name("libstreamsan_tsan.so");
    assert!(library.exists(), "{} is missing", library.display());
    library
}

#[test]
fn instrumented_accesses_stand_where_they_happened() {
    let object = bench().join("instrumented.o");
    let object = object.to_str().unwrap();
    fake::object(bench(), "instrumented", PROGRAM, object, &[HEADER, "-fsanitize=thread"]);
    let link = [object, stub().to_str().unwrap(), "-l:libcuda.so.1"].map(str::to_owned);
    let link: Vec<&str> = link.iter().map(String::as_str).collect();
    let program = fake::program(bench(), "instrumented", "", &link);
    let recorded = run(&program, &[]);
    assert_eq!((recorded.stdout.as_str(), recorded.status.code()), ("16\n", Some(0)));

    let register = |event: &&Event| event.begins(Api::cuMemHostRegister_v2);
    let register = recorded.events.iter().find(register).unwrap();
    let Owned::Begin { args, .. } = &register.record else { panic!() };
    let memory = args[0];
    let synchronize = recorded.events.iter().find(|e| e.begins(Api::cuStreamSynchronize)).unwrap();

    let ranges: Vec<_> = host_events(&recorded)
        .into_iter()
        .map(|(event, call, args, _)| {
            assert_eq!(call, HostCall::Touched);
            (event.thread, event.g > synchronize.g, args.to_vec())
        })
        .collect();
    let (read, write) = (RecordedMode::Read as u64, RecordedMode::Write as u64);
    let written = vec![memory, memory + 4096, write];
    let summed = vec![memory + 16, memory + 32, read];
    assert_eq!(ranges.len(), 2, "{ranges:?}");
    assert_ne!(ranges[0].0, ranges[1].0, "two threads");
    assert_eq!((&ranges[0].2, ranges[0].1), (&written, false));
    assert_eq!((&ranges[1].2, ranges[1].1), (&summed, true));
    assert_eq!(ranges[1].0, synchronize.thread);
    assert_eq!(recorded.processes[0].dropped, 0);
}
