//! A trace of either kind, and what the analysis says of it.

use super::analysis::{STRIDE, host_model, is_strict, reading_bar, screen};
use super::demo::is_demo;
use super::found_again::FoundAgain;
use super::write_report::Whole;
use super::{analyse_with, warn_of_large_images};
use crate::error::Error;
use indicatif::ProgressDrawTarget;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use streamsan_analysis::{Options, Sink};
use streamsan_kernels::disassembler::PACKAGE;
use streamsan_model::{
    Edge, Entities, Entity, Finding, Frame, FramePlace, IncompleteReason, KernelGap, Lint,
    NvtxRange, OpSeq, Operation, Threshold, TraceItem, doubt_after_losses,
};
use streamsan_report::{
    Coverage, Folded, Input, KnownUpstream, MarkedTests, Measured, MeasuredKernel, Report,
    UnreadKernels,
};
use streamsan_store::{MeasuredCount, MeasuredKind, Reader, Treatment};
use streamsan_symbols::Symbolizer;
use streamsan_text::TextTrace;

/// Every SQLite file begins with it.
const DATABASE_MAGIC: &[u8] = b"SQLite format 3\0";

/// How long names of functions are looked up for a recording that has none: as long as at the end of
/// a run.
const SYMBOLS_PATIENCE: Duration = Duration::from_secs(60);

/// A trace that can be read again and again.
pub(super) enum Trace {
    /// A text trace.
    Text {
        trace: TextTrace,
        /// Positions of the operations among the items.
        operations: BTreeMap<OpSeq, usize>,
    },
    /// A stored trace.
    Stored(Box<Reader>),
}

/// The kind of a file, before a stored trace is opened.
pub(super) enum Unread {
    Text(TextTrace),
    Stored,
}

impl Trace {
    /// Opens a trace. What it is is told by its content.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is no trace.
    pub(super) fn open(file: &Path) -> Result<Self, Error> {
        match Self::look(file)? {
            Unread::Text(trace) => Ok(Self::of_text(trace)),
            Unread::Stored => Ok(Self::Stored(Box::new(Reader::open(file)?))),
        }
    }

    /// Reads a text trace; of a stored one no more than its begin.
    pub(super) fn look(file: &Path) -> Result<Unread, Error> {
        match text(file)? {
            Some(bytes) => Ok(Unread::Text(parse(file, bytes)?)),
            None => Ok(Unread::Stored),
        }
    }

    pub(super) fn of_text(trace: TextTrace) -> Self {
        let operations = trace.items.iter().enumerate().filter_map(|(position, item)| match item {
            TraceItem::Operation(operation) => Some((operation.g, position)),
            _ => None,
        });
        let operations = operations.collect();
        Self::Text { trace, operations }
    }

    /// How the trace wants to be analysed.
    ///
    /// # Errors
    ///
    /// A stored trace that cannot be read.
    pub(super) fn options(&self, strict: bool) -> Result<Options, Error> {
        let strict = strict
            || match self {
                Self::Text { trace, .. } => trace.strict_host_threads(),
                Self::Stored(reader) => is_strict(&reader.meta()?),
            };
        Ok(Options { host_model: host_model(strict), ..Options::default() })
    }

    /// Hands over every item in order, with a progress bar as [`analyse_with`] shows one.
    ///
    /// # Errors
    ///
    /// A stored trace that cannot be read. Items before the damage have been handed over.
    pub(super) fn items(&self, take: impl FnMut(TraceItem)) -> Result<(), Error> {
        self.items_shown(screen(), take)
    }

