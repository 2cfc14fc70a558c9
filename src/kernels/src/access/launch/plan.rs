//! The plan of a kernel: everything that is computed once for all of its launches.
//!
//! Stage: the launch, made when a kernel is first launched. The plan has two parts: the forms in
//! which launches evaluate expressions and conjunctions, and the memoisation key.
//!
//! A pointer is *translatable* where its value is used only in addresses based on it, once and
//! unchanged, and in the no-wrap conditions of such addresses. The footprint through the pointer is
//! then translation invariant: its distance from the pointer is the same for every value. Tests of
//! the pointer's own value are the exception: whether an address is null, and whether it lies in
//! the range of a no-wrap condition. The computation of a launch records them as bounds within
//! which every test has the same outcome ([`translation_bounds`](super::translation_bounds)). If
//! the kernel also tests a pointer's alignment, the tested bits are in the key.
//!
//! Invariant: everything that may change the accesses of a launch is in the key or in a bound.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::access::domain::condition::Condition;
use crate::access::domain::expression::{ExprId, NoWrap, Symbol};
use crate::access::fixpoint::grid_control::Waited;
use crate::access::summary::result::{Base, KernelAccess, Length, SymbolicAccess, Touch};
use streamsan_model::WordKind;

mod conjunction;
mod formulas;
mod translation;

pub(in crate::access) use conjunction::{Conjunction, numbers};
pub(in crate::access) use formulas::{Formula, Formulas, Product};
use formulas::{formulas, order};
use translation::{bits, candidates, key_bits, key_ranges, role, rule_out, uses};

/// Places in a table.
type Indices = Box<[u32]>;

/// A base that launches may translate: the footprint through it is translation invariant.
#[derive(Debug, Clone, Copy)]
pub(in crate::access) struct TranslatableBase {
    /// Offset of the pointer in the parameter block, in bytes.
    pub(in crate::access) offset: u32,
    /// Whether the kernel treats the pointer as a signed number.
    pub(in crate::access) signed: bool,
}

/// How a translatable word comes into an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::access) enum Role {
    None,
    /// The expression is the word plus something without it.
    Plus(u16),
    /// The expression is the negated word, and nothing else.
    Minus(u16),
    /// The lower half of the word is added, and only the lowest bits of the sum are used.
    Bits(u16),
}

/// An access, but for its conditions.
#[derive(Debug, Clone, Copy)]
pub(in crate::access) struct Planned {
    pub(in crate::access) base: Base,
    /// Where the pointer lies in the parameter block, if it is one.
    pub(in crate::access) pointer: Option<u32>,
    /// Index of the parameter and bytes from its start.
    pub(in crate::access) param: u32,
    pub(in crate::access) offset: u32,
    pub(in crate::access) touch: Touch,
    pub(in crate::access) waited: Waited,
    pub(in crate::access) several: bool,
    pub(in crate::access) leads_on: bool,
    pub(in crate::access) exact: bool,
    /// No other access is of the same base and kind.
    pub(in crate::access) alone: bool,
    /// The data for the footprint's bounds; `None` where they are not known.
    pub(in crate::access) reach: Option<(ExprId, Length)>,
    /// The number of the conjunction of its conditions.
    pub(in crate::access) conjunction: u32,
    /// Accesses of the same number are the same but for their conditions.
    pub(in crate::access) alike: u32,
}

