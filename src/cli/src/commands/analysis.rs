//! The one way from items to findings, for everything that is not analysed while it is recorded.

use super::output::messages_are_held;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::time::Duration;
use streamsan_analysis::{Engine, HostModel, Options, Sink, Statistics};
use streamsan_model::{Edge, Entities, Finding, Lint, TraceItem};
use streamsan_report::Folded;
use streamsan_store::Meta;

/// Shorter work is over before a bar could be read.
const WORTH_A_BAR: u64 = 200_000;
const STRIDE: u64 = 4096;

/// Folds findings and keeps no edge.
#[derive(Debug, Default)]
pub(crate) struct Folding(pub(crate) Folded);

impl Sink for Folding {
    fn edge(&mut self, _: &Edge) {}

    fn finding(&mut self, finding: Finding) {
        self.0.add(finding);
    }

    fn lint(&mut self, lint: Lint) {
        self.0.add_lint(lint);
    }
}

/// Analyses a whole trace, with a progress bar when it is long and standard error is a terminal.
pub(crate) fn analyse_with(
    options: Options,
    items: impl IntoIterator<Item = impl Borrow<TraceItem>>,
    operations: Option<u64>,
    sink: &mut dyn Sink,
) -> (Statistics, Entities) {
    let bar = bar(operations);
    let mut engine = Engine::new(options);
    let mut done = 0;
    for item in items {
        engine.feed(item.borrow(), sink);
        done += u64::from(matches!(item.borrow(), TraceItem::Operation(_)));
        if done % STRIDE == 0 {
            bar.set_position(done);
        }
    }
    engine.finish(sink);
    bar.finish_and_clear();
    (engine.statistics(), engine.entities().clone())
}

/// Shows that work goes on whose length is not known.
pub(crate) fn spinner(what: &'static str, operations: u64) -> ProgressBar {
    if operations < WORTH_A_BAR || messages_are_held() {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    spinner.set_message(what);
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

fn bar(operations: Option<u64>) -> ProgressBar {
    let Some(operations) = operations.filter(|&n| n >= WORTH_A_BAR && !messages_are_held()) else {
        return ProgressBar::hidden();
    };
    // Draws only on a terminal.
    let bar = ProgressBar::with_draw_target(Some(operations), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("analysing {bar:30} {human_pos} of {human_len} operations") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Key of a trace's meta data: whether host threads were watched.
const STRICT_HOST_THREADS: &str = "strict_host_threads";

/// The host model of `--strict-host-threads`.
pub(crate) fn host_model(strict: bool) -> HostModel {
    if strict { HostModel::Strict } else { HostModel::default() }
}

/// What a trace remembers of the host model.
pub(crate) fn host_model_meta(strict: bool) -> BTreeMap<String, String> {
    let remembered = strict.then(|| (STRICT_HOST_THREADS.to_owned(), "true".to_owned()));
    remembered.into_iter().collect()
}

/// Whether a trace was recorded with `--strict-host-threads`.
pub(crate) fn is_strict(meta: &Meta) -> bool {
    meta.extra.contains_key(STRICT_HOST_THREADS)
}