    /// The same with the progress bar on this target.
    ///
    /// # Errors
    ///
    /// As [`Trace::items`].
    pub(super) fn items_shown(
        &self,
        target: ProgressDrawTarget,
        mut take: impl FnMut(TraceItem),
    ) -> Result<(), Error> {
        let last = match self {
            Self::Text { operations, .. } => operations.keys().next_back().copied(),
            Self::Stored(reader) => reader.last_operation()?,
        };
        let bar = reading_bar(target, last);
        let mut done = 0;
        let mut take = |item: TraceItem| {
            if let TraceItem::Operation(operation) = &item {
                done += 1;
                if done % STRIDE == 0 {
                    bar.set_position(operation.g.0);
                }
            }
            take(item);
        };
        match self {
            Self::Text { trace, .. } => trace.items.iter().cloned().for_each(take),
            Self::Stored(reader) => {
                for item in reader.items() {
                    take(item?);
                }
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Analyses the whole trace.
    ///
    /// # Errors
    ///
    /// A stored trace that cannot be read.
    pub(super) fn analyse(&self, options: Options, sink: &mut dyn Sink) -> Result<Entities, Error> {
        self.analyse_while(options, sink, |_| ControlFlow::Continue(()))
    }

    /// Analyses the trace while `seen`, which gets each item first, has not had enough.
    ///
    /// # Errors
    ///
    /// A stored trace that cannot be read.
    fn analyse_while(
        &self,
        options: Options,
        sink: &mut dyn Sink,
        mut seen: impl FnMut(&TraceItem) -> ControlFlow<()>,
    ) -> Result<Entities, Error> {
        match self {
            Self::Text { trace, .. } => {
                let items = trace.items.iter().take_while(|&item| seen(item).is_continue());
                Ok(analyse_with(options, items, None, sink).1)
            }
            Self::Stored(reader) => {
                let mut failure = None;
                let items = reader.items();
                let items = items.map_while(|item| item.map_err(|e| failure = Some(e)).ok());
                let items = items.take_while(|item| seen(item).is_continue());
                let operations = Some(reader.counts()?.operations);
                let (_, entities) = analyse_with(options, items, operations, sink);
                match failure {
                    Some(error) => Err(error.into()),
                    None => Ok(entities),
                }
            }
        }
    }

    /// Whether it is a trace of the demo, recorded by this version of the command.
    pub(super) fn is_demo(&self) -> bool {
        let Self::Stored(reader) = self else { return false };
        reader.meta().is_ok_and(|meta| {
            is_demo(meta.command.iter().map(OsStr::new))
                && meta.tool_version == env!("CARGO_PKG_VERSION")
        })
    }

    /// Whether a text trace holds any call.
    fn has_operations(&self) -> bool {
        match self {
            Self::Text { operations, .. } => !operations.is_empty(),
            Self::Stored(_) => true,
        }
    }

    /// One operation.
    pub(super) fn operation(&self, g: OpSeq) -> Option<Operation> {
        match self {
            Self::Text { trace, operations } => match trace.items.get(*operations.get(&g)?)? {
                TraceItem::Operation(operation) => Some(operation.clone()),
                _ => None,
            },
            Self::Stored(reader) => reader.operation(g).ok().flatten(),
        }
    }

    /// The ranges around an operation, outermost first; none in a text trace. What makes them
    /// unreadable was told when the trace was concluded.
    pub(super) fn ranges_of(&self, g: OpSeq) -> Vec<NvtxRange> {
        match self {
            Self::Text { .. } => Vec::new(),
            Self::Stored(reader) => reader.ranges_of(g).unwrap_or_default(),
        }
    }

    /// Tells in a report which of the program's tests made its findings. What makes the tables unreadable
    /// was told when the trace was concluded.
    pub(super) fn in_tests<'r>(&self, report: Report<'r>) -> Report<'r> {
        let Self::Stored(reader) = self else { return report };
        let mut ranges = Vec::new();
        let told = |range: &NvtxRange| {
            matches!(range.domain.as_deref(), Some(NvtxRange::TESTS | NvtxRange::ALLOWED))
        };
        let read = reader.each_range(|range| ranges.extend(Some(range).filter(told)));
        let tests = MarkedTests::of(ranges);
        if read.is_err() || tests.is_empty() {
            return report;
        }
        let findings = reader.findings().unwrap_or_default();
        let lints = reader.lints().unwrap_or_default();
        let process = |g| reader.operation(g).ok().flatten().map(|operation| operation.process);
        report.in_tests(&tests, (&findings, &lints), process)
    }

    /// All ranges and marks, by their begin; none in a text trace.
    ///
    /// # Errors
    ///
    /// A stored trace that cannot be read.
    pub(super) fn each_range(&self, take: impl FnMut(NvtxRange)) -> Result<(), Error> {
        match self {
            Self::Text { .. } => Ok(()),
            Self::Stored(reader) => Ok(reader.each_range(take)?),
        }
    }

    /// All synchronisation edges.
    ///
    /// # Errors
    ///
    /// A stored trace that cannot be read.
    pub(super) fn edges(&self, strict: bool) -> Result<Vec<Edge>, Error> {
        match self {
            Self::Text { .. } => {
                let mut edges = Edges(Vec::new());
                self.analyse(self.options(strict)?, &mut edges)?;
                Ok(edges.0)
            }
            Self::Stored(reader) => Ok(reader.edges()?),
        }
    }

    /// Analyses the whole trace, and says what was and what was not seen. Answers also the images that
    /// have too much debug information to be read.
    ///
    /// # Errors
    ///
    /// A stored trace that cannot be read.
    pub(super) fn conclude(
        self,
        file: &Path,
        strict: bool,
        watch: &mut dyn Watch,
    ) -> Result<(Concluded, Vec<PathBuf>), Error> {
        let watch = RefCell::new(watch);
        let mut again = FoundAgain::new(&self, strict)?;
        let mut options = self.options(strict)?;
        // A stored trace may be of any length.
        options.forgets = matches!(self, Self::Stored(_));
        let mut sink = Watched { again: &mut again, watch: &watch };
        let seen = |item: &TraceItem| watch.borrow_mut().item(item);
        let mut entities = self.analyse_while(options, &mut sink, seen)?;
        let mut findings = std::mem::take(&mut again.folding.0);
        let mut too_large = Vec::new();
        if matches!(self, Self::Stored(_)) {
            too_large = look_up_sources(&mut entities);
        }
        let (mut reasons, mut coverage) = (Vec::new(), None);
        if let Self::Stored(reader) = &self {
            reasons = reader.incomplete_reasons()?;
            reasons.extend(again.missing(reader)?);
            reasons.sort();
            doubt_after_losses(findings.iter_mut(), &reasons);
            reader.prove_ranges()?;
            let stored = reader.coverage()?;
            let mut seen = summary(&stored);
            if stored.entry_points.is_empty() {
                // Calls are counted at the end of a recording, which this one has not reached.
                seen.calls = reader.counts()?.operations;
            }
            coverage = Some(seen);
        } else if !self.has_operations() {
            // A text trace has no coverage; but one without a call shows nothing.
            coverage = Some(Coverage::default());
        }
        let file = file.to_owned();
        let concluded =
            Concluded { trace: self, file, strict, findings, entities, reasons, coverage };
        Ok((concluded, too_large))
    }
}

/// A recording that was cut off has no names of functions: they are looked up at its end. The
/// images may still be as they were. A recording that has any is taken as it is, so that its report
/// does not depend on where it is read. Answers the images that are too large to be read.
fn look_up_sources(entities: &mut Entities) -> Vec<PathBuf> {
    let is_native = |frame: &Arc<Frame>| matches!(frame.place, FramePlace::Native { .. });
    let native: Vec<Arc<Frame>> = entities.frames().filter(|f| is_native(f)).cloned().collect();
    if native.iter().any(|frame| !frame.source.is_empty()) {
        return Vec::new();
    }
    let end = Instant::now() + SYMBOLS_PATIENCE;
    let mut symbolizer = Symbolizer::new();
    for frame in native {
        let FramePlace::Native { image, build_id: Some(id), offset } = &frame.place else {
            // Nothing says whether it is the same image.
            continue;
        };
        if Instant::now() >= end {
            return Vec::new();
        }
        let source = symbolizer.source(Path::new(&**image), Some(id), *offset);
        entities.declare(Entity::Frame(Arc::new(Frame { source, ..(*frame).clone() })));
    }
    symbolizer.too_large().into_iter().map(Path::to_owned).collect()
}

/// Keeps edges only.
struct Edges(Vec<Edge>);

impl Sink for Edges {
    fn edge(&mut self, edge: &Edge) {
        self.0.push(*edge);
    }

