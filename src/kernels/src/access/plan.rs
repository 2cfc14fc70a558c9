//! What can be told of all launches of a kernel, once: which bytes of its parameters decide what a
//! launch touches, and which pointers only say where that lies.
//!
//! A pointer *shifts* where its value only ever comes into addresses based on it, once and as it
//! is, and into what such addresses need. What a launch reaches through it then is the same for
//! every value, as far from the pointer, but for tests that ask where it lies: whether an address
//! is null, and whether it lies in the range that its expression needs. Those are put down while a
//! launch is worked out, as bounds between which nothing else comes out.

use std::collections::hash_map::Entry;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::condition::{Condition, Relation};
use super::expression::{ExprId, Index, Need, Symbol, SymbolId, Term};
use super::result::{Base, KernelAccess, Length, SymbolicAccess, Touch, WordKind};

/// Places in a table.
type Numbers = Box<[u32]>;

/// A word that shifts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shifting {
    /// Where it lies in the parameter block.
    pub(super) offset: u32,
    /// Whether it is taken for a signed number.
    pub(super) signed: bool,
}

/// How a word that shifts comes into an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    None,
    /// The expression is the word plus something without it.
    Plus(u16),
    /// It is the word negated, and nothing else.
    Minus(u16),
}

/// A product of symbols with its coefficient: where they stand among all factors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Product {
    pub(super) coefficient: i64,
    from: u32,
    to: u32,
}

/// An expression, without the pointer that it counts from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Formula {
    pub(super) constant: i64,
    from: u32,
    to: u32,
    /// Expressions of one class differ in their constants only.
    pub(super) class: Option<u32>,
}

/// An access, but for its conditions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub(super) base: Base,
    /// Where the pointer lies in the parameter block, if it is one.
    pub(super) pointer: Option<u32>,
    /// Index of the parameter and bytes from its start.
    pub(super) param: u32,
    pub(super) offset: u32,
    pub(super) touch: Touch,
    pub(super) several: bool,
    pub(super) leads_on: bool,
    pub(super) exact: bool,
    /// What is needed to tell how far it reaches; `None` where that is not known.
    pub(super) reach: Option<(ExprId, Length)>,
    /// The number of the list of its conditions.
    pub(super) set: u32,
}

/// What can be told of all launches of a kernel.
#[derive(Debug)]
pub(super) struct Plan {
    /// The bytes of the parameter block that decide, those of words that shift left out.
    pub(super) deciding: Box<[Range<u32>]>,
    pub(super) shifting: Box<[Shifting]>,
    /// The number of each pointer word among those that shift.
    pub(super) words: Box<[Option<u16>]>,
    /// By expression.
    pub(super) roles: Box<[Role]>,
    /// The accesses that may differ from each other in a launch.
    pub(super) accesses: Box<[Planned]>,
    /// By expression.
    pub(super) formulas: Box<[Formula]>,
    pub(super) classes: usize,
    products: Box<[Product]>,
    factors: Box<[SymbolId]>,
    /// The conditions of accesses, each once, and lists of them by their numbers.
    pub(super) facts: Box<[Condition]>,
    pub(super) sets: Box<[Numbers]>,
    /// What expressions need, each once, and by expression.
    pub(super) needs: Box<[Need]>,
    pub(super) needs_of: Box<[Numbers]>,
}

/// How an expression is used.
#[derive(Debug, Clone, Copy, Default)]
struct Uses {
    /// As the address of an access.
    address: bool,
    /// In a condition that asks whether it is zero, and not for the rounds of a loop.
    zero: bool,
    /// As what another one needs.
    need: bool,
    /// In any other way.
    other: bool,
}

impl Plan {
    /// What can be told of a kernel.
    pub(super) fn new(kernel: &KernelAccess) -> Plan {
        let candidates = candidates(kernel);
        let mut shifts = vec![true; kernel.pointers.len()];
        rule_out(kernel, &candidates, &uses(kernel), &mut shifts);
        Plan::with(kernel, &candidates, &shifts)
    }

    /// A plan in which no word shifts.
    #[cfg(test)]
    pub(super) fn fixed(kernel: &KernelAccess) -> Plan {
        Plan::with(kernel, &candidates(kernel), &vec![false; kernel.pointers.len()])
    }

    /// The products that an expression is the sum of, beside its constant.
    pub(super) fn products(&self, formula: Formula) -> &[Product] {
        &self.products[formula.from as usize..formula.to as usize]
    }