/// The data that all launches of a kernel share.
#[derive(Debug)]
pub(in crate::access) struct Plan {
    /// The bytes of the parameter block that are in the memoisation key, those of translatable
    /// words left out.
    pub(in crate::access) key_ranges: Box<[Range<u32>]>,
    /// Translatable words with some of their lowest bits in the key: their offsets, and the bits.
    pub(in crate::access) key_bits: Box<[(u32, u32)]>,
    pub(in crate::access) translatable: Box<[TranslatableBase]>,
    /// The number of each pointer word among the translatable ones.
    pub(in crate::access) words: Box<[Option<u16>]>,
    /// By expression.
    pub(in crate::access) roles: Box<[Role]>,
    /// The accesses that may differ from each other in a launch.
    pub(in crate::access) accesses: Box<[Planned]>,
    /// The values of its pointers tell all that a launch touches.
    pub(in crate::access) is_plain: bool,
    pub(in crate::access) formulas: Formulas,
    /// The conditions of accesses, each once, and conjunctions of them by their numbers.
    pub(in crate::access) distinct_conditions: Box<[Condition]>,
    pub(in crate::access) conjunctions: Box<[Conjunction]>,
    /// The no-wrap conditions of expressions, each once, and by expression.
    pub(in crate::access) no_wraps: Box<[NoWrap]>,
    pub(in crate::access) no_wraps_of: Box<[Indices]>,
}

impl Plan {
    /// Makes the plan of a kernel.
    pub(in crate::access) fn new(kernel: &KernelAccess) -> Plan {
        let uses = uses(kernel);
        let bits = bits(kernel, &uses);
        let candidates = candidates(kernel, &bits);
        let mut translates = vec![true; kernel.pointers.len()];
        rule_out(kernel, &candidates, &uses, &mut translates);
        Plan::with(kernel, &candidates, &translates, &bits)
    }

    /// A plan in which no word is translatable.
    #[cfg(test)]
    pub(in crate::access) fn fixed(kernel: &KernelAccess) -> Plan {
        let bits = vec![None; kernel.symbols.len()];
        let candidates = candidates(kernel, &bits);
        Plan::with(kernel, &candidates, &vec![false; kernel.pointers.len()], &bits)
    }

    fn with(
        kernel: &KernelAccess,
        candidates: &[Option<usize>],
        translates: &[bool],
        bits: &[Option<u32>],
    ) -> Plan {
        let mut translatable = Vec::new();
        let words: Box<[Option<u16>]> = kernel
            .pointers
            .iter()
            .zip(translates)
            .map(|(word, &translates)| {
                let number = u16::try_from(translatable.len()).ok();
                let number = number.filter(|_| translates && word.kind == WordKind::Pointer)?;
                translatable.push(TranslatableBase { offset: word.block_offset, signed: false });
                Some(number)
            })
            .collect();
        let symbols: Box<[Option<u16>]> =
            candidates.iter().map(|word| (*word).and_then(|word| words[word])).collect();
        for (symbol, word) in kernel.symbols.iter().zip(&symbols) {
            if let (Symbol::Param { signed, .. }, Some(word)) = (symbol, word) {
                translatable[usize::from(*word)].signed |= signed;
            }
        }
        let key_bits = key_bits(kernel, &words, bits);
        let halves: Vec<Option<u16>> = key_bits
            .iter()
            .map(|half| {
                let (offset, _) = (*half)?;
                let at = kernel.pointers.binary_search_by_key(&offset, |word| word.block_offset);
                words[at.ok()?]
            })
            .collect();
        let roles: Box<[Role]> = (0..kernel.expressions.len())
            .map(|at| role(kernel, &symbols, &halves, ExprId(at as u32)))
            .collect();
        let (distinct_conditions, conjunctions, conditions) = conditions(kernel);
        let (no_wraps, no_wraps_of) = no_wraps(kernel);
        let mut formulas = formulas(kernel, &roles, &symbols);
        formulas.find_changes(&order(kernel, &conditions, &conjunctions, &distinct_conditions));
        let accesses = accesses(kernel, &conditions);
        Plan {
            is_plain: accesses.iter().all(|access| access.reach.is_none()),
            accesses,
            formulas,
            distinct_conditions,
            conjunctions,
            no_wraps,
            no_wraps_of,
            key_ranges: key_ranges(kernel, &words, &symbols, &key_bits),
            key_bits: key_bits.into_iter().flatten().collect(),
            translatable: translatable.into(),
            words,
            roles,
        }
    }
}