    fn finding(&mut self, _: Finding) {}

    fn lint(&mut self, _: Lint) {}
}

/// What somebody wants to see of a trace while it is analysed.
pub(super) trait Watch {
    /// Gets each item before it is analysed, and says whether the analysis is to go on.
    fn item(&mut self, item: &TraceItem) -> ControlFlow<()>;

    /// Gets each edge as it is found.
    fn edge(&mut self, edge: &Edge);
}

/// Sees nothing.
struct Nobody;

impl Watch for Nobody {
    fn item(&mut self, _: &TraceItem) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn edge(&mut self, _: &Edge) {}
}

/// Hands edges on to whoever watches.
struct Watched<'w, 's> {
    again: &'w mut FoundAgain,
    watch: &'w RefCell<&'s mut dyn Watch>,
}

impl Sink for Watched<'_, '_> {
    fn edge(&mut self, edge: &Edge) {
        self.watch.borrow_mut().edge(edge);
        self.again.edge(edge);
    }

    fn finding(&mut self, finding: Finding) {
        self.again.finding(finding);
    }

    fn lint(&mut self, lint: Lint) {
        self.again.lint(lint);
    }
}

/// A trace with what was found in it.
pub(super) struct Concluded {
    pub(super) trace: Trace,
    pub(super) file: PathBuf,
    pub(super) strict: bool,
    findings: Folded,
    entities: Entities,
    reasons: Vec<IncompleteReason>,
    coverage: Option<Coverage>,
}

impl Concluded {
    /// Opens and analyses a trace.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is no trace.
    pub(super) fn open(file: &Path, strict: bool) -> Result<Self, Error> {
        let (concluded, too_large) = Self::open_quietly(file, strict)?;
        warn_of_large_images(&too_large);
        Ok(concluded)
    }