    pub(super) fn factors(&self, product: Product) -> &[SymbolId] {
        &self.factors[product.from as usize..product.to as usize]
    }

    fn with(kernel: &KernelAccess, candidates: &[Option<usize>], shifts: &[bool]) -> Plan {
        let mut shifting = Vec::new();
        let words: Box<[Option<u16>]> = kernel
            .pointers
            .iter()
            .zip(shifts)
            .map(|(word, &shifts)| {
                let number = u16::try_from(shifting.len()).ok();
                let number = number.filter(|_| shifts && word.kind == WordKind::Pointer)?;
                shifting.push(Shifting { offset: word.block_offset, signed: false });
                Some(number)
            })
            .collect();
        let symbols: Box<[Option<u16>]> =
            candidates.iter().map(|word| (*word).and_then(|word| words[word])).collect();
        for (symbol, word) in kernel.symbols.iter().zip(&symbols) {
            if let (Symbol::Param { signed, .. }, Some(word)) = (symbol, word) {
                shifting[usize::from(*word)].signed |= signed;
            }
        }
        let roles: Box<[Role]> = (0..kernel.expressions.len())
            .map(|at| role(kernel, &symbols, ExprId(at as u32)))
            .collect();
        let (facts, sets, conditions) = conditions(kernel);
        let (needs, needs_of) = needs(kernel);
        let Formulas { formulas, classes, products, factors } = formulas(kernel, &roles, &symbols);
        Plan {
            accesses: accesses(kernel, &conditions),
            formulas: formulas.into(),
            classes,
            products: products.into(),
            factors: factors.into(),
            facts,
            sets,
            needs,
            needs_of,
            deciding: deciding(kernel, &words, &symbols),
            shifting: shifting.into(),
            words,
            roles,
        }
    }
}

/// The accesses, given the list of conditions of each. What only tells that something is touched is
/// told once.
fn accesses(kernel: &KernelAccess, conditions: &[u32]) -> Box<[Planned]> {
    let mut told = FxHashSet::default();
    let planned = kernel.accesses.iter().zip(conditions).filter_map(|(access, &set)| {
        let SymbolicAccess { base, touch, several, leads_on, exact, .. } = *access;
        let reach = match access.length {
            Length::Unknown => None,
            length => access.address.map(|address| (address, length)),
        };
        if reach.is_none() && !told.insert((base, touch, several, leads_on)) {
            return None;
        }
        let (param, offset, pointer) = match base {
            Base::Pointer(at) => {
                let word = &kernel.pointers[at as usize];
                let pointer = (word.kind == WordKind::Pointer).then_some(word.block_offset);
                (word.param, word.offset, pointer)
            }
            Base::Global(_) => (0, 0, None),
        };
        Some(Planned { base, pointer, param, offset, touch, several, leads_on, exact, reach, set })
    });
    planned.collect()
}

/// Expressions by their parts.
#[derive(Default)]
struct Formulas {
    formulas: Vec<Formula>,
    classes: usize,
    products: Vec<Product>,
    factors: Vec<SymbolId>,
}

fn formulas(kernel: &KernelAccess, roles: &[Role], symbols: &[Option<u16>]) -> Formulas {
    let mut out = Formulas::default();
    // By what they are but for their constants: the first one, or the class.
    let mut alike: FxHashMap<Vec<&Term>, (usize, Option<u32>)> = FxHashMap::default();
    let varies = |id: &&SymbolId| {
        !matches!(
            kernel.symbols[id.0 as usize],
            Symbol::Param { .. }
                | Symbol::Global(_)
                | Symbol::Index(Index::BlockSize(_) | Index::GridSize(_))
        )
    };
    for (number, (polynomial, &role)) in kernel.expressions.iter().zip(roles).enumerate() {
        let (constant, terms) = match &polynomial.terms[..] {
            [first, rest @ ..] if first.symbols.is_empty() => (first.coefficient, rest),
            all => (0, all),
        };
        let counts_from = match role {
            Role::Plus(word) => Some(word),
            Role::Minus(_) | Role::None => None,
        };
        let pointer =
            |id: &SymbolId| counts_from.is_some() && symbols[id.0 as usize] == counts_from;
        let terms: Vec<&Term> =
            terms.iter().filter(|term| !term.symbols.iter().any(pointer)).collect();
        let from = out.products.len() as u32;
        for term in &terms {
            let from = out.factors.len() as u32;
            out.factors.extend_from_slice(&term.symbols);
            let to = out.factors.len() as u32;
            out.products.push(Product { coefficient: term.coefficient, from, to });
        }
        let to = out.products.len() as u32;
        // What two factors with variables make is another variable each time.
        let same_again = terms.iter().all(|term| term.symbols.iter().filter(varies).count() < 2);
        let mut class = None;
        if same_again && from != to {
            match alike.entry(terms) {
                Entry::Vacant(place) => {
                    place.insert((number, None));
                }
                Entry::Occupied(mut place) => {
                    let (first, known) = place.get_mut();
                    class = Some(*known.get_or_insert_with(|| {
                        out.classes += 1;
                        out.classes as u32 - 1
                    }));
                    out.formulas[*first].class = class;
                }
            }
        }
        out.formulas.push(Formula { constant, from, to, class });
    }
    out
}

