//! Why a finding does not count: a suppression, the baseline or the shipped list of known races.

use crate::Disposition;
use serde::Serialize;

/// Why a finding does not count, where it does not.
#[derive(Serialize)]
pub(super) struct AcceptedJson<'a> {
    disposition: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppression: Option<SuppressedBy<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<UpstreamEntryJson<'a>>,
}

/// The entry of the shipped list that knows a finding.
#[derive(Serialize)]
struct UpstreamEntryJson<'a> {
    entry: &'a str,
    library: &'a str,
    reason: &'a str,
    report: Option<&'a str>,
}

#[derive(Serialize)]
struct SuppressedBy<'a> {
    line: usize,
    reason: &'a str,
}

pub(super) fn accepted(disposition: &Disposition) -> AcceptedJson<'_> {
    AcceptedJson {
        disposition: match disposition {
            Disposition::Upstream(_) => "known-upstream",
            other => other.description(),
        },
        suppression: match disposition {
            Disposition::Suppressed { line, reason } => Some(SuppressedBy { line: *line, reason }),
            Disposition::Open
            | Disposition::Known
            | Disposition::Upstream(_)
            | Disposition::Allowed => None,
        },
        upstream: disposition.upstream().map(|upstream| UpstreamEntryJson {
            entry: &upstream.entry,
            library: &upstream.library,
            reason: &upstream.reason,
            report: upstream.report.as_deref(),
        }),
    }
}