    /// The same, with the images of which the user is to be told that there are no lines of them.
    ///
    /// # Errors
    ///
    /// As [`Concluded::open`].
    pub(super) fn open_quietly(file: &Path, strict: bool) -> Result<(Self, Vec<PathBuf>), Error> {
        Trace::open(file)?.conclude(file, strict, &mut Nobody)
    }

    /// The trace for the forms that show all of it.
    pub(super) fn whole(&self) -> Whole<'_> {
        Whole { trace: &self.trace, file: &self.file, strict: self.strict }
    }

    /// The entities that operations and findings of the trace refer to.
    pub(super) fn entities(&self) -> &Entities {
        &self.entities
    }

    /// The report at a threshold, with the shipped list of races known in libraries.
    pub(super) fn report(&self, threshold: Threshold) -> Report<'_> {
        self.report_with(threshold, Some(KnownUpstream::shipped()))
    }

    /// The same with another list, or none.
    pub(super) fn report_with(
        &self,
        threshold: Threshold,
        upstream: Option<&'static KnownUpstream>,
    ) -> Report<'_> {
        let input = Input {
            findings: self.findings.clone(),
            entities: &self.entities,
            threshold,
            reasons: self.reasons.clone(),
            coverage: self.coverage.clone(),
            upstream,
            trace: Some(self.file.display().to_string()),
        };
        let report = Report::new(input, |g| self.trace.operation(g))
            .in_ranges(|g| self.trace.ranges_of(g))
            .relative_to(directory());
        self.trace.in_tests(report)
    }
}

/// The directory that paths of source files are shown relative to.
pub(super) fn directory() -> Option<String> {
    std::env::current_dir().ok()?.into_os_string().into_string().ok()
}