/// The conditions of accesses, each once, lists of them, and the list of each access.
fn conditions(kernel: &KernelAccess) -> (Box<[Condition]>, Box<[Numbers]>, Numbers) {
    let (mut facts, mut sets) = (Vec::new(), Vec::new());
    let mut fact_numbers: FxHashMap<(ExprId, Relation), u32> = FxHashMap::default();
    let mut set_numbers: FxHashMap<&[Condition], u32> = FxHashMap::default();
    let numbers = kernel.accesses.iter().map(|access| {
        *set_numbers.entry(&access.conditions).or_insert_with(|| {
            let set = access.conditions.iter().map(|condition| {
                let key = (condition.expression, condition.relation);
                *fact_numbers.entry(key).or_insert_with(|| {
                    facts.push(*condition);
                    facts.len() as u32 - 1
                })
            });
            sets.push(set.collect());
            sets.len() as u32 - 1
        })
    });
    let numbers = numbers.collect();
    (facts.into(), sets.into(), numbers)
}

/// What expressions need, each once, and the numbers of what each expression needs.
fn needs(kernel: &KernelAccess) -> (Box<[Need]>, Box<[Numbers]>) {
    let mut needs = Vec::new();
    let mut numbers: FxHashMap<Need, u32> = FxHashMap::default();
    let of = kernel.expressions.iter().map(|polynomial| {
        let numbers = polynomial.needs.iter().map(|need| {
            *numbers.entry(*need).or_insert_with(|| {
                needs.push(*need);
                needs.len() as u32 - 1
            })
        });
        numbers.collect()
    });
    let of = of.collect();
    (needs.into(), of)
}

/// The pointer word that each symbol is the whole of. One that something else overlaps is none.
fn candidates(kernel: &KernelAccess) -> Vec<Option<usize>> {
    let mut overlapped = vec![false; kernel.pointers.len()];
    let mut mark = |range: Range<u32>, but: Option<usize>| {
        // Words come in the order of the parameter block.
        let first =
            kernel.pointers.partition_point(|w| w.block_offset.saturating_add(8) <= range.start);
        for (at, word) in kernel.pointers.iter().enumerate().skip(first) {
            if word.block_offset >= range.end {
                break;
            }
            overlapped[at] |= but != Some(at);
        }
    };
    for (at, word) in kernel.pointers.iter().enumerate() {
        mark(word.block_offset..word.block_offset.saturating_add(8), Some(at));
    }
    let mut found = Vec::with_capacity(kernel.symbols.len());
    for symbol in &kernel.symbols {
        let Symbol::Param { offset, width, .. } = *symbol else {
            found.push(None);
            continue;
        };
        let at = kernel.pointers.binary_search_by_key(&offset, |word| word.block_offset).ok();
        let at = at.filter(|&at| width == 8 && kernel.pointers[at].kind == WordKind::Pointer);
        mark(offset..offset.saturating_add(width.into()), at);
        found.push(at);
    }
    // Nor is one that is taken for a signed and for an unsigned number.
    let mut taken = vec![false; kernel.pointers.len()];
    for &at in found.iter().flatten() {
        overlapped[at] |= std::mem::replace(&mut taken[at], true);
    }
    for at in &mut found {
        *at = at.filter(|&at| !overlapped[at]);
    }
    found
}

