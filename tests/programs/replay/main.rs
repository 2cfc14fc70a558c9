//! Performs a text trace: one driver call for each line that stands for one, in the order of the
//! lines and on the host threads that they name. What is recorded of it must be judged like the
//! text itself.
//!
//! The objects that the trace presupposes (buffers, streams and events that no line makes) are made
//! before the first line, and at the end the program waits for all of its work, so that every
//! kernel has run and told what it touched. It frees and destroys nothing that no line frees or
//! destroys.
//!
//! Exit code 0 with one line on standard output; 2 with a message for a trace that cannot be
//! performed: one with accesses that no driver call makes, for example. Lock step: a line is begun
//! when the one before has returned.

mod copies;
mod driver;
mod kernels;
mod machine;
mod perform;
mod plan;
mod threads;

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use streamsan_model::{Operation, TraceItem};

/// Why a trace cannot be performed.
#[derive(Debug)]
struct Refusal {
    /// 0 where it is no single line.
    line: u64,
    why: String,
}

impl Refusal {
    fn new(why: impl Into<String>) -> Self {
        Self { line: 0, why: why.into() }
    }

    fn at(self, operation: &Operation) -> Self {
        Self { line: operation.g.0, ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.why),
            line => write!(f, "line {line}: {}", self.why),
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [file] = arguments.as_slice() else {
        eprintln!("usage: replay FILE.trace");
        return ExitCode::from(2);
    };
    match replay(Path::new(file)) {
        Ok(()) => {
            println!("replay: done");
            ExitCode::SUCCESS
        }
        Err(refusal) => {
            eprintln!("replay: cannot perform {}: {refusal}", Path::new(file).display());
            ExitCode::from(2)
        }
    }
}

fn replay(file: &Path) -> Result<(), Refusal> {
    let text = fs::read_to_string(file).map_err(|error| Refusal::new(error.to_string()))?;
    let trace = streamsan_text::parse(&text).map_err(|error| Refusal::new(error.to_string()))?;
    if trace.strict_host_threads() {
        return Err(Refusal::new("host threads whose locks the run sees"));
    }
    plan::check(&trace.items)?;
    let machine = machine::Machine::open(&trace.items)?;
    let operations = trace.items.iter().filter_map(|item| match item {
        TraceItem::Operation(operation) => Some(operation),
        _ => None,
    });
    threads::perform(machine, operations)
}
