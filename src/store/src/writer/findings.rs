//! Edges and findings: what the analysis derives.

use super::Writer;
use crate::row::AccessColumns;
use rusqlite::params;
use streamsan_model::{Edge, Finding, FindingAccess};

impl Writer {
    pub(super) fn put_edge(&mut self, edge: &Edge) -> rusqlite::Result<()> {
        self.begin()?;
        self.connection
            .prepare_cached("INSERT INTO edge (from_op, to_op, kind, tier) VALUES (?, ?, ?, ?)")?
            .execute([edge.from.0 as i64, edge.to.0 as i64, edge.kind as i64, edge.tier as i64])
            .map(drop)
    }

    pub(super) fn put_finding(&mut self, finding: &Finding) -> rusqlite::Result<()> {
        self.begin()?;
        self.findings += 1;
        let op = |g: Option<streamsan_model::OpSeq>| g.map(|g| g.0 as i64);
        let edge = finding.proposed_edge;
        self.connection
            .prepare_cached(
                "INSERT INTO finding VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                self.findings,
                finding.fingerprint.0 as i64,
                finding.severity as i64,
                finding.class as i64,
                finding.kind as i64,
                finding.confidence as i64,
                finding.allocation.0,
                finding.overlap.start as i64,
                finding.overlap.end.wrapping_sub(finding.overlap.start) as i64,
                op(finding.knows),
                op(finding.nearest),
                op(finding.masked_by),
                op(edge.map(|e| e.record_after_op)),
                edge.and_then(|e| e.on_stream).map(|s| s.0),
                op(edge.map(|e| e.wait_before_op)),
                edge.and_then(|e| e.in_stream).map(|s| s.0),
            ])?;
        self.put_side(1, &finding.first)?;
        self.put_side(2, &finding.second)
    }

    fn put_side(&mut self, side: i64, access: &FindingAccess) -> rusqlite::Result<()> {
        let api = self.intern(&access.api)?;
        let kernel = self.intern_option(access.kernel.as_deref())?;
        let columns = AccessColumns::encode(&access.access, |shape| self.pattern(shape))?;
        self.connection
            .prepare_cached(
                "INSERT INTO finding_access VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                self.findings,
                side,
                access.op.0 as i64,
                access.stream.map(|s| s.0),
                api,
                kernel,
                columns.allocation,
                columns.start,
                columns.length,
                columns.mode,
                columns.basis,
                columns.pattern
            ])
            .map(drop)
    }
}