/// How each expression is used.
fn uses(kernel: &KernelAccess) -> Vec<Uses> {
    let mut uses = vec![Uses::default(); kernel.expressions.len()];
    let counts = |expression: ExprId| {
        let terms = &kernel.expressions[expression.0 as usize].terms;
        let mut symbols = terms.iter().flat_map(|term| &term.symbols);
        symbols.any(|id| matches!(kernel.symbols[id.0 as usize], Symbol::Counter(_)))
    };
    let mut condition = |condition: &Condition, of_loop: bool| {
        let own = &mut uses[condition.expression.0 as usize];
        let zero = matches!(condition.relation, Relation::Equal | Relation::Differs)
            && !(of_loop && counts(condition.expression));
        own.zero |= zero;
        own.other |= !zero;
    };
    kernel.accesses.iter().flat_map(|access| &access.conditions).for_each(|c| condition(c, false));
    let ways = kernel.choices.iter().flat_map(|choice| &choice.ways);
    ways.clone().flat_map(|(_, given)| given).for_each(|c| condition(c, false));
    kernel.loops.iter().flat_map(|l| &l.again).for_each(|c| condition(c, true));
    for (source, _) in ways {
        uses[source.0 as usize].other = true;
    }
    for symbol in &kernel.symbols {
        if let Symbol::Function(_, a, b) = symbol {
            uses[a.0 as usize].other = true;
            uses[b.0 as usize].other = true;
        }
    }
    for need in kernel.expressions.iter().flat_map(|polynomial| &polynomial.needs) {
        uses[need.expression.0 as usize].need = true;
    }
    for access in &kernel.accesses {
        if let Some(address) = access.address {
            uses[address.0 as usize].address = true;
        }
        if let Length::Expression(length) = access.length {
            uses[length.0 as usize].other = true;
        }
    }
    uses
}

/// Takes words out that decide more than where something lies.
fn rule_out(
    kernel: &KernelAccess,
    candidates: &[Option<usize>],
    uses: &[Uses],
    shifts: &mut [bool],
) {
    for (polynomial, uses) in kernel.expressions.iter().zip(uses) {
        for term in &polynomial.terms {
            for symbol in &term.symbols {
                let Some(word) = candidates[symbol.0 as usize] else { continue };
                let alone = polynomial.terms.len() == 1;
                shifts[word] &= term.symbols.len() == 1
                    && !uses.other
                    && match term.coefficient {
                        1 => true,
                        -1 => alone && !uses.address && !uses.need,
                        _ => false,
                    };
            }
        }
    }
    for access in &kernel.accesses {
        let Some(address) = access.address else { continue };
        let mut found = false;
        for term in &kernel.expressions[address.0 as usize].terms {
            for word in term.symbols.iter().filter_map(|symbol| candidates[symbol.0 as usize]) {
                if access.base == Base::Pointer(word as u32) {
                    found = true;
                } else {
                    shifts[word] = false;
                }
            }
        }
        if let Base::Pointer(word) = access.base {
            shifts[word as usize] &= found;
        }
    }
    // Two of them in one expression are more than where something lies.
    for polynomial in &kernel.expressions {
        let symbols = polynomial.terms.iter().flat_map(|term| &term.symbols);
        let words = symbols.filter_map(|symbol| candidates[symbol.0 as usize]);
        if words.clone().filter(|&word| shifts[word]).count() > 1 {
            words.for_each(|word| shifts[word] = false);
        }
    }
}

/// How a word that shifts comes into an expression.
fn role(kernel: &KernelAccess, symbols: &[Option<u16>], expression: ExprId) -> Role {
    let terms = &kernel.expressions[expression.0 as usize].terms;
    let word = |id: &SymbolId| symbols[id.0 as usize];
    let found =
        terms.iter().find_map(|term| Some((term.coefficient, term.symbols.iter().find_map(word)?)));
    match found {
        None => Role::None,
        Some((-1, word)) => Role::Minus(word),
        Some((_, word)) => Role::Plus(word),
    }
}

/// The bytes that decide, in order and apart.
fn deciding(
    kernel: &KernelAccess,
    words: &[Option<u16>],
    symbols: &[Option<u16>],
) -> Box<[Range<u32>]> {
    let words = kernel.pointers.iter().zip(words).filter_map(|(word, shifts)| {
        // What a handle holds is not looked at.
        (shifts.is_none() && word.kind == WordKind::Pointer).then_some((word.block_offset, 8))
    });
    let numbers = kernel.symbols.iter().zip(symbols).filter_map(|(symbol, shifts)| match *symbol {
        Symbol::Param { offset, width, .. } if shifts.is_none() => Some((offset, width.into())),
        _ => None,
    });
    let mut ranges: Vec<_> =
        words.chain(numbers).map(|(at, size)| at..at.saturating_add(size)).collect();
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, range| {
        let meets = next.start <= range.end;
        if meets {
            range.end = range.end.max(next.end);
        }
        meets
    });
    ranges.into()
}
