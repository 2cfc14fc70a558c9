//! Translation invariance: the pointers that are translatable bases, and the bytes in the
//! memoisation key.
//!
//! Stage: the launch, its plan. Invariant: a pointer that any expression uses otherwise than as a
//! base is in the key.

use std::ops::Range;

use super::Role;
use crate::access::domain::condition::{Condition, Relation};
use crate::access::domain::expression::{ExprId, Operator, Symbol, SymbolId};
use crate::access::summary::result::{Base, KernelAccess, Length};
use streamsan_model::WordKind;

/// How an expression is used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Uses {
    /// Used as the address of an access.
    address: bool,
    /// In a condition that asks whether it is zero, and not for the iterations of a loop.
    zero: bool,
    /// Used as the subject of a no-wrap condition.
    no_wrap: bool,
    /// With all but these bits masked.
    bits: u32,
    /// In any other way.
    other: bool,
}

/// Bits of a translatable pointer that may be in the key: those below.
const MOST_KEY_BITS: i64 = 1 << 12;

/// The lowest bits that are used of lower halves of words of which only some of the lowest bits are
/// used. Machine code tests in this way whether a pointer is aligned.
pub(super) fn bits(kernel: &KernelAccess, uses: &[Uses]) -> Vec<Option<u32>> {
    let half = |symbol: &Symbol| match *symbol {
        Symbol::Param { offset, width: 4, .. } => {
            let at = kernel.pointers.binary_search_by_key(&offset, |word| word.block_offset);
            at.is_ok().then_some(0)
        }
        _ => None,
    };
    let mut bits: Vec<Option<u32>> = kernel.symbols.iter().map(half).collect();
    // A word that is used as a number too is one like any other.
    for (polynomial, uses) in kernel.expressions.iter().zip(uses) {
        if uses.address || uses.zero || uses.no_wrap || uses.other {
            for symbol in polynomial.terms.iter().flat_map(|term| &term.symbols) {
                bits[symbol.0 as usize] = None;
            }
        }
    }
    for (polynomial, uses) in kernel.expressions.iter().zip(uses) {
        let is_half = |id: &&SymbolId| bits[id.0 as usize].is_some();
        let symbols = polynomial.terms.iter().flat_map(|term| &term.symbols);
        let halves: Vec<SymbolId> = symbols.filter(is_half).copied().collect();
        let products = polynomial.terms.iter().filter(|term| term.symbols.len() > 1);
        let in_product = products.flat_map(|term| &term.symbols).any(|id| is_half(&id));
        let one = halves.len() == 1 && !in_product;
        for half in halves {
            let own = &mut bits[half.0 as usize];
            *own = own.filter(|_| one).map(|own| own | uses.bits);
        }
    }
    bits
}

/// The translatable words with some bits in the key, and those bits, by the symbol of the lower
/// half.
pub(super) fn key_bits(
    kernel: &KernelAccess,
    words: &[Option<u16>],
    bits: &[Option<u32>],
) -> Vec<Option<(u32, u32)>> {
    let of = |(symbol, bits): (&Symbol, &Option<u32>)| {
        let Symbol::Param { offset, .. } = *symbol else { return None };
        let at = kernel.pointers.binary_search_by_key(&offset, |word| word.block_offset).ok()?;
        words[at].and((*bits).map(|bits| (offset, bits)))
    };
    kernel.symbols.iter().zip(bits).map(of).collect()
}

/// The pointer word that each symbol is the whole of. One that something else overlaps is none,
/// but for its lower half where only some of its bits are used.
pub(super) fn candidates(kernel: &KernelAccess, bits: &[Option<u32>]) -> Vec<Option<usize>> {
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
    for (symbol, bits) in kernel.symbols.iter().zip(bits) {
        let Symbol::Param { offset, width, .. } = *symbol else {
            found.push(None);
            continue;
        };
        let at = kernel.pointers.binary_search_by_key(&offset, |word| word.block_offset).ok();
        if at.is_some() && width == 4 && bits.is_some() {
            found.push(None);
            continue;
        }
        let at = at.filter(|&at| width == 8 && kernel.pointers[at].kind == WordKind::Pointer);
        mark(offset..offset.saturating_add(width.into()), at);
        found.push(at);
    }
    // A pointer that the kernel treats as a signed and as an unsigned number is not translatable
    // either.
    let mut taken = vec![false; kernel.pointers.len()];
    for &at in found.iter().flatten() {
        overlapped[at] |= std::mem::replace(&mut taken[at], true);
    }
    for at in &mut found {
        *at = at.filter(|&at| !overlapped[at]);
    }
    found
}

/// The bits that a function leaves of a number, where they are some of the lowest ones.
fn masked(kernel: &KernelAccess, function: Operator, b: ExprId) -> Option<u32> {
    let number = match &kernel.expressions[b.0 as usize].terms[..] {
        [term] if term.symbols.is_empty() => term.coefficient,
        _ => return None,
    };
    let bits = match function {
        Operator::And => number,
        Operator::Remainder if number > 0 && number & (number - 1) == 0 => number - 1,
        _ => return None,
    };
    // Lower bits come into higher ones where something is added.
    (1..MOST_KEY_BITS).contains(&bits).then(|| (bits as u32 + 1).next_power_of_two() - 1)
}

