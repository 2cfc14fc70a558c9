//! The one way from items to findings, for everything that is not analysed while it is recorded.

use super::output::messages_are_held;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Borrow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::time::Duration;
use streamsan_analysis::{Engine, HostModel, Options, Sink, Statistics};
use streamsan_model::{Edge, Entities, Finding, Lint, OpSeq, TraceItem};
use streamsan_report::Folded;
use streamsan_store::Meta;

/// Shorter work is over before a bar could be read.
const WORTH_A_BAR: u64 = 200_000;
pub(super) const STRIDE: u64 = 4096;

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

thread_local! {
    /// Whether this thread works on one of many traces, which have a bar of their own.
    static WITHOUT_BARS: Cell<bool> = const { Cell::new(false) };
}

/// Lets nothing on this thread show a bar while `work` goes on.
pub(super) fn without_bars<T>(work: impl FnOnce() -> T) -> T {
    let before = WITHOUT_BARS.replace(true);
    let result = work();
    WITHOUT_BARS.set(before);
    result
}

/// Whether a bar would be one too many.
fn has_no_bars() -> bool {
    messages_are_held() || WITHOUT_BARS.get()
}

/// Shows how many of so many traces are done.
pub(super) fn progress_of_traces(count: usize) -> ProgressBar {
    if count < 2 || has_no_bars() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(count as u64), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{bar:30} {human_pos} of {human_len} traces") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Shows that work goes on whose length is not known.
pub(super) fn spinner(what: &'static str, operations: u64) -> ProgressBar {
    // Elsewhere nothing is drawn, and a thread that draws may be one too many.
    if operations < WORTH_A_BAR || has_no_bars() || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let spinner = spinner_on(ProgressDrawTarget::stderr(), what);
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

fn spinner_on(target: ProgressDrawTarget, what: &'static str) -> ProgressBar {
    // The style of a bar without a length would show 0 of 0.
    let spinner = ProgressBar::with_draw_target(None, target);
    spinner.with_style(ProgressStyle::default_spinner()).with_message(what)
}

/// Where a progress bar is drawn: on a terminal that shows nothing else.
pub(super) fn screen() -> ProgressDrawTarget {
    if has_no_bars() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
}

/// Shows how far a trace is read, whose last operation is told.
pub(super) fn reading_bar(target: ProgressDrawTarget, last: Option<OpSeq>) -> ProgressBar {
    let Some(last) = last.filter(|last| last.0 >= WORTH_A_BAR) else {
        return ProgressBar::hidden();
    };
    let bar = ProgressBar::with_draw_target(Some(last.0), target);
    match ProgressStyle::with_template("reading the trace {bar:30} {percent} %") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Shows how far an analysis has come.
pub(super) fn bar(operations: Option<u64>) -> ProgressBar {
    let Some(operations) = operations.filter(|&n| n >= WORTH_A_BAR && !has_no_bars()) else {
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

/// The trace's memory of the host model.
pub(crate) fn host_model_meta(strict: bool) -> BTreeMap<String, String> {
    let remembered = strict.then(|| (STRICT_HOST_THREADS.to_owned(), "true".to_owned()));
    remembered.into_iter().collect()
}

/// Whether a trace was recorded with `--strict-host-threads`.
pub(crate) fn is_strict(meta: &Meta) -> bool {
    meta.extra.contains_key(STRICT_HOST_THREADS)
}

#[cfg(test)]
mod tests {
    use super::super::trace::{Trace, parse};
    use super::{WORTH_A_BAR, reading_bar, spinner_on};
    use indicatif::{ProgressDrawTarget, TermLike};
    use std::io;
    use std::path::Path;
    use std::sync::{Arc, Mutex};
    use streamsan_model::{OpSeq, Operation, TraceItem};

    /// A terminal that keeps what is written to it.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl Screen {
        fn target(&self) -> ProgressDrawTarget {
            ProgressDrawTarget::term_like(Box::new(self.clone()))
        }

        fn text(&self) -> String {
            self.0.lock().expect("nobody panics").clone()
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().expect("nobody panics").push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn work_of_unknown_length_shows_no_numbers() {
        let screen = Screen::default();
        let spinner = spinner_on(screen.target(), "finishing the trace");
        spinner.tick();
        let text = screen.text();
        assert!(text.contains("finishing the trace") && !text.contains("0/0"), "{text:?}");
    }

    #[test]
    fn reading_a_long_trace_shows_how_far_it_is() {
        let one =
            parse(Path::new("one.trace"), b"launch s1 produce w:A\n".to_vec()).expect("a trace");
        let operation = one.items.iter().find_map(|item| match item {
            TraceItem::Operation(operation) => Some(operation.clone()),
            _ => None,
        });
        let operation = operation.expect("a call");
        let long = |last: u64| {
            let mut trace = one.clone();
            trace.items = (1..=last)
                .map(|g| TraceItem::Operation(Operation { g: OpSeq(g), ..operation.clone() }))
                .collect();
            Trace::of_text(trace)
        };
        let screen = Screen::default();
        let mut count = 0;
        let mut halfway = String::new();
        let trace = long(WORTH_A_BAR);
        let read = trace.items_shown(screen.target(), |_| {
            count += 1;
            if count == WORTH_A_BAR / 2 + 5000 {
                halfway = screen.text();
            }
        });
        assert!(read.is_ok());
        assert_eq!(count, WORTH_A_BAR);
        assert!(halfway.contains("reading the trace") && halfway.contains(" %"), "{halfway:?}");
        // An analysis that is over at once is not worth a bar.
        let screen = Screen::default();
        assert!(long(10).items_shown(screen.target(), |_| {}).is_ok());
        assert_eq!(screen.text(), "");
        let none = reading_bar(screen.target(), None);
        none.tick();
        assert_eq!(screen.text(), "");
    }
}
