//! Kernels that touch what a line says, under the name that the line says.

use std::fmt::Write;

use streamsan_model::{Access, Extent, Mode};

const PTX: &str = include_str!("../ptx/touch.ptx");

/// Runs of bytes that one launch can be told to touch, as the PTX declares.
pub(crate) const MOST_RUNS: usize = 160;

/// The parameters of a kernel.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) count: u64,
    /// Address, length and mode of each run.
    pub(crate) runs: [[u64; 3]; MOST_RUNS],
}

/// How many runs of bytes an access is.
pub(crate) fn runs(extent: &Extent) -> usize {
    match extent {
        Extent::Range(_) => 1,
        Extent::Strided(pattern) => pattern.rows.saturating_mul(pattern.slices) as usize,
    }
}

/// The PTX's number of a mode that a kernel can have.
pub(crate) fn mode(mode: Mode) -> Option<u64> {
    match mode {
        Mode::Read => Some(0),
        Mode::Write => Some(1),
        Mode::ReadWrite => Some(2),
        Mode::Atomic => Some(3),
        Mode::MayWrite | Mode::Allocate | Mode::Free | Mode::Prefetch | Mode::Discard => None,
    }
}

impl Table {
    /// The accesses with addresses as `place` moves them.
    pub(crate) fn of(accesses: &[Access], place: impl Fn(&Access, u64) -> u64) -> Self {
        let mut table = Self { count: 0, runs: [[0; 3]; MOST_RUNS] };
        let all = accesses.iter().flat_map(|access| {
            let runs = match access.extent {
                Extent::Range(range) => vec![range],
                Extent::Strided(pattern) => pattern.runs().collect(),
            };
            runs.into_iter().map(move |run| (access, run))
        });
        for (row, (access, run)) in table.runs.iter_mut().zip(all) {
            *row = [place(access, run.start), run.len(), mode(access.mode).unwrap_or(0)];
            table.count += 1;
        }
        table
    }
}

/// Whether PTX takes the name, and takes it for nothing else.
pub(crate) fn is_name(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

/// Where a kernel begins that waits for its programmatic predecessors, and what it needs.
const BEGIN: &str = "    ld.param.u64    %left, [touch_count];\n";
const WAIT: &str = "    griddepcontrol.wait;\n";
const TARGETS: [(&str, &str); 2] = [(".version 7.0", ".version 7.8"), ("sm_70", "sm_90")];

/// A module with kernels of these names, each with whether it waits for its programmatic
/// predecessors, and variables of these names and sizes.
pub(crate) fn module(kernels: &[(&str, bool)], variables: &[(&str, u64)]) -> String {
    let (head, kernel) = PTX.split_once(".visible").unwrap_or((PTX, ""));
    let mut text = head.to_owned();
    if kernels.iter().any(|(_, waits)| *waits) {
        for (old, new) in TARGETS {
            text = text.replace(old, new);
        }
    }
    for (name, size) in variables {
        let _ = writeln!(text, ".visible .global .align 16 .b8 {name}[{size}];");
    }
    for (name, waits) in kernels {
        let begin = if *waits { format!("{WAIT}{BEGIN}") } else { BEGIN.to_owned() };
        let kernel = kernel.replace(BEGIN, &begin).replace("touch", name);
        let _ = writeln!(text, ".visible{kernel}");
    }
    text
}