/// How each expression is used.
pub(super) fn uses(kernel: &KernelAccess) -> Vec<Uses> {
    let mut uses = vec![Uses::default(); kernel.expressions.len()];
    let counts = |expression: ExprId| {
        let terms = &kernel.expressions[expression.0 as usize].terms;
        let mut symbols = terms.iter().flat_map(|term| &term.symbols);
        symbols.any(|id| matches!(kernel.symbols[id.0 as usize], Symbol::Induction(_)))
    };
    let mut condition = |condition: &Condition, of_loop: bool| {
        let own = &mut uses[condition.expression.0 as usize];
        let zero = matches!(condition.relation, Relation::Equal | Relation::Differs)
            && !(of_loop && counts(condition.expression));
        own.zero |= zero;
        own.other |= !zero;
    };
    kernel.accesses.iter().flat_map(|access| &access.conditions).for_each(|c| condition(c, false));
    let inputs = kernel.gated_phis.iter().flat_map(|phi| &phi.inputs);
    inputs.clone().flat_map(|(_, gates)| gates).for_each(|c| condition(c, false));
    kernel.loops.iter().flat_map(|l| &l.back_edge).for_each(|c| condition(c, true));
    for (source, _) in inputs {
        uses[source.0 as usize].other = true;
    }
    for symbol in &kernel.symbols {
        if let Symbol::Function(function, a, b) = *symbol {
            let own = &mut uses[a.0 as usize];
            match masked(kernel, function, b) {
                Some(bits) => own.bits |= bits,
                None => own.other = true,
            }
            uses[b.0 as usize].other = true;
        }
    }
    for no_wrap in kernel.expressions.iter().flat_map(|polynomial| &polynomial.no_wraps) {
        uses[no_wrap.expression.0 as usize].no_wrap = true;
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

/// Takes words out that are not translation invariant.
pub(super) fn rule_out(
    kernel: &KernelAccess,
    candidates: &[Option<usize>],
    uses: &[Uses],
    translates: &mut [bool],
) {
    for (polynomial, uses) in kernel.expressions.iter().zip(uses) {
        for term in &polynomial.terms {
            for symbol in &term.symbols {
                let Some(word) = candidates[symbol.0 as usize] else { continue };
                let alone = polynomial.terms.len() == 1;
                translates[word] &= term.symbols.len() == 1
                    && !uses.other
                    && uses.bits == 0
                    && match term.coefficient {
                        1 => true,
                        -1 => alone && !uses.address && !uses.no_wrap,
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
                    translates[word] = false;
                }
            }
        }
        if let Base::Pointer(word) = access.base {
            translates[word as usize] &= found;
        }
    }
    // An expression of two of them is not translation invariant.
    for polynomial in &kernel.expressions {
        let symbols = polynomial.terms.iter().flat_map(|term| &term.symbols);
        let words = symbols.filter_map(|symbol| candidates[symbol.0 as usize]);
        if words.clone().filter(|&word| translates[word]).count() > 1 {
            words.for_each(|word| translates[word] = false);
        }
    }
}

/// How a translatable word comes into an expression.
pub(super) fn role(
    kernel: &KernelAccess,
    symbols: &[Option<u16>],
    halves: &[Option<u16>],
    expression: ExprId,
) -> Role {
    let terms = &kernel.expressions[expression.0 as usize].terms;
    let find = |words: &[Option<u16>]| {
        let word = |id: &SymbolId| words[id.0 as usize];
        terms.iter().find_map(|term| Some((term.coefficient, term.symbols.iter().find_map(word)?)))
    };
    match (find(symbols), find(halves)) {
        (Some((-1, word)), _) => Role::Minus(word),
        (Some((_, word)), _) => Role::Plus(word),
        (None, Some((_, word))) => Role::Bits(word),
        (None, None) => Role::None,
    }
}

/// The bytes that are in the key, in order and apart.
pub(super) fn key_ranges(
    kernel: &KernelAccess,
    words: &[Option<u16>],
    symbols: &[Option<u16>],
    key_bits: &[Option<(u32, u32)>],
) -> Box<[Range<u32>]> {
    let words = kernel.pointers.iter().zip(words).filter_map(|(word, translates)| {
        // The target of a handle is not read.
        (translates.is_none() && word.kind == WordKind::Pointer).then_some((word.block_offset, 8))
    });
    let is_in_key =
        symbols.iter().zip(key_bits).map(|(word, bits)| word.is_none() && bits.is_none());
    let numbers =
        kernel.symbols.iter().zip(is_in_key).filter_map(|(symbol, is_in_key)| match *symbol {
            Symbol::Param { offset, width, .. } if is_in_key => Some((offset, width.into())),
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