/// The kind of a file is told by its content; its name decides only where the content is too short.
/// Answers the content of a text trace. It is read once, so that a pipe will do.
fn text(file: &Path) -> Result<Option<Vec<u8>>, Error> {
    let read = |source| Error::Read { path: file.to_owned(), source };
    let mut bytes = Vec::new();
    let mut opened = fs::File::open(file).map_err(read)?;
    let head = DATABASE_MAGIC.len() as u64;
    opened.by_ref().take(head).read_to_end(&mut bytes).map_err(read)?;
    let named_stored = file.extension().is_some_and(|extension| extension == "db");
    if bytes == DATABASE_MAGIC || named_stored {
        return Ok(None);
    }
    opened.read_to_end(&mut bytes).map_err(read)?;
    Ok(Some(bytes))
}

/// Reads a text trace.
///
/// # Errors
///
/// An empty file, one that is not UTF-8, and a mistake in the text.
pub(super) fn parse(file: &Path, bytes: Vec<u8>) -> Result<TextTrace, Error> {
    let read = |source| Error::Read { path: file.to_owned(), source };
    if bytes.is_empty() {
        // A trace that was never written must not pass for a clean one.
        return Err(read(io::Error::other("it is empty; record or copy it again")));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        read(io::Error::other("it is neither a stored trace nor a text trace in UTF-8"))
    })?;
    streamsan_text::parse(&text).map_err(|source| Error::Syntax { path: file.to_owned(), source })
}

/// The part of the coverage that a report tells.
pub(super) fn summary(coverage: &streamsan_store::Coverage) -> Coverage {
    let not_understood = coverage.reasons.iter().filter_map(|reason| match reason {
        IncompleteReason::NotUnderstood { api, calls } => Some((api.clone(), *calls)),
        _ => None,
    });
    let counted = coverage.entry_points.iter();
    let counted = counted.filter(|e| e.treatment == Treatment::NotUnderstood);
    let all: BTreeMap<String, u64> =
        not_understood.chain(counted.map(|e| (e.name.clone(), e.calls))).collect();
    Coverage {
        calls: coverage.entry_points.iter().map(|e| e.calls).sum(),
        dropped: coverage.dropped,
        not_understood: all.into_iter().collect(),
        unread: unread_kernels(coverage),
        host_accesses: coverage.host_accesses.clone(),
        measured: measured(&coverage.measured),
    }
}

/// The counts of measuring; `None` where nothing was to be measured.
fn measured(counts: &[MeasuredCount]) -> Option<Measured> {
    let mut kernels: BTreeMap<&str, MeasuredKernel> = BTreeMap::new();
    let (mut reasons, mut off) = (Vec::new(), Vec::new());
    for MeasuredCount { kind, name, count } in counts {
        match kind {
            MeasuredKind::Whole => kernel(&mut kernels, name).whole += count,
            MeasuredKind::InPart => kernel(&mut kernels, name).in_part += count,
            MeasuredKind::Not => kernel(&mut kernels, name).not_measured += count,
            MeasuredKind::FollowsPointers => kernel(&mut kernels, name).follows_pointers += count,
            MeasuredKind::Outside => kernel(&mut kernels, name).outside += count,
            MeasuredKind::WhyNot => reasons.push((name.clone(), *count)),
            MeasuredKind::Off => off.push((name.clone(), *count)),
        }
    }
    let measured = Measured { kernels: kernels.into_values().collect(), reasons, off };
    (!counts.is_empty()).then_some(measured)
}

fn kernel<'a, 'b>(
    kernels: &'b mut BTreeMap<&'a str, MeasuredKernel>,
    name: &'a str,
) -> &'b mut MeasuredKernel {
    let new = || MeasuredKernel { name: name.to_owned(), ..MeasuredKernel::default() };
    kernels.entry(name).or_insert_with(new)
}

/// The kernels that a disassembler would make known.
fn unread_kernels(coverage: &streamsan_store::Coverage) -> Option<UnreadKernels> {
    let unread = coverage.kernels.iter().filter(|k| k.gap == KernelGap::NoDisassembler);
    let kernels = unread.count() as u64;
    (kernels > 0).then(|| UnreadKernels { kernels, package: PACKAGE.to_owned() })
}
