//! Tables of pointers: memory from which a kernel loads pointers that it uses.
//!
//! Stage: summary, a part of `conclude`.
//!
//! Invariant: every base that a used pointer may be loaded from is marked as a table, also where a
//! table's own pointer lies in another table.

use rustc_hash::FxHashSet as HashSet;

use super::origins::{Origins, Seen};
use super::{AccessBase, Summary};
use crate::access::domain::expression::{ExprId, Provenance};
use crate::access::summary::result::{SymbolicAccess, Touch};
use streamsan_model::WordKind;

impl Summary<'_> {
    /// Marks the bases of addresses that pointers are loaded from as tables. Returns whether all of
    /// the pointers come from known bases in the end; a pointer loaded from shared memory does not.
    pub(super) fn mark_tables(&mut self, mut work: Vec<ExprId>) -> bool {
        let mut seen = HashSet::default();
        let (mut known, mut lost) = (false, false);
        while let Some(address) = work.pop() {
            if !seen.insert(address) {
                continue;
            }
            let (based, inner) = self.mark_table(address);
            known |= based;
            lost |= !based && inner.is_empty();
            work.extend(inner);
        }
        known && !lost
    }

    /// Marks the bases of one such address. Returns whether there are any, and the addresses that
    /// pointers in it are loaded from.
    fn mark_table(&mut self, address: ExprId) -> (bool, Vec<ExprId>) {
        if let Some(known) = self.tables.get(&address) {
            return known.clone();
        }
        let mut origins = Origins::default();
        if self.interpreter.interner.provenance(address) & Provenance::WINDOW == 0 {
            origins = self.direct(address);
            if origins.words.is_empty() && origins.globals.is_empty() {
                let mut seen = Seen::default();
                let terms = self.interpreter.interner.get(address).terms.clone();
                for id in terms.iter().flat_map(|term| &term.symbols) {
                    self.closure(*id, &mut origins, &mut seen);
                }
            }
        }
        let based = !origins.words.is_empty() || !origins.globals.is_empty();
        for word in origins.words {
            self.words.entry((word, WordKind::Pointer)).or_default().table = true;
        }
        for global in origins.globals {
            self.globals.entry(global).or_default().table = true;
        }
        let inner = origins.loads.into_iter().filter(|load| load.whole);
        let marked = (based, inner.map(|load| load.address).collect::<Vec<_>>());
        self.tables.insert(address, marked.clone());
        marked
    }

    /// The tables for which the accesses that load pointers from them are known.
    pub(super) fn told_tables(&self) -> HashSet<AccessBase> {
        let loads = |(_, at, access): &&(AccessBase, ExprId, SymbolicAccess)| {
            access.touch.weak() != Touch::Write && self.tables.contains_key(at)
        };
        self.accesses.iter().filter(loads).map(|(origin, ..)| *origin).collect()
    }

    /// Whether what an access of this base reads at `address` is used as a pointer. Where it is not
    /// known which accesses of a table those are, it may be any.
    pub(super) fn loads_pointers(
        &self,
        origin: &AccessBase,
        address: ExprId,
        told: &HashSet<AccessBase>,
    ) -> bool {
        let table = match origin {
            AccessBase::Word(word, kind) => self.words.get(&(*word, *kind)),
            AccessBase::Global(global) => self.globals.get(global),
            AccessBase::ModulePointer(word) => {
                self.module_pointers.get(word).map(|pointer| &pointer.used)
            }
        };
        table.is_some_and(|used| used.table)
            && (self.tables.contains_key(&address) || !told.contains(origin))
    }
}
