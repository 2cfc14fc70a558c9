//! The whole of streamsan on real programs: the command wraps a program, the runtime is injected,
//! the simulated driver runs it, and verdict, findings, exit code and trace are checked.
//!
//! Nothing here is faked: the programs are ordinary binaries, the command is the one that users
//! run. What is expected of a program stands in a table beside the programs, not here.
//! Deliberately absent: a real GPU (`tests/gpu`), and assertions about time.
#![forbid(unsafe_code)]

mod bad_input;
mod build_servers;
mod chaos;
mod command;
mod demo;
mod directories;
mod ends;
mod exit_codes;
mod expected;
mod fleet;
mod googletest;
mod hazards;
mod host_accesses;
mod host_side;
mod kernel_code;
mod launchers;
mod live;
mod places;
mod printed_fixes;
mod programs;
mod pytest_plugin;
mod python;
mod python_package;
mod random_traces;
mod replay;
mod runners;
mod sanitizers;
mod settle;
mod signals;
mod source_fixes;
mod stacks;
mod surroundings;
mod system_scope;
mod tools;
mod verdicts;

use libtest_mimic::{Arguments, Trial};

fn main() {
    streamsan_testing::signals::do_not_inherit_ignored();
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    verdicts::add(&mut trials);
    hazards::add(&mut trials);
    chaos::add(&mut trials);
    host_accesses::add(&mut trials);
    host_side::add(&mut trials);
    system_scope::add(&mut trials);
    kernel_code::add(&mut trials);
    settle::add(&mut trials);
    signals::add(&mut trials);
    live::add(&mut trials);
    stacks::add(&mut trials);
    places::add(&mut trials);
    printed_fixes::add(&mut trials);
    source_fixes::add(&mut trials);
    surroundings::add(&mut trials);
    exit_codes::add(&mut trials);
    bad_input::add(&mut trials);
    demo::add(&mut trials);
    directories::add(&mut trials);
    ends::add(&mut trials);
    build_servers::add(&mut trials);
    googletest::add(&mut trials);
    pytest_plugin::add(&mut trials);
    python::add(&mut trials);
    python_package::add(&mut trials);
    replay::add(&mut trials);
    runners::add(&mut trials);
    launchers::add(&mut trials);
    fleet::add(&mut trials);
    sanitizers::add(&mut trials);
    libtest_mimic::run(&arguments, trials).exit();
}

/// A trial that fails by panicking, as an ordinary test function does.
fn trial(name: impl Into<String>, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
