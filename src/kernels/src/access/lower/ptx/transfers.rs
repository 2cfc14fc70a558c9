//! The transfer functions of loads, stores and asynchronous copies of PTX: their accesses, and the
//! registers behind them.
//!
//! Stage: lowering.
//!
//! Invariant: a value loaded from memory is opaque and remembers its address. Only the parameter
//! block and the parameter variables of inlined calls are followed.

mod params;

use smallvec::smallvec;

use crate::access::domain::expression::{ExprId, Provenance, Symbol};
use crate::access::fixpoint::interpret::{Interpreter, Kind, State};
use crate::access::lower::ptx::effects::{AccessPath, Size, is_strong_at_system_scope, spaces};
use crate::access::lower::ptx::values::PtxSite;
use crate::access::lower::steps::Arg;
use crate::access::summary::result::Touch;
use crate::ptx::Space;
use streamsan_model::WordKind;

/// Bytes of parameters at most (CUDA programming guide, "Kernel parameters": 32,764).
const MAX_PARAMS: u32 = 32_768;

impl Interpreter<'_> {
    /// The results of a load become what was loaded.
    pub(in crate::access) fn loaded(
        &mut self,
        site: &PtxSite<'_, '_>,
        address: ExprId,
        state: &mut State,
    ) {
        let ty = site.types.last().copied();
        let width = self.element(site);
        let bounds = match (width, ty.is_some_and(|ty| ty.is_signed())) {
            (1, true) => Some((-128, 127)),
            (1, false) => Some((0, 255)),
            (2, true) => Some((-(1 << 15), (1 << 15) - 1)),
            (2, false) => Some((0, (1 << 16) - 1)),
            _ => None,
        };
        let results = match site.args.first() {
            Some(Arg::Vector(items)) => items.clone(),
            Some(single) => vec![single.clone()],
            // No driver accepts an instruction without operands, but an image may hold one.
            None => Vec::new(),
        };
        for (number, result) in results.iter().enumerate() {
            if let Arg::Register(register) = result {
                let symbol = Symbol::Site(site.number as u32, number as u16);
                let kind = Kind::Loaded(width);
                let value = self.define(symbol, kind, smallvec![address], bounds);
                self.assign_to(site, *register, number as u16, value, state);
            }
        }
    }

    /// A load: from a parameter variable of a call, the parameters, or memory. Returns that the
    /// step is done with.
    pub(in crate::access) fn load(
        &mut self,
        site: &PtxSite<'_, '_>,
        here: &AccessPath,
        state: &mut State,
    ) -> bool {
        let (Some(Arg::Address(base, offset, _)), Some(first)) =
            (site.args.get(1), site.args.first())
        else {
            self.anything(site, here, state);
            self.opaque(site, state);
            return true;
        };
        let count = match first {
            Arg::Vector(items) => items.len() as u32,
            _ => 1,
        };
        let width = self.element(site);
        if let Arg::Slot(slot) = **base {
            self.load_slot(site, slot, *offset, width, state);
            return true;
        }
        let address = self.operand(site, 1, state);
        let space = spaces(site).first().copied();
        if space == Some(Space::Param)
            || self.interner.provenance(address) & Provenance::PARAM_BLOCK != 0
        {
            self.load_param(site, address, width, state);
            return true;
        }
        if matches!(space, None | Some(Space::Global | Space::Const)) {
            let size = Size::Bytes(width * count);
            let touch = Touch::Read.strong(is_strong_at_system_scope(site.instruction));
            self.note(site.number, address, (touch, size, WordKind::Pointer), here, state);
        }
        self.loaded(site, address, state);
        true
    }

    fn load_slot(
        &mut self,
        site: &PtxSite<'_, '_>,
        slot: u32,
        offset: i64,
        width: u32,
        state: &mut State,
    ) {
        let results = match site.args.first() {
            Some(Arg::Vector(items)) => items.clone(),
            Some(single) => vec![single.clone()],
            // No driver accepts an instruction without operands, but an image may hold one.
            None => Vec::new(),
        };
        for (number, result) in results.iter().enumerate() {
            let Arg::Register(register) = result else { continue };
            let at = (offset as u32).wrapping_add(number as u32 * width);
            let known = &self.flat.slots[slot as usize];
            let piece = known.pieces.get(&at).filter(|p| p.0 == width && !known.mixed);
            let widened = width < 8 && self.flat.wide.contains(register);
            let value = match piece.map(|p| state.registers[p.1 as usize]) {
                Some(id) if id != 0 && !widened => ExprId(id - 1),
                _ => self.value(site, &Arg::Slot(slot), state),
            };
            self.assign_to(site, *register, number as u16, value, state);
        }
    }

    fn load_param(
        &mut self,
        site: &PtxSite<'_, '_>,
        address: ExprId,
        width: u32,
        state: &mut State,
    ) {
        let block = self.interner.of(Symbol::ParamBlock);
        let index = self.interner.add(address, block, -1);
        let offset = index.and_then(|index| self.interner.as_constant(index));
        let negative = site.types.last().is_some_and(|ty| ty.is_signed());
        let signed = width >= 4 || negative;
        let results = match site.args.first() {
            Some(Arg::Vector(items)) => items.clone(),
            Some(single) => vec![single.clone()],
            // No driver accepts an instruction without operands, but an image may hold one.
            None => Vec::new(),
        };
        for (number, result) in results.iter().enumerate() {
            let Arg::Register(register) = result else { continue };
            // In a register of its size the sign of a word makes no difference.
            let signed = signed && (negative || width > 4 || !self.flat.wide.contains(register));
            let value = match offset {
                Some(offset) => {
                    let offset = (offset as u32).wrapping_add(number as u32 * width);
                    self.interner.of(Symbol::Param { offset, width: width as u8, signed })
                }
                None => {
                    // Some word of the parameters.
                    let symbol = Symbol::Site(site.number as u32, number as u16);
                    match width {
                        8 => {
                            let words = self.chosen_words(index, number as u32 * width);
                            self.define_gated_phi(symbol, words)
                        }
                        _ => self.define(symbol, Kind::Opaque, smallvec![], None),
                    }
                }
            };
            self.assign_to(site, *register, number as u16, value, state);
        }
    }

    /// A store: to a parameter variable of a call, or to memory. Returns that the step is done
    /// with.
    pub(in crate::access) fn store(
        &mut self,
        site: &PtxSite<'_, '_>,
        here: &AccessPath,
        state: &mut State,
    ) -> bool {
        let items = match site.args.get(1) {
            Some(Arg::Vector(items)) => items.clone(),
            Some(single) => vec![single.clone()],
            None => Vec::new(),
        };
        if let Some(Arg::Address(base, offset, _)) = site.args.first()
            && let Arg::Slot(slot) = **base
        {
            let width = self.element(site);
            for (number, item) in items.iter().enumerate() {
                let at = (*offset as u32).wrapping_add(number as u32 * width);
                let piece = self.flat.slots[slot as usize].pieces.get(&at).map(|p| p.1);
                let value = self.value(site, item, state);
                if let Some(register) = piece {
                    self.assign_to(site, register, number as u16, value, state);
                }
            }
            return true;
        }
        if instruction_is_local(site) {
            return true;
        }
        let size = Size::Bytes(self.element(site) * items.len() as u32);
        let touch = Touch::Write.strong(is_strong_at_system_scope(site.instruction));
        self.memory(site, 0, touch, size, here, state)
    }

    /// The asynchronous copies. Their direction is the order of the spaces: destination first.
    pub(in crate::access) fn copy(
        &mut self,
        site: &PtxSite<'_, '_>,
        here: &AccessPath,
        state: &mut State,
    ) -> bool {
        let instruction = site.instruction;
        if instruction.has("prefetch") || !instruction.has("async") {
            return true;
        }
        let Some(Arg::Address(..)) = site.args.first() else { return true };
        if instruction.has("mbarrier") {
            return true;
        }
        let words = spaces(site);
        let [to, from] = words[..] else {
            self.anything(site, here, state);
            return true;
        };
        let written = if instruction.has("reduce") { Touch::Atomic } else { Touch::Write };
        if instruction.has("tensor") {
            let (at, touch) = if from == Space::Global { (1, Touch::Read) } else { (0, written) };
            let address = self.operand(site, at, state);
            self.note(
                site.number,
                address,
                (touch, Size::Unknown, WordKind::TensorMap),
                here,
                state,
            );
            return true;
        }
        let size = match site.args.get(2) {
            Some(Arg::Constant(bytes)) if !instruction.has("bulk") && site.args.len() > 3 => {
                Size::AtMost(*bytes as u32)
            }
            Some(Arg::Constant(bytes)) => Size::Bytes(*bytes as u32),
            Some(arg) => Size::Expression(self.value(site, arg, state)),
            None => Size::Unknown,
        };
        let size = if instruction.has("cp_mask") { Size::Unknown } else { size };
        let one = |this: &mut Self, at, touch| {
            let address = this.operand(site, at, state);
            this.note(site.number, address, (touch, size, WordKind::Pointer), here, state);
        };
        if to == Space::Global {
            one(self, 0, written);
        }
        if from == Space::Global {
            one(self, 1, Touch::Read);
        }
        true
    }
}

/// Stores that reach shared memory only.
fn instruction_is_local(site: &PtxSite<'_, '_>) -> bool {
    site.instruction.has("async") || site.instruction.has("bulk")
}
