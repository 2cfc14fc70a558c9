//! One side of a finding.

use super::{Called, Range, called};
use crate::Report;
use serde::Serialize;
use streamsan_model::{Extent, FindingAccess};

#[derive(Serialize)]
pub(super) struct Access<'a> {
    op: u64,
    stream: Option<u32>,
    stream_name: Option<&'a str>,
    /// The driver's entry point.
    api: &'a str,
    /// The call by the name that the program's language has for it.
    call: &'a str,
    kernel: Option<&'a str>,
    /// The whole readable name, where the name is mangled.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_demangled: Option<String>,
    mode: &'static str,
    basis: &'static str,
    range: Range,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<Pattern>,
    /// The ranges around the call, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ranges: Vec<NvtxJson<'a>>,
    /// The operator of PyTorch around the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<String>,
    #[serde(flatten)]
    called: Called<'a>,
}

#[derive(Serialize)]
struct NvtxJson<'a> {
    name: &'a str,
    /// Null for the default domain.
    domain: Option<&'a str>,
}

#[derive(Serialize)]
struct Pattern {
    width: u64,
    pitch: u64,
    rows: u64,
    slice_pitch: u64,
    slices: u64,
}

pub(super) fn access<'a>(report: &'a Report<'_>, side: &'a FindingAccess) -> Access<'a> {
    let hull = side.access.extent.hull();
    let stream = side.stream.and_then(|id| report.input.entities.stream(id));
    Access {
        op: side.op.0,
        stream: side.stream.map(|s| s.0),
        stream_name: stream.and_then(|stream| stream.name.as_deref()),
        api: &side.api,
        call: report.input.entities.called(&side.api, side.stack),
        kernel: side.kernel.as_deref(),
        kernel_demangled: side.kernel.as_deref().and_then(streamsan_names::whole),
        mode: side.access.mode.weak().description(),
        basis: side.access.basis.description(),
        range: Range { start: hull.start, end: hull.end },
        pattern: match side.access.extent {
            Extent::Range(_) => None,
            Extent::Strided(p) => Some(Pattern {
                width: p.width,
                pitch: p.pitch,
                rows: p.rows,
                slice_pitch: p.slice_pitch,
                slices: p.slices,
            }),
        },
        ranges: report
            .ranges_of(side.op)
            .iter()
            .map(|range| NvtxJson { name: &range.name, domain: range.domain.as_deref() })
            .collect(),
        operator: report.operator(side).map(|operator| operator.to_string()),
        called: called(report, side.stack),
    }
}
