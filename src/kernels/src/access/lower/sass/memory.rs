//! The transfer functions of machine code that touches memory, and the registers behind loads.
//!
//! Stage: lowering; accesses are recorded as those of PTX are.
//!
//! Invariant: an address with an unknown half keeps both halves as its sources, so that the pointer
//! in it is found.

use smallvec::smallvec;

use super::interpret::SassSite;
use super::operation::{AddressPart, Bytes, Memory, Operation};
use crate::access::domain::condition::Predicate;
use crate::access::domain::expression::{ExprId, Provenance, Symbol};
use crate::access::fixpoint::grid_control::Waited;
use crate::access::fixpoint::interpret::{Interpreter, Kind, Sources, State};
use crate::access::lower::ptx::effects::{AccessPath, Size};
use crate::access::summary::result::Touch;
use streamsan_model::WordKind;

impl Interpreter<'_> {
    /// Interprets an instruction that touches memory. Returns whether it is one.
    pub(super) fn machine_memory(&mut self, here: SassSite<'_>, state: &mut State) -> bool {
        match &here.lifted.operation {
            Operation::Load { memory, bytes, signed, strong, terms, offset } => {
                let touch = Touch::Read.strong(*strong);
                self.machine_load(here, *memory, (*bytes, *signed, touch), (terms, *offset), state);
            }
            Operation::Store { bytes, strong, terms, offset, .. } => {
                let address = self.machine_address(here, terms, *offset, state);
                let what = (Touch::Write.strong(*strong), Size::Bytes(*bytes), WordKind::Pointer);
                self.machine_note(here, address, what, false, state);
            }
            Operation::Access { touch, kind, bytes, terms, offset, partly } => {
                let address = self.machine_address(here, terms, *offset, state);
                let size = match bytes {
                    Bytes::Exactly(bytes) if *partly => Size::AtMost(*bytes),
                    Bytes::Exactly(bytes) => Size::Bytes(*bytes),
                    Bytes::Lines => {
                        let lines = self.source(here, here.lifted.sources.len() - 1, state);
                        let line = self.interner.constant(16);
                        match self.interner.multiply(lines, line) {
                            Some(bytes) => Size::Expression(bytes),
                            None => Size::Unknown,
                        }
                    }
                    Bytes::Counted => {
                        Size::Expression(self.source(here, here.lifted.sources.len() - 1, state))
                    }
                    Bytes::Unknown => Size::Unknown,
                };
                let address = match kind {
                    WordKind::Handle => self.handle_word(address),
                    _ => address,
                };
                self.machine_note(here, address, (*touch, size, *kind), *partly, state);
                self.put_loaded(
                    here,
                    address,
                    (touch.weak() == Touch::Atomic).then_some(false),
                    state,
                );
            }
            Operation::Unknown { reason } => {
                self.effects.unknown.insert(format!("at {:#06x}: {reason}", here.lifted.place));
                self.effects.early |= state.passed.waited != Waited::Yes;
                for at in (0..here.lifted.sources.len()).step_by(2) {
                    let value = self.joined(here, at, state);
                    let what = (Touch::Unknown, Size::Unknown, WordKind::Pointer);
                    self.machine_note(here, value, what, true, state);
                }
            }
            Operation::InGlobal { terms, offset } => {
                let address = self.machine_address(here, terms, *offset, state);
                let predicate = match self.is_in_global(address) {
                    true => Predicate::always(true),
                    false => Predicate::default(),
                };
                self.put_predicate(here, 0, predicate, state);
            }
            // See `grid_control`.
            Operation::Wait | Operation::Trigger | Operation::Meet(_) => {}
            _ => return false,
        }
        true
    }

    /// Whether an address is a word of the parameters or a variable, plus an offset. The host
    /// cannot pass addresses of shared or local memory.
    fn is_in_global(&self, address: ExprId) -> bool {
        let terms = &self.interner.get(address).terms;
        let mut bases = 0;
        terms.iter().all(|term| match (term.coefficient, &term.symbols[..]) {
            (1, &[id]) => match self.interner.symbol(id) {
                Symbol::Param { width: 8, .. } | Symbol::Global(_) => {
                    bases += 1;
                    true
                }
                Symbol::Index(_) | Symbol::Induction(_) | Symbol::Param { .. } => true,
                _ => false,
            },
            _ => true,
        }) && bases == 1
            && self.interner.provenance(address) & Provenance::WINDOW == 0
    }

    /// A handle is known by its lower half.
    fn handle_word(&mut self, handle: ExprId) -> ExprId {
        match self.interner.as_symbol(handle) {
            Some(Symbol::Param { offset, width: 4, .. }) if offset % 8 == 0 => {
                self.interner.of(Symbol::Param { offset, width: 8, signed: true })
            }
            _ => handle,
        }
    }

    fn machine_note(
        &mut self,
        here: SassSite<'_>,
        address: ExprId,
        what: (Touch, Size, WordKind),
        partly: bool,
        state: &State,
    ) {
        let mut path = AccessPath::at(state);
        if let Some((register, negated)) = here.place.guard {
            self.assume_in(&mut path, state, register, !negated);
        }
        path.exact &= !partly;
        self.note(here.place.number, address, what, &path, state);
    }

    /// The 64-bit value of two sources, as far as it is known.
    fn joined(&mut self, here: SassSite<'_>, at: usize, state: &State) -> ExprId {
        let (low, high) = (self.source(here, at, state), self.source(here, at + 1, state));
        match self.join(low, high) {
            Some(value) => value,
            None => self.fresh(here.place.number, Kind::Halves, smallvec![low, high], None),
        }
    }

    fn machine_address(
        &mut self,
        here: SassSite<'_>,
        terms: &[AddressPart],
        offset: i64,
        state: &State,
    ) -> ExprId {
        let mut parts = Sources::new();
        let mut at = 0;
        for term in terms {
            let value = match term {
                AddressPart::Pair => self.joined(here, at, state),
                AddressPart::Unsigned | AddressPart::Signed => {
                    let value = self.source(here, at, state);
                    match self.number32(value, *term == AddressPart::Signed) {
                        Some(value) => value,
                        None => self.fresh(here.place.number, Kind::Opaque, smallvec![value], None),
                    }
                }
            };
            at += 1 + usize::from(*term == AddressPart::Pair);
            parts.push(value);
        }
        let mut sum = self.interner.constant(offset);
        for &part in &parts {
            sum = match self.interner.add(sum, part, 1) {
                Some(sum) => sum,
                None => return self.fresh(here.place.number, Kind::Opaque, parts, None),
            };
        }
        sum
    }

    fn machine_load(
        &mut self,
        here: SassSite<'_>,
        memory: Memory,
        (bytes, signed, touch): (u32, bool, Touch),
        (terms, offset): (&[AddressPart], i64),
        state: &mut State,
    ) {
        match memory {
            Memory::Global | Memory::Generic => {
                let address = self.machine_address(here, terms, offset, state);
                if self.interner.provenance(address) & Provenance::PARAM_BLOCK != 0 {
                    let block = self.interner.of(Symbol::ParamBlock);
                    let index = self.interner.add(address, block, -1);
                    return self.load_params(here, index, (bytes, signed), state);
                }
                let what = (touch, Size::Bytes(bytes), WordKind::Pointer);
                self.machine_note(here, address, what, false, state);
                self.put_elements(here, address, (bytes, signed), state);
            }
            Memory::Shared => {
                let window = self.interner.of(Symbol::Window);
                self.put_elements(here, window, (bytes, signed), state);
            }
            Memory::Slot => {
                // The last source is the rest of local memory: nothing, if nothing else is
                // written there.
                let last = here.lifted.sources.len() - 1;
                let others = match here.lifted.sources[last].origin {
                    super::operation::SourceValue::Register(r) => state.registers[r as usize] != 0,
                    _ => true,
                };
                if others || bytes < 4 {
                    return self.put_opaque(here, state);
                }
                let values: Vec<ExprId> =
                    (0..here.lifted.results.len()).map(|at| self.source(here, at, state)).collect();
                for (at, value) in values.into_iter().enumerate() {
                    self.put(here, at, value, state);
                }
            }
            Memory::Driver => {
                let index = self.machine_address(here, terms, offset, state);
                let terms = &self.interner.get(index).terms;
                let back = terms.iter().all(|term| term.coefficient < 0 && self.positive(term));
                if !back {
                    return self.put_opaque(here, state);
                }
                for at in 0..here.lifted.results.len() {
                    let value = self.fresh(here.place.number, Kind::Driver, smallvec![index], None);
                    self.put(here, at, value, state);
                }
            }
            Memory::Local => self.put_opaque(here, state),
            Memory::Param(at) => {
                let index = self.machine_address(here, terms, at + offset, state);
                self.load_params(here, Some(index), (bytes, signed), state);
            }
            Memory::Constant(Some((global, at))) => {
                let base = self.interner.of(Symbol::Global(global));
                let index = self.machine_address(here, terms, at + offset, state);
                let address = self.interner.add(base, index, 1).unwrap_or(base);
                let what = (Touch::Read, Size::Bytes(bytes), WordKind::Pointer);
                self.machine_note(here, address, what, false, state);
                self.put_elements(here, address, (bytes, signed), state);
            }
            Memory::Constant(None) => {
                let all: Sources = self
                    .constants
                    .clone()
                    .iter()
                    .map(|&g| self.interner.of(Symbol::Global(g)))
                    .collect();
                let address = self.fresh(here.place.number, Kind::Opaque, all, None);
                let what = (Touch::Read, Size::Bytes(bytes), WordKind::Pointer);
                self.machine_note(here, address, what, true, state);
                self.put_elements(here, address, (bytes, signed), state);
            }
        }
    }

    /// The results become what was loaded from an address; `Some` where there are results at all.
    fn put_loaded(
        &mut self,
        here: SassSite<'_>,
        address: ExprId,
        signed: Option<bool>,
        state: &mut State,
    ) {
        let Some(signed) = signed else { return self.put_opaque(here, state) };
        let bytes = 4 * here.lifted.results.len() as u32;
        self.put_elements(here, address, (bytes, signed), state);
    }

    /// The results become what was loaded: words of 8 bytes where there are two registers.
    fn put_elements(
        &mut self,
        here: SassSite<'_>,
        address: ExprId,
        (bytes, signed): (u32, bool),
        state: &mut State,
    ) {
        let bounds = match (bytes, signed) {
            (1, true) => Some((-128, 127)),
            (1, false) => Some((0, 255)),
            (2, true) => Some((-(1 << 15), (1 << 15) - 1)),
            (2, false) => Some((0, (1 << 16) - 1)),
            _ => None,
        };
        let count = here.lifted.results.len();
        let mut at = 0;
        while at < count {
            let pair = bytes >= 8 && at + 1 < count;
            let width = if pair { 8 } else { bytes.min(4) };
            let symbol = Symbol::Site(here.place.number as u32, 1000 + at as u16);
            let value = self.define(symbol, Kind::Loaded(width), smallvec![address], bounds);
            if pair {
                self.put_pair(here, at, value, state);
                at += 2;
            } else {
                self.put(here, at, value, state);
                at += 1;
            }
        }
    }

    /// Loads from the parameter block, at a place that may vary.
    fn load_params(
        &mut self,
        here: SassSite<'_>,
        index: Option<ExprId>,
        (bytes, signed): (u32, bool),
        state: &mut State,
    ) {
        let constant = index.and_then(|index| self.interner.as_constant(index));
        if let Some(offset) = constant {
            let offset = offset as u32;
            let width = bytes.min(4) as u8;
            for at in 0..here.lifted.results.len() {
                let offset = offset + 4 * at as u32;
                let signed = signed || width == 4;
                let value = self.interner.of(Symbol::Param { offset, width, signed });
                self.put(here, at, value, state);
            }
            return;
        }
        let bounds = match (bytes, signed) {
            (1, false) => Some((0, 255)),
            (2, false) => Some((0, (1 << 16) - 1)),
            _ => None,
        };
        let count = here.lifted.results.len();
        let mut at = 0;
        while at < count {
            let pair = bytes >= 8 && at + 1 < count;
            let symbol = Symbol::Site(here.place.number as u32, 1000 + at as u16);
            let words = match bytes {
                ..4 => vec![],
                _ => self.chosen_words(index, if pair { 4 * at as u32 } else { 0 }),
            };
            let value = match pair {
                true => self.define_gated_phi(symbol, words),
                false => {
                    let sources = words.into_iter().map(|(word, _)| word).collect();
                    self.define(symbol, Kind::Opaque, sources, bounds)
                }
            };
            if pair {
                self.put_pair(here, at, value, state);
                at += 2;
            } else {
                self.put(here, at, value, state);
                at += 1;
            }
        }
    }
}
