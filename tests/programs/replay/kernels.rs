//! Kernels that touch what a line says, under the name that the line says.

use std::fmt::Write;

use streamsan_model::{Access, Extent, GridControl, Mode, Trigger};

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
        // The kernel's accesses are weak ones.
        Mode::StrongRead | Mode::StrongWrite | Mode::StrongAtomic => None,
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

/// Where the loop over the runs begins and ends, and what stands in front of it.
const BEGIN: &str = "    ld.param.u64    %left, [touch_count];\n";
const LOOP: &str = "NEXT_RUN:\n";
const END: &str = "END:\n";
const WAIT: &str = "    griddepcontrol.wait;\n";
const TRIGGER: &str = "    griddepcontrol.launch_dependents;\n";
const TARGETS: [(&str, &str); 2] = [(".version 7.0", ".version 7.8"), ("sm_70", "sm_90")];

/// A module with kernels of these names, each with what it does about the kernels before and behind
/// it (its early accesses counted in runs of bytes), and variables of these names and sizes.
pub(crate) fn module(kernels: &[(&str, GridControl)], variables: &[(&str, u64)]) -> String {
    let (head, kernel) = PTX.split_once(".visible").unwrap_or((PTX, ""));
    let mut text = head.to_owned();
    if kernels.iter().any(|(_, control)| *control != GridControl::default()) {
        for (old, new) in TARGETS {
            text = text.replace(old, new);
        }
    }
    for (name, size) in variables {
        let _ = writeln!(text, ".visible .global .align 16 .b8 {name}[{size}];");
    }
    for (name, control) in kernels {
        let kernel = controlled(kernel, *control).replace("touch", name);
        let _ = writeln!(text, ".visible{kernel}");
    }
    text
}

/// The kernel with a wait behind its first runs, and with a trigger.
fn controlled(kernel: &str, control: GridControl) -> String {
    let (begin, rest) = kernel.split_once(LOOP).unwrap_or((kernel, ""));
    let (runs, end) = rest.split_once(END).unwrap_or((rest, ""));
    let mut text = begin.to_owned();
    if control.trigger == Trigger::Early {
        text.push_str(TRIGGER);
    }
    if control.waits && control.early > 0 {
        let early = control.early;
        let first = format!(
            "    .reg .b64   %rest;\n{BEGIN}    min.u64         %left, %left, {early};\n\
             {LOOP}{runs}{END}"
        );
        let mut first = first;
        for label in ["NEXT_RUN", "NEXT_BYTE", "STORE", "STEP", "ATOMIC", "END"] {
            first = first.replace(label, &format!("EARLY_{label}"));
        }
        text.push_str(&first);
        // The others.
        let _ = writeln!(
            text,
            "{BEGIN}    min.u64         %rest, %left, {early};\n    \
             sub.s64         %left, %left, %rest;"
        );
    }
    if control.waits {
        text.push_str(WAIT);
    }
    if control.trigger == Trigger::BehindWait {
        text.push_str(TRIGGER);
    }
    text + LOOP + runs + END + end
}
