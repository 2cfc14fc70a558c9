//! The one way from items to findings, for everything that is not analysed while it is recorded.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Borrow;
use std::time::Duration;
use streamsan_analysis::{Analysis, Engine, Options};
use streamsan_model::TraceItem;

/// Shorter work is over before a bar could be read.
const WORTH_A_BAR: u64 = 200_000;
const STRIDE: u64 = 4096;

/// Analyses a whole trace, with a progress bar when it is long and standard error is a terminal.
/// Findings come sorted by the later operation, the earlier operation, the allocation.
pub(crate) fn analyse(
    items: impl IntoIterator<Item = impl Borrow<TraceItem>>,
    operations: Option<u64>,
) -> Analysis {
    let bar = bar(operations);
    let mut engine = Engine::new(Options::default());
    let mut analysis = Analysis::default();
    let mut done = 0;
    for item in items {
        engine.feed(item.borrow(), &mut analysis);
        done += u64::from(matches!(item.borrow(), TraceItem::Operation(_)));
        if done % STRIDE == 0 {
            bar.set_position(done);
        }
    }
    engine.finish(&mut analysis);
    bar.finish_and_clear();
    analysis.findings.sort_by_key(|f| (f.second.op, f.first.op, f.allocation));
    analysis.statistics = engine.statistics();
    analysis.entities = engine.entities().clone();
    analysis
}

/// Shows that work goes on whose length is not known.
pub(crate) fn spinner(what: &'static str, operations: u64) -> ProgressBar {
    if operations < WORTH_A_BAR {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    spinner.set_message(what);
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

fn bar(operations: Option<u64>) -> ProgressBar {
    let Some(operations) = operations.filter(|&n| n >= WORTH_A_BAR) else {
        return ProgressBar::hidden();
    };
    // Draws only on a terminal.
    let bar = ProgressBar::with_draw_target(Some(operations), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("analysing {bar:30} {human_pos} of {human_len} operations") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
