//! Pointers in module globals, each at a place that is the same for all launches.
//!
//! Stage: the summary. The collector sees such a word being written and knows its value when a
//! kernel runs. The accesses to the memory behind it are therefore kept apart from those through
//! tables of pointers.
//!
//! Invariant: a word that the kernel itself may change is left out: its pointers count as loaded
//! from memory, like all others.

use super::origins::Load;
use super::*;

/// Bytes of a pointer.
const POINTER: u32 = 8;

/// A pointer in a module global: the variable, and bytes from its start.
pub(super) type ModulePointer = (u32, u32);

/// The accesses to the memory behind such a pointer.
#[derive(Debug, Default)]
pub(super) struct ModulePointerUse {
    pub(super) used: Use,
    /// The instructions that do it, for people.
    lines: BTreeSet<String>,
    /// The addresses that it is loaded from.
    loads: BTreeSet<ExprId>,
}

impl Summary<'_> {
    /// The pointers in variables among the loaded values, and all other loaded values.
    pub(super) fn module_pointers_of(
        &self,
        loads: &BTreeSet<Load>,
    ) -> (BTreeMap<ModulePointer, BTreeSet<ExprId>>, Vec<Load>) {
        let mut module_pointers: BTreeMap<ModulePointer, BTreeSet<ExprId>> = BTreeMap::new();
        let mut others = Vec::new();
        for load in loads {
            let whole = self.place(load).filter(|&(_, offset)| offset.is_multiple_of(POINTER));
            match whole {
                Some(word) if load.width == POINTER => {
                    module_pointers.entry(word).or_default().insert(load.address);
                }
                _ => others.push(*load),
            }
        }
        // Halves that were loaded apart.
        let halves: Vec<(Load, ModulePointer)> = others
            .iter()
            .filter(|load| load.width == POINTER / 2)
            .filter_map(|load| Some((*load, self.place(load)?)))
            .collect();
        for (upper, (global, offset)) in halves.iter().filter(|(load, _)| load.whole) {
            let Some(offset) = offset.checked_sub(POINTER / 2) else { continue };
            let word = (*global, offset);
            let lower = halves.iter().find(|(load, place)| !load.whole && *place == word);
            let Some((lower, _)) = lower.filter(|_| offset.is_multiple_of(POINTER)) else {
                continue;
            };
            module_pointers.entry(word).or_default().extend([upper.address, lower.address]);
            others.retain(|load| load != upper && load != lower);
        }
        (module_pointers, others)
    }

    /// The part of a variable that is loaded, where that is the same part always.
    fn place(&self, load: &Load) -> Option<ModulePointer> {
        let (mut global, mut offset) = (None, i64::from(load.within));
        let polynomial = self.interpreter.interner.get(load.address);
        if !polynomial.no_wraps.is_empty() {
            return None;
        }
        for term in &polynomial.terms {
            match (&term.symbols[..], term.coefficient) {
                ([], constant) => offset = offset.checked_add(constant)?,
                ([symbol], 1) if global.is_none() => {
                    match self.interpreter.interner.symbol(*symbol) {
                        Symbol::Global(number) => global = Some(number),
                        _ => return None,
                    }
                }
                _ => return None,
            }
        }
        Some((global?, u32::try_from(offset).ok()?))
    }

    /// How far from the word's value an address is, where it is the word and something without it.
    fn beyond(&mut self, address: ExprId, word: ModulePointer) -> Option<ExprId> {
        let Origins { words, globals, .. } = self.direct(address);
        let [symbol] = self.others(address)[..] else { return None };
        if !words.is_empty() || !globals.is_empty() || !self.is_word(symbol, word) {
            return None;
        }
        let interner = &mut self.interpreter.interner;
        let base = interner.alone(symbol);
        let beyond = interner.add(address, base, -1)?;
        let known = interner.symbol(symbol);
        (!interner.mentions(beyond, &|other| other == known)).then_some(beyond)
    }

    /// Whether a value is nothing but what stands in this word.
    fn is_word(&self, symbol: SymbolId, word: ModulePointer) -> bool {
        let Some(definition) = self.interpreter.definitions.get(&symbol) else { return false };
        let part = |source: ExprId, within: u32| {
            let interner = &self.interpreter.interner;
            let [term] = &interner.get(source).terms[..] else { return false };
            let (1, [half]) = (term.coefficient, &term.symbols[..]) else { return false };
            let load = self.loads_of(*half, false).next();
            load.is_some_and(|load| {
                let place = (word.0, word.1 + within);
                load.width == POINTER / 2 && self.place(&load) == Some(place)
            })
        };
        match (definition.kind, &definition.sources[..]) {
            (Kind::Loaded(POINTER), _) => {
                let load = self.loads_of(symbol, false).next();
                load.is_some_and(|load| self.place(&load) == Some(word))
            }
            (Kind::Halves, &[low, high]) => part(low, 0) && part(high, POINTER / 2),
            _ => false,
        }
    }

    /// Notes an access through words of variables; `alone`: through nothing else.
    pub(super) fn through_module_pointers(
        &mut self,
        raw: &Raw,
        module_pointers: BTreeMap<ModulePointer, BTreeSet<ExprId>>,
        alone: bool,
    ) {
        let line = self.line(raw);
        let one = alone && module_pointers.len() == 1;
        for (word, loads) in module_pointers {
            let address = if one { self.beyond(raw.address, word) } else { None };
            let entry = self.module_pointers.entry(word).or_default();
            entry.lines.insert(line.clone());
            entry.loads.extend(loads);
            self.note_at(AccessBase::ModulePointer(word), raw, address, !one || raw.several);
        }
    }

    /// Takes back what was said of words that the kernel may change.
    pub(super) fn withdraw_changed_pointers(&mut self) {
        let changes = |global: &u32| {
            let used = self.globals.get(global).and_then(|used| used.mode);
            !self.unknown.is_empty() || used != Some(ParameterMode::Read)
        };
        let changed: Vec<ModulePointer> =
            self.module_pointers.keys().filter(|(g, _)| changes(g)).copied().collect();
        for word in changed {
            let Some(pointer) = self.module_pointers.remove(&word) else { continue };
            self.accesses.retain(|(origin, ..)| *origin != AccessBase::ModulePointer(word));
            self.mark_tables(pointer.loads.into_iter().collect());
            self.followed.extend(pointer.lines.into_iter().map(|line| followed(&line)));
        }
    }
}
