//! Calls, rows, and the reasons of an incomplete run.

use super::styled::{Text, bold, plain};
use crate::State;
use crate::names;
use streamsan_model::{Axis, Verdict};
use streamsan_names::{printable, printable_line};

/// Rows that are listed, those with the most operations first.
const ROWS: usize = 100;

pub(super) fn lines(state: &State) -> Vec<Text> {
    let Some(open) = &state.open else { return vec![plain("…")] };
    let trace = state.trace_in_focus();
    let several = open.are_several();
    let open = open.of(trace);
    let overview = &open.overview;
    let mut lines = Vec::new();
    if several {
        lines.push(bold(super::trace_in_words(state, trace)));
        let shift = state.alignment.shift(trace, Axis::Time);
        lines.push(plain(format!("Times are aligned {}.", state.clock)));
        lines.push(plain(format!("This trace begins at +{}.", names::duration(shift))));
    }
    if state.is_running() {
        lines.push(plain("The program runs: what was not seen is told at its end."));
    } else if state.has_no_cuda() {
        lines.push(bold(format!("NO CUDA: {}.", Verdict::NO_CUDA_MEANS)));
    } else if overview.incomplete.is_empty() {
        lines.push(plain("Everything that orders or touches memory was seen."));
    } else {
        lines.push(bold("Not seen:"));
        lines.extend(
            overview
                .incomplete
                .iter()
                .map(|reason| plain(format!("  {}", printable_line(&reason.to_string())))),
        );
    }
    if let Some(host) = &overview.host_accesses {
        let told = host.description();
        lines.push(plain(format!("Host accesses: {}.", printable_line(&told))));
    }
    match state.calls.as_ref().filter(|(of, _)| *of == trace) {
        None => lines.push(plain("…")),
        Some((_, calls)) => {
            lines.push(bold(format!(
                "{:<36} {:>12} {:>14} {:>12} {:>9}",
                "call of the driver", "calls", "in the driver", "each", "failures"
            )));
            lines.extend(calls.iter().map(|call| {
                plain(format!(
                    "{:<36} {:>12} {:>14} {:>12} {:>9}",
                    printable(&call.api),
                    names::number(call.calls),
                    names::duration(call.driver_ns),
                    names::duration(call.driver_ns / call.calls.max(1)),
                    names::number(call.failures)
                ))
            }));
        }
    }
    let mut rows: Vec<_> = overview.lanes.iter().collect();
    rows.sort_by_key(|lane| (std::cmp::Reverse(lane.operations), lane.id));
    lines.push(bold(format!("{:<36} {:>12}", "row", "operations")));
    lines.extend(rows.iter().take(ROWS).map(|lane| {
        let name = open.lane(lane.id);
        plain(format!("{name:<36} {:>12}", names::number(lane.operations)))
    }));
    lines
}
