//! The stacks that calls are recorded with are those that the program says it has.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use streamsan_wire::{Api, ProcessKey, StackMode};

use crate::harness::{Options, Owned, Recorded, bench, run_with};
use streamsan_testing::fake_driver as fake;

const NATIVE: StackMode = StackMode { native: true, python: false };

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let text = include_str!("c/stacks.c");
        let options =
            ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-l:libcuda.so.1"];
        fake::program(bench(), "stacks", text, &options)
    })
}

fn run(arguments: &[&str]) -> Recorded {
    let recorded =
        run_with(program(), arguments, &Options { stacks: NATIVE, ..Options::default() });
    assert!(recorded.status.success(), "{arguments:?}: {:?}", recorded.status);
    recorded
}

/// A recorded stack: object and offset of each frame, innermost first.
#[derive(Debug)]
struct Stack {
    argument: u64,
    truncated: bool,
    frames: Vec<(String, u64)>,
}

/// The stacks of all calls, in their order.
fn stacks(recorded: &Recorded) -> Vec<Stack> {
    let mut objects: HashMap<(ProcessKey, u32), String> = HashMap::new();
    let mut known = HashMap::new();
    let mut found = Vec::new();
    for event in &recorded.events {
        match &event.record {
            Owned::Object { number, path } => {
                objects.insert((event.process, *number), path.clone());
            }
            Owned::Stack { key, truncated, frames } => {
                let named = |&(object, offset): &(u32, u64)| {
                    let path = match object {
                        0 => "",
                        _ => objects.get(&(event.process, object)).expect("objects come first"),
                    };
                    let name = Path::new(path).file_name();
                    (name.map_or(String::new(), |name| name.to_string_lossy().into()), offset)
                };
                let frames: Vec<_> = frames.iter().map(named).collect();
                known.insert((event.process, *key), (*truncated, frames));
            }
            Owned::Begin { api: Api::cuMemFree_v2, args, .. } => {
                let stack = known.get(&(event.process, event.stack));
                let (truncated, frames) = stack.expect("each call has a stack").clone();
                found.push(Stack { argument: args[0], truncated, frames });
            }
            _ => {}
        }
    }
    found
}

/// Offsets that the program expects behind the innermost frame, by call.
fn expected(recorded: &Recorded) -> Vec<(u64, Vec<u64>)> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let argument = words.next().and_then(|word| word.parse().ok()).expect("an argument");
        let offset = |word: &str| u64::from_str_radix(word, 16).ok();
        (argument, words.map_while(offset).collect())
    };
    recorded.stdout.lines().map(line).collect()
}

/// Compares the stacks of the program's own calls, each with the next expectation of its argument;
/// answers the stacks.
fn check(recorded: &Recorded) -> Vec<Stack> {
    let (stacks, mut expected) = (stacks(recorded), expected(recorded));
    assert_eq!(stacks.len(), expected.len());
    for stack in &stacks {
        let at = expected.iter().position(|(argument, _)| *argument == stack.argument);
        let (_, wanted) = expected.remove(at.expect("a call that was told"));
        let shown = stack.frames.len() - 1;
        let found: Vec<u64> =
            stack.frames[1..].iter().map(|(_, offset)| *offset).take(wanted.len()).collect();
        assert!(stack.truncated || shown >= wanted.len(), "{stack:x?}: {wanted:x?}");
        assert_eq!(found, wanted[..shown.min(wanted.len())], "{stack:x?}");
        assert_eq!(stack.frames[0].0, "stacks");
    }
    stacks
}

#[test]
fn code_without_frame_pointers_is_unwound() {
    let recorded = run(&["plain"]);
    let stacks = check(&recorded);
    assert_eq!(stacks.len(), 4);
    for stack in &stacks {
        assert!(!stack.truncated, "{stack:?}");
        // From `main` on it is libc's start, and the program's own.
        let last = stack.frames.last().expect("frames");
        assert_eq!(last.0, "stacks");
        assert!(stack.frames.iter().any(|(object, _)| object == "libc.so.6"), "{stack:?}");
    }
    // A stack seen before is not told again.
    let told = recorded.events.iter().filter(|e| matches!(e.record, Owned::Stack { .. })).count();
    let keys: BTreeSet<u64> = recorded.events.iter().map(|event| event.stack).collect();
    assert_eq!(told, keys.len() - 1, "one is that of the events without stack");
}

