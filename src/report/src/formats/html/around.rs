//! The operations around a race, and the edges among them: what a drawing shows.

use crate::Report;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{
    Action, Detail, Edge, Finding, LaneId, OpGroup, OpSeq, Operation, QueryError, Tier, TraceQuery,
};
use streamsan_names::printable;

/// Operations of a side's row before its access, and behind it.
const BEFORE: usize = 2;
const BEHIND: usize = 1;
/// Operations of a drawing.
const STEPS: usize = 14;
/// Characters of a label.
const LABEL: usize = 22;

/// A side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    First,
    Second,
}

/// An operation as it is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) g: OpSeq,
    pub(super) lane: LaneId,
    pub(super) group: OpGroup,
    pub(super) label: String,
    /// The side of the race that it is.
    pub(super) side: Option<Side>,
    /// Whether operations of its row between the step before and this one are left out.
    pub(super) has_gap: bool,
}

/// An edge between two steps, by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) tier: Tier,
}

/// The surroundings of one finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Around {
    /// Rows from top to bottom: those of the two sides first.
    pub(super) lanes: Vec<LaneId>,
    /// In issue order.
    pub(super) steps: Vec<Step>,
    pub(super) edges: Vec<Order>,
}

impl Around {
    /// The surroundings of a finding, as far as the trace holds them; `None` where it holds neither
    /// side. `near`: with the neighbours of both accesses.
    ///
    /// # Errors
    ///
    /// The trace cannot be read.
    pub(super) fn of(
        report: &Report<'_>,
        finding: &Finding,
        trace: &dyn TraceQuery,
        near: bool,
    ) -> Result<Option<Self>, QueryError> {
        let mut found = Found { trace, details: BTreeMap::new() };
        let sides = [&finding.first, &finding.second];
        let named = [finding.knows, finding.nearest, finding.masked_by];
        for g in sides.map(|side| side.op).into_iter().chain(named.into_iter().flatten()) {
            found.take(g)?;
        }
        let mut lanes = Vec::new();
        for side in sides {
            let Some(detail) = found.details.get(&side.op) else { return Ok(None) };
            let lane = match side.stream {
                Some(stream) => LaneId::Stream(stream),
                None => LaneId::Host(detail.operation.thread),
            };
            if !lanes.contains(&lane) {
                lanes.push(lane);
            }
            if near {
                found.take_near(lane, side.op)?;
            }
        }
        found.take_ends(&lanes)?;
        Ok(Some(found.arrange(report, finding, lanes)?))
    }
}

/// Operations that are drawn.
struct Found<'a> {
    trace: &'a dyn TraceQuery,
    details: BTreeMap<OpSeq, Detail>,
}

impl Found<'_> {
    fn take(&mut self, g: OpSeq) -> Result<(), QueryError> {
        if !self.details.contains_key(&g)
            && self.details.len() < STEPS
            && let Some(detail) = self.trace.detail(g)?
        {
            self.details.insert(g, detail);
        }
        Ok(())
    }

    /// The neighbours of an access in its row.
    fn take_near(&mut self, lane: LaneId, of: OpSeq) -> Result<(), QueryError> {
        for (forward, most) in [(false, BEFORE), (true, BEHIND)] {
            let mut at = of;
            for _ in 0..most {
                let Some(next) = self.trace.neighbour(lane, at, forward)? else { break };
                self.take(next)?;
                at = next;
            }
        }
        Ok(())
    }

    /// The other ends of edges in the rows of the two sides, the nearest ones.
    fn take_ends(&mut self, lanes: &[LaneId]) -> Result<(), QueryError> {
        let span =
            self.details.keys().next().copied().zip(self.details.keys().next_back().copied());
        let Some((first, last)) = span else { return Ok(()) };
        let edges = |detail: &Detail| {
            let incoming = detail.incoming.iter().map(|(edge, place)| (edge.from, place.lane));
            let outgoing = detail.outgoing.iter().map(|(edge, place)| (edge.to, place.lane));
            incoming.chain(outgoing).collect::<Vec<_>>()
        };
        let ends: BTreeSet<OpSeq> = self
            .details
            .values()
            .flat_map(edges)
            .filter(|(g, lane)| lanes.contains(lane) && (first..=last).contains(g))
            .map(|(g, _)| g)
            .collect();
        ends.into_iter().rev().try_for_each(|g| self.take(g))
    }

    fn arrange(
        &self,
        report: &Report<'_>,
        finding: &Finding,
        mut lanes: Vec<LaneId>,
    ) -> Result<Around, QueryError> {
        let mut steps: Vec<Step> = Vec::new();
        for (&g, detail) in &self.details {
            let sides = [(Side::First, &finding.first), (Side::Second, &finding.second)];
            let own: Vec<_> = sides.into_iter().filter(|(_, side)| side.op == g).collect();
            let operation = &detail.operation;
            let plain = || (None, detail.place.lane, label(report, operation));
            let drawn = own.iter().map(|(number, side)| {
                let lane = match side.stream {
                    Some(stream) => LaneId::Stream(stream),
                    None => LaneId::Host(operation.thread),
                };
                let mode = side.access.mode.weak().description();
                let other = if *number == Side::First { &finding.second } else { &finding.first };
                let what = match (&side.kernel, &other.kernel) {
                    (Some(kernel), Some(other)) => Cow::Owned(apart(kernel, other)),
                    (Some(kernel), None) => streamsan_names::gist(kernel),
                    (None, _) => report.called(&side.api, side.stack),
                };
                let number_ = if *number == Side::First { 1 } else { 2 };
                (Some(*number), lane, format!("({number_}) {mode} {}", cut(&what)))
            });
            let drawn: Vec<_> = if own.is_empty() { vec![plain()] } else { drawn.collect() };
            for (side, lane, label) in drawn {
                let before = steps.iter().rev().find(|step| step.lane == lane).map(|step| step.g);
                let has_gap = match before {
                    Some(before) if before != g => {
                        self.trace.neighbour(lane, before, true)?.is_some_and(|next| next < g)
                    }
                    _ => false,
                };
                if !lanes.contains(&lane) {
                    lanes.push(lane);
                }
                steps.push(Step { g, lane, group: operation.action.group(), label, side, has_gap });
            }
        }
        let at = |g: OpSeq| steps.iter().position(|step| step.g == g);
        let order = |edge: &Edge| {
            let (from, to) = (at(edge.from)?, at(edge.to)?);
            (steps[from].lane != steps[to].lane).then_some(Order { from, to, tier: edge.tier })
        };
        let incoming = self.details.values().flat_map(|detail| &detail.incoming);
        let edges = incoming.filter_map(|(edge, _)| order(edge)).collect();
        Ok(Around { lanes, steps, edges })
    }
}

