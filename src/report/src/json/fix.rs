//! The fix of a finding: the missing edge, and the calls that make it.

use super::Line;
use crate::Report;
use crate::fix::{Fix, Step};
use serde::Serialize;
use streamsan_model::{Finding, ProposedEdge};

/// The fix in words and in calls of the program's interface.
#[derive(Serialize)]
pub(super) struct FixJson {
    text: String,
    steps: Vec<StepJson>,
}

#[derive(Serialize)]
struct StepJson {
    place: String,
    code: String,
}

impl From<Fix> for FixJson {
    fn from(fix: Fix) -> Self {
        let step = |step: Step| StepJson { place: step.place, code: step.code };
        Self { text: fix.sentence, steps: fix.steps.into_iter().map(step).collect() }
    }
}

#[derive(Serialize)]
pub(super) struct Edge {
    record_after_op: u64,
    on_stream: Option<u32>,
    wait_before_op: u64,
    in_stream: Option<u32>,
    /// Null where the trace was not analysed again with the edge.
    verified: Option<bool>,
    removes: Option<u64>,
    removes_others: Option<u64>,
    adds: Option<u64>,
    /// Where in the program the two calls belong.
    #[serde(skip_serializing_if = "Option::is_none")]
    record_after: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_before: Option<Line>,
}

pub(super) fn edge(report: &Report<'_>, finding: &Finding, edge: &ProposedEdge) -> Edge {
    let effect = report.effect(finding);
    let [record_after, wait_before] =
        report.ends_of_edge(finding, edge).map(|place| place.map(Line::from));
    Edge {
        record_after_op: edge.record_after_op.0,
        on_stream: edge.on_stream.map(|s| s.0),
        wait_before_op: edge.wait_before_op.0,
        in_stream: edge.in_stream.map(|s| s.0),
        verified: effect.map(|effect| effect.is_verified()),
        removes: effect.map(|effect| effect.removes),
        removes_others: effect.map(|effect| effect.removes_others),
        adds: effect.map(|effect| effect.adds),
        record_after,
        wait_before,
    }
}
