//! Edges and findings, the results of the analysis, as rows.

use super::Writer;
use crate::Error;
use crate::row::{AccessColumns, EdgeRow, edge_ids};
use crate::schema::ACCESS_BITS;
use streamsan_model::{Edge, Finding, FindingAccess, Lint, OpSeq, StackId, StreamId};

fn op(g: Option<OpSeq>) -> Option<i64> {
    g.map(|g| g.0 as i64)
}

fn stream(id: Option<StreamId>) -> Option<i64> {
    id.map(|id| i64::from(id.0))
}

fn stack(id: Option<StackId>) -> Option<i64> {
    id.map(|id| i64::from(id.0))
}

/// Numbers of edges that end at the same operation, for the edges' ids.
#[derive(Debug, Default)]
pub(super) struct EdgeNumbers {
    /// The newest operation at which an edge ends.
    newest: u64,
    /// Number of edges that end at the current operation.
    here: i64,
    /// Edges of older operations: calls that were stored before they returned. What is found for one
    /// of them comes at once.
    late: i64,
}

impl EdgeNumbers {
    /// Numbers from here on are those of late edges.
    const LATE: i64 = 1 << (ACCESS_BITS - 1);

    /// Numbers for a trace that has so many edges: all that come are late.
    pub(super) fn behind(edges: i64) -> Self {
        Self { newest: u64::MAX, here: 0, late: edges }
    }

    fn next(&mut self, to: OpSeq) -> Result<i64, &'static str> {
        if to.0 < self.newest {
            self.late += 1;
            return Ok(Self::LATE + self.late % Self::LATE);
        }
        self.here = if to.0 == self.newest { self.here + 1 } else { 0 };
        self.newest = to.0;
        if self.here < Self::LATE { Ok(self.here) } else { Err("too many edges end at it") }
    }
}

impl Writer {
    pub(super) fn put_edge(&mut self, edge: &Edge) -> Result<(), Error> {
        let id = edge_ids(edge.to)
            .ok_or("its number is too large")
            .and_then(|ids| Ok(ids.start + self.edge_numbers.next(edge.to)?));
        let id = id.map_err(|reason| {
            self.stop();
            Error::Unstorable { op: edge.to.0, reason }
        })?;
        let (from, kind, tier) = (edge.from.0 as i64, edge.kind as i64, edge.tier as i64);
        self.batch.edges.push(&EdgeRow { id, from, kind, tier }.numbers());
        Ok(())
    }

    pub(super) fn put_lint(&mut self, lint: &Lint) {
        let api = self.intern(&lint.api);
        self.put(
            "INSERT INTO lint (fingerprint, class, op, api, stream, event, related, stack, \
             related_stack) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &[
                Some(lint.fingerprint.0 as i64),
                Some(lint.class as i64),
                op(Some(lint.op)),
                Some(api),
                stream(lint.stream),
                lint.event.map(|event| i64::from(event.0)),
                op(lint.related),
                stack(lint.stack),
                stack(lint.related_stack),
            ],
        );
    }

    pub(super) fn put_finding(&mut self, finding: &Finding) {
        self.findings += 1;
        let edge = finding.proposed_edge;
        self.put(
            "INSERT INTO finding VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &[
                Some(self.findings),
                Some(finding.fingerprint.0 as i64),
                Some(finding.severity as i64),
                Some(finding.class as i64),
                Some(finding.kind as i64),
                Some(finding.confidence as i64),
                Some(i64::from(finding.allocation.0)),
                Some(finding.overlap.start as i64),
                Some(finding.overlap.end.wrapping_sub(finding.overlap.start) as i64),
                op(finding.knows),
                op(finding.nearest),
                op(finding.masked_by),
                op(edge.map(|e| e.record_after_op)),
                stream(edge.and_then(|e| e.on_stream)),
                op(edge.map(|e| e.wait_before_op)),
                stream(edge.and_then(|e| e.in_stream)),
            ],
        );
        self.put_side(1, &finding.first);
        self.put_side(2, &finding.second);
        let sides = [finding.first.op, finding.second.op].map(|op| (op.0 as i64, 1));
        let others = [finding.knows, finding.nearest, finding.masked_by];
        let others = others.into_iter().flatten().map(|op| (op.0 as i64, 0));
        self.batch.sides.extend(sides.into_iter().chain(others));
    }

    fn put_side(&mut self, side: i64, access: &FindingAccess) {
        let api = self.intern(&access.api);
        let kernel = self.intern_option(access.kernel.as_deref());
        let columns = AccessColumns::encode(&access.access, |shape| self.pattern(shape));
        self.put(
            "INSERT INTO finding_access VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &[
                Some(self.findings),
                Some(side),
                op(Some(access.op)),
                stream(access.stream),
                Some(api),
                kernel,
                Some(columns.allocation),
                Some(columns.start),
                Some(columns.length),
                Some(columns.mode),
                Some(columns.basis),
                columns.pattern,
                stack(access.stack),
            ],
        );
    }
}