/// `record done`, `flash_fwd`, `memset`.
fn label(report: &Report<'_>, operation: &Operation) -> String {
    let event = |word: &str, event| format!("{word} {}", event_name(report, event));
    let words = match operation.action {
        Action::Launch { kernel, .. } => match report.input.entities.kernel(kernel) {
            Some(kernel) => streamsan_names::gist(&kernel.name).into_owned(),
            None => operation.action.description().to_owned(),
        },
        Action::EventRecord { event: of, .. } => event("record", of),
        Action::StreamWaitEvent { event: of, .. } => event("wait", of),
        Action::EventSynchronize { event: of } => event("sync", of),
        Action::HostAccess => report.called(&operation.api, operation.stack).into_owned(),
        ref action => action.description().to_owned(),
    };
    cut(&words)
}

fn event_name(report: &Report<'_>, id: streamsan_model::EventId) -> String {
    match report.input.entities.event(id).and_then(|event| event.name.as_deref()) {
        Some(name) => printable(name).into_owned(),
        None => report.event(id),
    }
}

/// A kernel's gist beside that of another one; where both have the same, the first word in which their
/// names differ.
fn apart(kernel: &str, other: &str) -> String {
    let short = streamsan_names::gist(kernel);
    if kernel == other || short != streamsan_names::gist(other) {
        return short.into_owned();
    }
    let [name, other] = [kernel, other].map(streamsan_names::kernel);
    let alike = name.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    let alike: usize = alike.map(|(c, _)| c.len_utf8()).sum();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let start = name[..alike]
        .rfind(|c| !is_word(c))
        .map_or(0, |at| at + name[at..].chars().next().map_or(0, char::len_utf8));
    let rest = &name[start..];
    let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    if end == 0 { short.into_owned() } else { rest[..end].to_owned() }
}

/// A text of at most [`LABEL`] characters, which keeps the end of a qualified name.
fn cut(text: &str) -> String {
    let own = text.rsplit("::").next().filter(|own| !own.is_empty()).unwrap_or(text);
    let shown = if text.chars().count() > LABEL { own } else { text };
    if shown.chars().count() <= LABEL {
        return shown.to_owned();
    }
    shown.chars().take(LABEL - 1).chain(['\u{2026}']).collect()
}

#[cfg(test)]
mod tests {
    use super::{LABEL, apart, cut};

    #[test]
    fn kernels_are_told_apart() {
        let kernel = |functor: &str| {
            let length = functor.len();
            format!("_ZN2at6native29vectorized_elementwise_kernelILi4E{length}{functor}EEvv")
        };
        let [multiply, add] = ["MulFunctor", "MulAddFunctor"].map(kernel);
        assert_eq!(apart(&multiply, &add), "MulFunctor");
        assert_eq!(apart(&add, &multiply), "MulAddFunctor");
        assert_eq!(apart(&add, &add), "MulAddFunctor");
        assert_eq!(apart("load", &add), "load");
        assert_eq!(apart("step<1>", "step<2>"), "step<1>");
    }

    #[test]
    fn labels_are_short_and_keep_the_function() {
        assert_eq!(cut("flash_fwd"), "flash_fwd");
        assert_eq!(cut("at::native::vectorized_elementwise"), "vectorized_elementwise");
        assert_eq!(cut("at::native::gather"), "at::native::gather");
        assert_eq!(cut("at::native::other::gather"), "gather");
        assert_eq!(cut(&"x".repeat(500)).chars().count(), LABEL);
    }
}
