//! Asks a real GPU which orders it keeps.
//!
//! Each check holds one side back with a kernel that passes time, and sees whether the other side
//! waits for it: whether a mark appears, or a call returns, while the stream is still held. The
//! answers explain; they make no order documented.
//!
//! `semantics [REPEATS]` prints a table in Markdown, which `docs/semantics-on-hardware.md` keeps.

mod copies;
mod events;
mod graphs;
mod lab;
mod memory;
mod questions;
mod streams;

use lab::{Failure, Lab};
use std::process::ExitCode;

/// The question of a check about one order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    /// The row of the rules that it is about, and the question.
    pub(crate) name: &'static str,
    /// The documentation's answer.
    pub(crate) documented: &'static str,
    /// Whether the later side waited for the earlier one, in one trial.
    pub(crate) trial: fn(&mut Lab) -> Result<bool, Failure>,
}

/// A group of checks with its title.
type Group = (&'static str, &'static [Check]);

const GROUPS: &[Group] = &[
    ("Streams", streams::CHECKS),
    ("Events", events::CHECKS),
    ("Copies and memsets", copies::CHECKS),
    ("Memory", memory::CHECKS),
    ("Graphs and launches", graphs::CHECKS),
    ("Open questions", questions::CHECKS),
];

fn main() -> ExitCode {
    let repeats = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(100);
    match run(repeats) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(repeats: u32) -> Result<(), Failure> {
    let mut lab = Lab::new()?;
    for (title, checks) in GROUPS {
        println!("\n## {title}\n");
        println!("| question | documentation | waited |\n|---|---|---|");
        for check in *checks {
            println!(
                "| {} | {} | {} |",
                check.name,
                check.documented,
                ask(&mut lab, check, repeats)
            );
        }
    }
    Ok(())
}

/// `97 of 100`, or why there is no answer.
fn ask(lab: &mut Lab, check: &Check, repeats: u32) -> String {
    let mut waited = 0;
    // The first trial pays for what is loaded lazily.
    for trial in 0..=repeats {
        let answer = (check.trial)(lab);
        if let Err(failure) = lab.clean_up() {
            return format!("failed: {failure}");
        }
        match answer {
            Ok(answer) if trial > 0 => waited += u32::from(answer),
            Ok(_) => {}
            Err(failure) => return format!("no answer: {failure}"),
        }
    }
    format!("{waited} of {repeats}")
}