#[test]
fn threads_end_where_they_began() {
    let stacks = check(&run(&["threads"]));
    assert_eq!(stacks.len(), 4);
    assert!(stacks.iter().all(|stack| !stack.truncated));
}

#[test]
fn deep_stacks_are_cut_and_say_so() {
    let stacks = check(&run(&["deep"]));
    assert!(stacks[0].truncated);
    assert_eq!(stacks[0].frames.len(), 64);
}

#[test]
fn coroutines_and_alternative_stacks_are_walked_as_far_as_they_go() {
    for what in ["coroutine", "signal"] {
        let stacks = check(&run(&[what]));
        let arguments: Vec<u64> = stacks.iter().map(|stack| stack.argument).collect();
        assert_eq!(arguments, [1, 2], "{what}");
    }
}

#[test]
fn threads_with_little_room_have_no_stacks_and_go_on() {
    let recorded = run(&["little"]);
    assert_eq!(recorded.count(Api::cuMemFree_v2), 3);
    let keys: Vec<bool> = recorded
        .events
        .iter()
        .filter(|event| event.begins(Api::cuMemFree_v2))
        .map(|event| event.stack != 0)
        .collect();
    // A thread whose stack is the least that there is, and a coroutine with a guard page.
    assert_eq!(keys, [false, false, true]);
}

#[test]
fn generated_code_is_stepped_over_or_ends_the_stack() {
    let found = check(&run(&["generated"]));
    // Generated code is in no file.
    assert_eq!(found[0].frames[2].0, "", "{found:?}");
    assert!(found[0].frames.len() > 5, "{found:?}");
    for what in ["frameless", "wild"] {
        let recorded = run(&[what]);
        let found = stacks(&recorded);
        assert_eq!(found[0].frames.len(), 2, "{what}: {found:?}");
        assert!(found[0].truncated, "{what}");
    }
}

#[test]
fn a_library_in_the_place_of_a_closed_one_is_told_apart() {
    let library = |name: &str, padding: &str| {
        let text = format!(
            "void pass(void (*f)(unsigned long long), unsigned long long argument) {{ \
               volatile char room[{padding}]; room[0] = 1; f(argument); room[1] = 2; }}"
        );
        fake::library(bench(), name, &text);
        bench().join(name).to_str().unwrap().to_owned()
    };
    let [first, second] = [library("libfirst.so", "16"), library("libsecond.so", "4000")];
    let recorded = run(&["libraries", &first, &second, &first]);
    let stacks = stacks(&recorded);
    let wanted = ["libfirst.so", "libsecond.so", "libfirst.so"];
    assert_eq!(stacks.len(), 3);
    for (stack, library) in stacks.iter().zip(wanted) {
        let objects: Vec<&str> = stack.frames.iter().map(|(object, _)| object.as_str()).collect();
        assert_eq!(objects[..4], ["stacks", "stacks", library, "stacks"], "{stack:?}");
        assert!(!stack.truncated, "{stack:?}");
    }
}

#[test]
fn a_forked_child_tells_its_stacks_itself() {
    let stacks = check(&run(&["fork"]));
    assert_eq!(stacks.len(), 2);
}

#[test]
fn stacks_that_come_again_are_told_apart() {
    // Most of them are remembered by then; frames of other sizes lie in between.
    assert_eq!(check(&run(&["again"])).len(), 400);
}

#[test]
fn stacks_that_do_not_fit_a_small_ring_are_told_again() {
    let options = Options { stacks: NATIVE, ring_bytes: 64 << 10, ..Options::default() };
    let recorded = run_with(program(), &["many"], &options);
    assert_eq!(recorded.processes[0].dropped, 0);
    assert_eq!(stacks(&recorded).len(), 1000);
}

#[test]
fn without_the_option_nothing_is_recorded() {
    let recorded = run_with(program(), &["plain"], &Options::default());
    assert!(recorded.events.iter().all(|event| event.stack == 0));
    let is_stack = |record: &Owned| matches!(record, Owned::Stack { .. } | Owned::Object { .. });
    assert!(!recorded.events.iter().any(|event| is_stack(&event.record)));
}
