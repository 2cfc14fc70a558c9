//! The check that the tables hold what was written ([`crate::proof`]).
//!
//! Invariant: a table is checked against the proof before any output rests on it: a small table
//! when it is read, the two large ones while their items stream by. A trace of a schema
//! without proof, and one whose recording was cut off, has no proof and is read unchecked; the latter never counts
//! as complete.

use super::Reader;
use crate::proof::{self, Proof, Sum};
use crate::schema::{self, FIRST_PROVEN, PROOF, TABLES};
use crate::{Error, TraceState};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The tables behind the items of a trace, without `op` and `access`.
pub(super) const ENTITIES: &[&str] = &[
    "meta",
    "string",
    "process",
    "process_argument",
    "thread",
    "context",
    "stream",
    "event",
    "allocation",
    "module",
    "kernel",
    "kernel_code",
    "kernel_word",
    "kernel_global",
    "kernel_param",
    "op_part",
    "graph",
    "graph_node",
    "graph_body",
    "graph_part",
    "graph_edge",
    "graph_access",
    "access_pattern",
    "stack",
    "frame",
    "frame_source",
];

/// The tables behind stored findings.
pub(super) const FINDINGS: &[&str] = &["string", "access_pattern", "finding", "finding_access"];

/// The tables behind ranges.
pub(super) const RANGES: &[&str] = &["meta", "string", "nvtx_range"];

/// The tables behind timelines.
pub(super) const LEVELS_OF_DETAIL: &[&str] = &[
    "lod_axis",
    "lod_lane",
    "lod",
    "lod_finding",
    "lod_lifetime",
    "lod_use",
    "lod_call",
    "lod_edge",
];

/// The stored proof, and the tables that have been checked against it.
#[derive(Debug, Default)]
pub(super) struct Proven {
    proof: RefCell<Option<Proof>>,
    seen: RefCell<BTreeSet<&'static str>>,
}

impl Reader {
    /// Reads the proof of a finished trace. A complete one must have it.
    pub(super) fn read_proof(&self) -> Result<(), Error> {
        let version = self.rows("PRAGMA user_version", [], |row| row.get::<_, i32>(0))?;
        let is_before = |first| version.iter().any(|&version| version < first);
        if is_before(FIRST_PROVEN) || self.state() == TraceState::Recording {
            return Ok(());
        }
        let proof = proof::read(&self.connection).map_err(|e| self.failed(e))?;
        let Some(proof) = proof else {
            return match self.state() {
                TraceState::Complete => {
                    Err(self.damaged("it says that it is complete, and has no proof of it".into()))
                }
                _ => Ok(()),
            };
        };
        let has =
            |name| name != PROOF && (name != schema::RANGES.0 || !is_before(schema::RANGES.1));
        let tables: Vec<_> = TABLES.iter().filter(|table| has(table.name)).collect();
        if let Some(table) = tables.iter().find(|table| !proof.contains_key(table.name)) {
            return Err(self.damaged(format!("nothing proves its table `{}`", table.name)));
        }
        if proof.len() > tables.len() {
            return Err(self.damaged("it proves tables that no trace has".into()));
        }
        *self.proven.proof.borrow_mut() = Some(proof);
        self.verify(&["meta", "enumeration"])
    }

    /// Whether the trace has a proof of its contents.
    pub(super) fn is_proven(&self) -> bool {
        self.proven.proof.borrow().is_some()
    }

    fn written(&self, table: &str) -> Option<Sum> {
        self.proven.proof.borrow().as_ref()?.get(table).copied()
    }

    /// Reads tables through and holds them against the proof, each once.
    pub(super) fn verify(&self, tables: &[&'static str]) -> Result<(), Error> {
        if !self.is_proven() {
            return Ok(());
        }
        for &name in tables {
            if self.proven.seen.borrow().contains(name) {
                continue;
            }
            // A schema without the table has nothing to prove of it.
            let table = TABLES.iter().find(|table| table.name == name);
            if let Some(table) = table.filter(|_| self.written(name).is_some()) {
                let found = proof::sum(&self.connection, table).map_err(|e| self.failed(e))?;
                self.prove(name, found)?;
            }
            self.proven.seen.borrow_mut().insert(name);
        }
        Ok(())
    }

    /// Holds what was found in a table against the proof.
    pub(super) fn prove(&self, table: &str, found: Sum) -> Result<(), Error> {
        match self.written(table) {
            Some(written) if written.rows != found.rows => {
                Err(self.other_count(table, written.rows, found.rows))
            }
            Some(written) if written != found => Err(self.damaged(format!(
                "its table `{table}` has as many rows as were written, {}, and other values in them",
                found.rows
            ))),
            _ => Ok(()),
        }
    }

    /// Holds the number of rows that were found one after the other against the proof.
    pub(super) fn prove_count(&self, table: &str, found: u64) -> Result<(), Error> {
        match self.written(table) {
            Some(written) if written.rows != found => {
                Err(self.other_count(table, written.rows, found))
            }
            _ => Ok(()),
        }
    }

    fn other_count(&self, table: &str, written: u64, found: u64) -> Error {
        let rows = if written == 1 { "row was" } else { "rows were" };
        self.damaged(format!("{written} {rows} written to its table `{table}`, and {found} found"))
    }
}
