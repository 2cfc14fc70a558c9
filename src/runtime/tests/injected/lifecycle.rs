//! Processes that fork, exec and die, threads that come and go: nothing published is lost, and
//! nobody writes into another's ring.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;

use streamsan_wire::{Api, ProcessKey};

use crate::harness::{Options, Owned, Recorded, bench, run, run_with, runtime};
use streamsan_testing::fake_driver as fake;

pub(crate) fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            let text = include_str!("c/lifecycle.c");
            fake::program(bench(), "lifecycle", text, &["-l:libcuda.so.1"])
        })
        .clone()
}

/// Process and argument of each recorded `cuMemFree_v2`, by argument.
fn frees(recorded: &Recorded) -> Vec<(ProcessKey, u64)> {
    let mut frees: Vec<_> = recorded
        .events
        .iter()
        .filter_map(|event| match &event.record {
            Owned::Begin { api: Api::cuMemFree_v2, args, .. } => Some((event.process, args[0])),
            _ => None,
        })
        .collect();
    frees.sort_by_key(|(_, argument)| *argument);
    frees
}

fn ends(recorded: &Recorded) -> usize {
    recorded.events.iter().filter(|e| matches!(e.record, Owned::End { .. })).count()
}

#[test]
fn forked_children_are_processes_of_their_own() {
    check_fork(&run(&program(), &["fork"]));
}

#[test]
fn forked_children_are_noticed_where_the_kernel_cannot_wipe_pages() {
    let shim = "#define _GNU_SOURCE\n#include <errno.h>\n#include <sys/mman.h>\n\
        #include <sys/syscall.h>\n#include <unistd.h>\n\
        int madvise(void *start, size_t len, int advice) {\n\
          if (advice == MADV_WIPEONFORK) { errno = EINVAL; return -1; }\n\
          return syscall(SYS_madvise, start, len, advice); }";
    fake::library(bench(), "libnowipe.so", shim);
    let shim = bench().join("libnowipe.so");
    let preload = Some(format!("{}:{}", shim.display(), runtime().display()));
    check_fork(&run_with(&program(), &["fork"], &Options { preload, ..Options::default() }));
}

fn check_fork(recorded: &Recorded) {
    let keys = [ProcessKey(0), ProcessKey(1), ProcessKey(2)];
    let expected = [(keys[0], 1), (keys[1], 2), (keys[2], 3), (keys[0], 4)];
    assert_eq!(frees(recorded), expected);
    assert_eq!(ends(recorded), 4);
    let [first, second, third] = &recorded.processes[..] else {
        panic!("{:?}", recorded.processes)
    };
    assert_eq!(second.parent, first.pid);
    assert_eq!(third.parent, second.pid);
    assert_eq!(recorded.calls("cuInit"), 2);
}

#[test]
fn a_child_of_a_bare_clone_is_a_process_of_its_own() {
    let recorded = run(&program(), &["clone"]);
    assert_eq!(frees(&recorded), [(ProcessKey(0), 1), (ProcessKey(1), 2)]);
    assert_eq!(recorded.calls("cuInit"), 1);
}

#[test]
fn programs_started_by_vfork_and_exec_say_hello() {
    let recorded = run(&program(), &["exec"]);
    let [first, child, after] = &recorded.processes[..] else { panic!("{:?}", recorded.processes) };
    let name = program().display().to_string();
    assert_eq!(first.args, [&name[..], "exec"]);
    assert_eq!(child.args, [&name[..], "once", "with spaces"]);
    assert_eq!(after.args, [&name[..], "once"]);
    assert_eq!((after.pid, after.start_time), (first.pid, first.start_time));
    assert_eq!(child.parent, first.pid);
    assert_eq!(first.exe, std::fs::canonicalize(program()).unwrap().display().to_string());
    assert_eq!(frees(&recorded), [(first.key, 1), (child.key, 7), (after.key, 7)]);
}

#[test]
fn nothing_is_lost_however_a_process_ends() {
    for (how, code, calls) in [("_exit", Some(9), 1), ("abort", None, 1), ("kill", None, 1000)] {
        let recorded = run_with(&program(), &[how], &Options { late: true, ..Options::default() });
        assert_eq!(recorded.status.code(), code, "{how}");
        assert_eq!(recorded.count(Api::cuMemFree_v2), calls, "{how}");
        assert_eq!(ends(&recorded), calls, "{how}");
        assert!(!recorded.processes[0].alive);
        assert_eq!(recorded.processes[0].dropped, 0);
    }
}

#[test]
fn short_lived_threads_share_rings() {
    let recorded = run(&program(), &["threads", "4000"]);
    assert_eq!(recorded.count(Api::cuMemFree_v2), 4000);
    let threads: BTreeSet<_> = recorded.events.iter().map(|event| event.thread).collect();
    assert_eq!(threads.len(), 4000, "each start of a thread has a key of its own");
    // Eight at once; a thread that was joined has given its ring back.
    assert!(recorded.rings <= 8, "{} rings", recorded.rings);
    assert_eq!(recorded.processes[0].dropped, 0);
}

#[test]
fn calls_in_thread_destructors_are_recorded_as_that_threads() {
    let recorded = run(&program(), &["destructors"]);
    assert_eq!(recorded.count(Api::cuMemFree_v2), 128);
    let threads: BTreeSet<_> = recorded.events.iter().map(|event| event.thread).collect();
    assert_eq!(threads.len(), 64);
    assert!(recorded.rings <= 2, "{} rings", recorded.rings);
}
