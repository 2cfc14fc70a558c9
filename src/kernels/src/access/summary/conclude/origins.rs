//! The origins of an address: the words of the parameters, the variables and the loads that its
//! symbols were made of.
//!
//! Stage: the summary; reachability over the sources of definitions.
//!
//! Invariant: every source that may be a pointer is followed. A pointer times a number, or a
//! pointer that is divided and not multiplied back, counts as no pointer: an assumption of the
//! whole analysis.

use super::*;

/// A value that was loaded from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Load {
    pub(super) address: ExprId,
    /// Bytes between the address and the value: instructions load several values at once.
    pub(super) within: u32,
    /// Bytes of the value.
    pub(super) width: u32,
    /// Whether the origin is a whole pointer, or the upper half of one.
    pub(super) whole: bool,
}

/// The offset of a value among those that an instruction loads, from its symbol's number: results
/// of PTX are numbered from 0 on, registers of machine code from 1000 on, operands in between.
fn loaded_within(number: u16, width: u32) -> u32 {
    match number {
        ..100 => u32::from(number) * width,
        100..1000 => 0,
        1000.. => 4 * u32::from(number - 1000),
    }
}

/// Where an address may come from.
#[derive(Debug, Default)]
pub(super) struct Origins {
    pub(super) words: BTreeSet<u32>,
    pub(super) globals: BTreeSet<u32>,
    /// Pointers, and parts of them, that were loaded.
    pub(super) loads: BTreeSet<Load>,
    /// Whether the address comes from a word of the driver.
    pub(super) driver: bool,
    /// Whether the address comes from an unknown value.
    pub(super) lost: bool,
}

/// The visited symbols behind an address, each with whether it was visited as an upper half.
pub(super) type Seen = HashSet<(SymbolId, bool)>;

impl Summary<'_> {
    /// The bases that an address shows by itself.
    pub(super) fn direct(&self, address: ExprId) -> Origins {
        let mut origins = Origins::default();
        for term in &self.interpreter.interner.get(address).terms {
            let (1, [symbol]) = (term.coefficient, &term.symbols[..]) else { continue };
            match self.interpreter.interner.symbol(*symbol) {
                Symbol::Param { offset, width: 8, .. } => {
                    origins.words.insert(offset);
                }
                Symbol::Global(global) => {
                    origins.globals.insert(global);
                }
                _ => {}
            }
        }
        origins
    }

    /// Everything that the symbol may have been made of.
    pub(super) fn closure(&self, from: SymbolId, origins: &mut Origins, seen: &mut Seen) {
        let mut work = vec![(from, false)];
        while let Some((symbol, upper)) = work.pop() {
            if seen.insert((symbol, upper)) {
                self.made_of(symbol, upper, origins, &mut work);
            }
        }
    }

    /// Notes the kind of a symbol, and adds its sources to `work`; `upper`: the symbol is visited
    /// as an upper half.
    fn made_of(
        &self,
        from: SymbolId,
        upper: bool,
        origins: &mut Origins,
        work: &mut Vec<(SymbolId, bool)>,
    ) {
        let interner = &self.interpreter.interner;
        interner.budget.work(1);
        let parts =
            |of: ExprId, upper: bool| self.pointer_parts(of).into_iter().map(move |id| (id, upper));
        match interner.symbol(from) {
            Symbol::Param { offset, width: 8, .. } => {
                origins.words.insert(offset);
            }
            Symbol::Param { offset, width: 4, .. } => {
                // A half of a pointer.
                origins.words.insert(offset & !7);
            }
            Symbol::Global(global) => {
                origins.globals.insert(global);
            }
            Symbol::Function(Operator::Upper, whole, _) => {
                // The parts below are of 64 bits again.
                work.extend(parts(whole, false));
            }
            Symbol::Function(_, a, b) => {
                work.extend(parts(a, upper));
                work.extend(parts(b, upper));
            }
            _ => {
                if let Some(definition) = self.interpreter.definitions.get(&from) {
                    match definition.kind {
                        Kind::Loaded(width) if width >= 4 => {
                            origins.loads.extend(self.loads_of(from, upper));
                        }
                        Kind::Loaded(_) => {}
                        Kind::Driver => origins.driver = true,
                        Kind::Opaque if definition.sources.is_empty() => origins.lost = true,
                        Kind::Halves => {
                            // A value loaded as the upper half of a pointer is one.
                            for (at, &source) in definition.sources.iter().enumerate() {
                                work.extend(parts(source, at == 1));
                            }
                        }
                        _ => {
                            let sources = definition.sources.iter();
                            work.extend(sources.flat_map(|&source| parts(source, upper)));
                        }
                    }
                }
            }
        }
    }

    /// The loads behind a symbol that stands for a loaded value; `upper`: as the upper half of a
    /// value.
    pub(super) fn loads_of(&self, symbol: SymbolId, upper: bool) -> impl Iterator<Item = Load> {
        let known = self.interpreter.definitions.get(&symbol);
        let loaded = known.and_then(|definition| match definition.kind {
            Kind::Loaded(width) => Some((width, &definition.sources[..])),
            _ => None,
        });
        let (width, sources) = loaded.unwrap_or_default();
        let within = match self.interpreter.interner.symbol(symbol) {
            Symbol::Site(_, slot) => loaded_within(slot, width),
            _ => 0,
        };
        let whole = width >= 8 || upper;
        sources.iter().map(move |&address| Load { address, within, width, whole })
    }

    /// The symbols that may be the pointer in a sum: symbols without a factor, or symbols that are
    /// divided and multiplied back. A pointer times another factor is no pointer.
    pub(super) fn pointer_parts(&self, expression: ExprId) -> Vec<SymbolId> {
        let interner = &self.interpreter.interner;
        let terms = &interner.get(expression).terms;
        let parts = terms.iter().filter(|term| match term.symbols[..] {
            [_] if term.coefficient == 1 => true,
            [id] => match interner.symbol(id) {
                Symbol::Function(Operator::Quotient, _, divisor) => {
                    interner.as_constant(divisor) == Some(term.coefficient)
                }
                _ => false,
            },
            _ => false,
        });
        parts.map(|term| term.symbols[0]).collect()
    }

    /// Whether a symbol with coefficient 1 may be the pointer of an address.
    pub(super) fn may_be_pointer(&self, id: SymbolId) -> bool {
        match self.interpreter.interner.symbol(id) {
            Symbol::Function(Operator::Min | Operator::Max | Operator::Upper, ..) => true,
            Symbol::Function(Operator::And, _, mask) => {
                self.interpreter.interner.as_constant(mask).is_none_or(|mask| mask >= 1 << 32)
            }
            Symbol::Function(..) => false,
            _ => self.interpreter.definitions.get(&id).is_some_and(|definition| {
                definition.bounds.is_none()
                    && !matches!(definition.kind, Kind::Loaded(width) if width < 8)
            }),
        }
    }

    /// Symbols of an address that may be its pointer though they are no word or variable.
    pub(super) fn others(&self, address: ExprId) -> Vec<SymbolId> {
        self.interpreter
            .interner
            .get(address)
            .terms
            .iter()
            .filter(|term| term.coefficient == 1 && term.symbols.len() == 1)
            .map(|term| term.symbols[0])
            .filter(|&id| self.may_be_pointer(id))
            .collect()
    }
}