/// The accesses, given the conjunction of each. What only tells that something is touched is
/// told once.
fn accesses(kernel: &KernelAccess, conditions: &[u32]) -> Box<[Planned]> {
    let (mut told, mut counts) = (FxHashSet::default(), FxHashMap::<_, u32>::default());
    let mut numbers = FxHashMap::default();
    let kind = |base, touch, waited, several, leads_on| (base, touch, waited, several, leads_on);
    let planned = kernel.accesses.iter().zip(conditions).filter_map(|(access, &conjunction)| {
        let SymbolicAccess { base, touch, waited, several, leads_on, exact, .. } = *access;
        let reach = match access.length {
            Length::Unknown => None,
            length => access.address.map(|address| (address, length)),
        };
        let kind = kind(base, touch, waited, several, leads_on);
        if reach.is_none() && !told.insert(kind) {
            return None;
        }
        *counts.entry(kind).or_default() += 1;
        let number = numbers.len() as u32;
        let alike = *numbers.entry((kind, exact, reach)).or_insert(number);
        let (param, offset, pointer) = match base {
            Base::Pointer(at) => {
                let word = &kernel.pointers[at as usize];
                let pointer = (word.kind == WordKind::Pointer).then_some(word.block_offset);
                (word.param, word.offset, pointer)
            }
            Base::Global(_) | Base::GlobalPointer(_) => (0, 0, None),
        };
        let alone = false;
        Some(Planned {
            base,
            pointer,
            param,
            offset,
            touch,
            waited,
            several,
            leads_on,
            exact,
            alone,
            reach,
            conjunction,
            alike,
        })
    });
    let mut planned: Box<[Planned]> = planned.collect();
    for p in &mut planned {
        p.alone = counts[&kind(p.base, p.touch, p.waited, p.several, p.leads_on)] == 1;
    }
    planned
}

/// The conditions of accesses, each once, conjunctions of them, and the conjunction of each access.
fn conditions(kernel: &KernelAccess) -> (Box<[Condition]>, Box<[Conjunction]>, Indices) {
    let all = kernel.accesses.iter().flat_map(|access| &access.conditions).copied();
    let mut distinct_conditions: Vec<Condition> =
        all.collect::<FxHashSet<_>>().into_iter().collect();
    distinct_conditions.sort_unstable();
    let places = distinct_conditions.iter().zip(0..);
    let places: FxHashMap<&Condition, u32> = places.collect();
    let mut conjunctions = Vec::new();
    let mut conjunction_numbers: FxHashMap<&[Condition], u32> = FxHashMap::default();
    let numbers = kernel.accesses.iter().map(|access| {
        *conjunction_numbers.entry(&access.conditions).or_insert_with(|| {
            let mut conjunction: Vec<u32> =
                access.conditions.iter().map(|own| places[own]).collect();
            conjunction.sort_unstable();
            conjunctions.push(Conjunction::new(conjunction));
            conjunctions.len() as u32 - 1
        })
    });
    let numbers = numbers.collect();
    (distinct_conditions.into(), conjunctions.into(), numbers)
}

/// The no-wrap conditions of expressions, each once, and their numbers by expression.
fn no_wraps(kernel: &KernelAccess) -> (Box<[NoWrap]>, Box<[Indices]>) {
    let mut no_wraps = Vec::new();
    let mut numbers: FxHashMap<NoWrap, u32> = FxHashMap::default();
    let of = kernel.expressions.iter().map(|polynomial| {
        let numbers = polynomial.no_wraps.iter().map(|no_wrap| {
            *numbers.entry(*no_wrap).or_insert_with(|| {
                no_wraps.push(*no_wrap);
                no_wraps.len() as u32 - 1
            })
        });
        numbers.collect()
    });
    let of = of.collect();
    (no_wraps.into(), of)
}
