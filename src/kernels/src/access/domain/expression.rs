//! Abstract values: polynomials over symbols, interned so that equality is equality of ids.
//!
//! Stage: the domain. A polynomial is the value of a register modulo 2^64 (modulo 2^32 for narrow
//! registers, where truncation is the identity). Where a narrow value is widened or compared, the
//! value has to lie in a range. The range is kept beside the polynomial as a no-wrap condition
//! ([`NoWrap`]), like the wrap predicates of LLVM's ScalarEvolution, and is checked when the launch
//! is known.
//!
//! Invariants: an id means the same for as long as its interner lives. Terms are sorted, and none
//! is zero. Where all no-wrap conditions of an expression hold, the integer that its terms add up
//! to is the value of the register as a number of its type. Nothing here knows of instructions.

mod substitute;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap as HashMap, FxHashSet as HashSet};
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use crate::access::domain::budget::Budget;

/// An interned polynomial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExprId(pub(in crate::access) u32);

/// An interned symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SymbolId(pub(in crate::access) u32);

/// Index registers of a thread and sizes of a launch; the number is the dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Index {
    Thread(u8),
    Block(u8),
    BlockSize(u8),
    GridSize(u8),
    Lane,
}

/// A function of values that is not a polynomial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    Min,
    Max,
    /// Division rounding down; the divisor is positive.
    Quotient,
    /// The remainder of [`Operator::Quotient`].
    Remainder,
    And,
    /// The upper 32 bits of a 64-bit value.
    Upper,
}

/// Set in the number of a block: its values as they come into the loop that it heads.
pub(in crate::access) const ENTRY: u32 = 1 << 31;

/// The origin of a symbol in polynomials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Symbol {
    /// `width` bytes at `offset` of the parameter block, as a signed or unsigned number.
    Param {
        offset: u32,
        width: u8,
        signed: bool,
    },
    Index(Index),
    /// The canonical induction variable of the loop that this block heads: its iterations, counted
    /// from 0.
    Induction(u32),
    /// Address of a module variable: index into the result's globals.
    Global(u32),
    /// Start of shared or local memory: no global address is made of it.
    Window,
    /// Start of the kernel's parameter block.
    ParamBlock,
    /// A value that an instruction makes in a way that is not followed; the second number tells
    /// the results of one instruction apart.
    Site(u32, u16),
    /// The φ of a register: the block, or `ENTRY` and the block for what comes into a loop
    /// from outside.
    Phi(u32, u32),
    /// The exit value of an induction variable or a φ of a loop: its value in the last iteration.
    ExitValue(SymbolId),
    Function(Operator, ExprId, ExprId),
}

/// A product of symbols with its coefficient; no symbols: the constant.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::access) struct Term {
    /// Few products have more factors, so that none needs memory of its own.
    pub(in crate::access) symbols: SmallVec<[SymbolId; 4]>,
    pub(in crate::access) coefficient: i64,
}

impl Clone for Term {
    fn clone(&self) -> Self {
        Self { symbols: SmallVec::from_slice(&self.symbols), coefficient: self.coefficient }
    }
}

/// Most polynomials are a single product.
pub(in crate::access) type Terms = SmallVec<[Term; 1]>;

/// A no-wrap condition: `low <= expression <= high`, so that `expression` taken modulo 2^64 (or
/// 2^32) is the integer that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(in crate::access) struct NoWrap {
    pub(in crate::access) expression: ExprId,
    pub(in crate::access) low: i64,
    pub(in crate::access) high: i64,
}

/// A polynomial with the no-wrap conditions under which it is the value of the register. Terms are
/// sorted, none is zero.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub(in crate::access) struct Polynomial {
    pub(in crate::access) terms: Terms,
    pub(in crate::access) no_wraps: Vec<NoWrap>,
}

/// The no-wrap conditions of both, in order.
fn union(a: &[NoWrap], b: &[NoWrap]) -> Vec<NoWrap> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    all.extend_from_slice(a);
    all.extend_from_slice(b);
    if !(a.is_empty() || b.is_empty()) {
        all.sort_unstable();
        all.dedup();
    }
    all
}

/// Polynomials larger than this are given up.
const MAX_TERMS: usize = 40;
const MAX_DEGREE: usize = 5;
const MAX_NO_WRAPS: usize = 24;
/// Functions of functions deeper than this are given up.
const MAX_DEPTH: u8 = 8;

/// Bytes that a symbol and its definition take, and an expression without its terms and with what
/// is remembered of it, roughly.
const SYMBOL_BYTES: usize = 256;
const EXPRESSION_BYTES: usize = 192;

/// The number of the constant -1 in every interner.
pub(in crate::access) const MINUS_ONE: ExprId = ExprId(0);

/// The interner: all expressions of one kernel, each once.
///
/// Passes make the same expressions again and again, so the results of operations are kept.
#[derive(Debug)]
pub(in crate::access) struct Interner {
    pub(in crate::access) budget: Budget,
    /// By their numbers.
    expressions: IndexSet<Polynomial, FxBuildHasher>,
    /// By their numbers.
    symbols: IndexSet<Symbol, FxBuildHasher>,
    /// φs of 64 bits whose lower halves are φs too: which.
    pub(in crate::access) lower_phis: HashMap<SymbolId, SymbolId>,
    /// The provenance flags of each symbol: see [`Provenance`].
    provenance: Vec<u8>,
    /// How deep functions of functions go in each symbol.
    depths: Vec<u8>,
    /// For each symbol the expression that is nothing but it; for a function, the same with the
    /// no-wrap conditions of its arguments.
    alone: Vec<[Option<ExprId>; 2]>,
    constants: HashMap<i64, ExprId>,
    sums: HashMap<(ExprId, ExprId, i64), Option<ExprId>>,
    products: HashMap<(ExprId, ExprId), Option<ExprId>>,
    with_no_wrap: HashMap<(ExprId, i64, i64), Option<ExprId>>,
}

/// Provenance flags: what occurs in an expression, functions included.
pub(in crate::access) struct Provenance;

impl Provenance {
    pub(in crate::access) const WINDOW: u8 = 1;
    pub(in crate::access) const PARAM_BLOCK: u8 = 2;
    /// Something that differs from place to place of the code, or from iteration to iteration.
    pub(in crate::access) const LOCAL: u8 = 4;
}

impl Interner {
    /// For a kernel of so many steps: what most kernels need has room from the beginning.
    pub(in crate::access) fn new(steps: usize) -> Interner {
        let hasher = FxBuildHasher;
        let mut interner = Interner {
            budget: Budget::default(),
            expressions: IndexSet::with_capacity_and_hasher(3 * steps, hasher),
            symbols: IndexSet::with_capacity_and_hasher(2 * steps, hasher),
            lower_phis: HashMap::default(),
            provenance: Vec::with_capacity(2 * steps),
            depths: Vec::with_capacity(2 * steps),
            alone: Vec::with_capacity(2 * steps),
            constants: HashMap::default(),
            sums: HashMap::with_capacity_and_hasher(steps, hasher),
            products: HashMap::default(),
            with_no_wrap: HashMap::default(),
        };
        interner.constant(-1);
        interner
    }

    /// All expressions and symbols, by their numbers.
    pub(in crate::access) fn into_parts(self) -> (Vec<Polynomial>, Vec<Symbol>) {
        (self.expressions.into_iter().collect(), self.symbols.into_iter().collect())
    }

    /// The polynomial of an id. Each look counts as work.
    pub(in crate::access) fn get(&self, id: ExprId) -> &Polynomial {
        self.budget.work(1);
        &self.expressions[id.0 as usize]
    }

    pub(in crate::access) fn symbol(&self, id: SymbolId) -> Symbol {
        self.symbols[id.0 as usize]
    }

    /// The id of a symbol, which is interned with its provenance and its depth.
    pub(in crate::access) fn symbol_id(&mut self, symbol: Symbol) -> SymbolId {
        let (at, new) = self.symbols.insert_full(symbol);
        if new {
            self.budget.memory(SYMBOL_BYTES);
            let provenance = match symbol {
                Symbol::Window => Provenance::WINDOW,
                Symbol::ParamBlock => Provenance::PARAM_BLOCK,
                Symbol::Site(..)
                | Symbol::Phi(..)
                | Symbol::Induction(_)
                | Symbol::ExitValue(_) => Provenance::LOCAL,
                Symbol::Function(_, a, b) => self.provenance(a) | self.provenance(b),
                _ => 0,
            };
            let depth = match symbol {
                Symbol::Function(_, a, b) => self.depth(a).max(self.depth(b)).saturating_add(1),
                _ => 0,
            };
            self.provenance.push(provenance);
            self.depths.push(depth);
            self.alone.push([None; 2]);
        }
        SymbolId(at as u32)
    }

    fn depth(&self, a: ExprId) -> u8 {
        let symbols = self.get(a).terms.iter().flat_map(|term| &term.symbols);
        symbols.map(|id| self.depths[id.0 as usize]).max().unwrap_or(0)
    }

    /// [`Self::function`]; `None` where it would be too large to follow.
    pub(in crate::access) fn limited(
        &mut self,
        function: Operator,
        a: ExprId,
        b: ExprId,
    ) -> Option<ExprId> {
        (self.depth(a).max(self.depth(b)) < MAX_DEPTH).then(|| self.function(function, a, b))
    }

    /// The provenance flags of an expression, its no-wrap conditions left aside.
    pub(in crate::access) fn provenance(&self, a: ExprId) -> u8 {
        let symbols = self.get(a).terms.iter().flat_map(|term| &term.symbols);
        symbols.fold(0, |all, id| all | self.provenance[id.0 as usize])
    }

    fn intern(&mut self, polynomial: Polynomial) -> ExprId {
        let bytes = EXPRESSION_BYTES
            + polynomial.terms.len() * size_of::<Term>()
            + polynomial.no_wraps.len() * size_of::<NoWrap>();
        let (at, new) = self.expressions.insert_full(polynomial);
        if new {
            self.budget.memory(bytes);
        }
        ExprId(at as u32)
    }

    /// Sorts and merges terms and no-wrap conditions; `None` where the result is too large to
    /// follow.
    pub(in crate::access) fn normal(
        &mut self,
        terms: Vec<Term>,
        no_wraps: Vec<NoWrap>,
    ) -> Option<ExprId> {
        self.normal_of(terms.into(), no_wraps)
    }

    fn normal_of(&mut self, mut terms: Terms, mut no_wraps: Vec<NoWrap>) -> Option<ExprId> {
        if !terms.is_sorted_by(|a, b| a.symbols < b.symbols) {
            terms.sort_by(|a, b| a.symbols.cmp(&b.symbols));
            terms.dedup_by(|next, term| {
                let same = next.symbols == term.symbols;
                if same {
                    term.coefficient = term.coefficient.wrapping_add(next.coefficient);
                }
                same
            });
        }
        terms.retain(|term| term.coefficient != 0);
        if !no_wraps.is_sorted_by(|a, b| a < b) {
            no_wraps.sort();
            no_wraps.dedup();
        }
        self.of_size(terms, no_wraps)
    }

    /// The polynomial of terms and no-wrap conditions that are in order; `None` where it is too
    /// large.
    fn of_size(&mut self, mut terms: Terms, no_wraps: Vec<NoWrap>) -> Option<ExprId> {
        let too_large = terms.len() > MAX_TERMS
            || no_wraps.len() > MAX_NO_WRAPS
            || terms.iter().any(|term| term.symbols.len() > MAX_DEGREE);
        if terms.len() <= 1 {
            terms.shrink_to_fit();
        }
        (!too_large).then(|| self.intern(Polynomial { terms, no_wraps }))
    }

    pub(in crate::access) fn constant(&mut self, value: i64) -> ExprId {
        if let Some(&known) = self.constants.get(&value) {
            return known;
        }
        let terms = match value {
            0 => Terms::new(),
            _ => smallvec![Term { symbols: SmallVec::new(), coefficient: value }],
        };
        let id = self.intern(Polynomial { terms, no_wraps: Vec::new() });
        self.constants.insert(value, id);
        id
    }

    /// The expression that is nothing but a symbol.
    pub(in crate::access) fn of(&mut self, symbol: Symbol) -> ExprId {
        let id = self.symbol_id(symbol);
        self.alone(id)
    }

    /// The expression that is nothing but a symbol.
    pub(in crate::access) fn alone(&mut self, id: SymbolId) -> ExprId {
        if let Some(known) = self.alone[id.0 as usize][0] {
            return known;
        }
        let terms = smallvec![Term { symbols: smallvec![id], coefficient: 1 }];
        let alone = self.intern(Polynomial { terms, no_wraps: Vec::new() });
        self.alone[id.0 as usize][0] = Some(alone);
        alone
    }

    /// An operator that is applied to two expressions, with the no-wrap conditions of both.
    pub(in crate::access) fn function(
        &mut self,
        function: Operator,
        a: ExprId,
        b: ExprId,
    ) -> ExprId {
        let id = self.symbol_id(Symbol::Function(function, a, b));
        if let Some(known) = self.alone[id.0 as usize][1] {
            return known;
        }
        // The no-wrap conditions of the arguments are those of the result.
        let no_wraps = union(&self.get(a).no_wraps, &self.get(b).no_wraps);
        let terms = smallvec![Term { symbols: smallvec![id], coefficient: 1 }];
        let made = self.intern(Polynomial { terms, no_wraps });
        self.alone[id.0 as usize][1] = Some(made);
        made
    }

    /// The number that an expression is, its no-wrap conditions left aside.
    pub(in crate::access) fn as_constant(&self, id: ExprId) -> Option<i64> {
        match &self.get(id).terms[..] {
            [] => Some(0),
            [term] if term.symbols.is_empty() => Some(term.coefficient),
            _ => None,
        }
    }

    /// Whether the expression is a constant that is not negative.
    pub(in crate::access) fn is_true(&self, id: ExprId) -> bool {
        self.as_constant(id).is_some_and(|value| value >= 0)
    }

    /// `a + factor * b`, where that is a number; no-wrap conditions are left aside.
    pub(in crate::access) fn constant_sum(&self, a: ExprId, b: ExprId, factor: i64) -> Option<i64> {
        let parts = |of: ExprId| match &self.get(of).terms[..] {
            [first, rest @ ..] if first.symbols.is_empty() => (first.coefficient, rest),
            all => (0, all),
        };
        let ((x, left), (y, right)) = (parts(a), parts(b));
        let gone = |(s, t): (&Term, &Term)| {
            let back = t.coefficient.checked_mul(-factor);
            back == Some(s.coefficient) && s.symbols == t.symbols
        };
        (left.len() == right.len() && left.iter().zip(right).all(gone))
            .then(|| x.checked_add(y.checked_mul(factor)?))
            .flatten()
    }

    /// The symbol, where the expression is exactly one.
    pub(in crate::access) fn as_symbol(&self, id: ExprId) -> Option<Symbol> {
        match &self.get(id).terms[..] {
            [term] if term.coefficient == 1 && term.symbols.len() == 1 => {
                Some(self.symbol(term.symbols[0]))
            }
            _ => None,
        }
    }

    /// The number of that symbol.
    pub(in crate::access) fn lone_symbol(&self, id: ExprId) -> Option<SymbolId> {
        match &self.get(id).terms[..] {
            [term] if term.coefficient == 1 && term.symbols.len() == 1 => Some(term.symbols[0]),
            _ => None,
        }
    }

    /// `a + factor * b`.
    pub(in crate::access) fn add(&mut self, a: ExprId, b: ExprId, factor: i64) -> Option<ExprId> {
        let key = (a, b, factor);
        if let Some(&known) = self.sums.get(&key) {
            return known;
        }
        let (left, right) = (self.get(a), self.get(b));
        let mut terms = Terms::with_capacity(left.terms.len() + right.terms.len());
        let mut rest = left.terms.iter().peekable();
        for term in &right.terms {
            while let Some(before) = rest.next_if(|before| before.symbols < term.symbols) {
                terms.push(before.clone());
            }
            let same = rest.next_if(|other| other.symbols == term.symbols);
            let own = same.map_or(0, |other| other.coefficient);
            let coefficient = own.wrapping_add(term.coefficient.wrapping_mul(factor));
            if coefficient != 0 {
                terms.push(Term { coefficient, ..term.clone() });
            }
        }
        terms.extend(rest.cloned());
        let no_wraps = union(&left.no_wraps, &right.no_wraps);
        let sum = self.of_size(terms, no_wraps);
        self.sums.insert(key, sum);
        sum
    }

    /// `a + by`; `None` where the result is too large to follow.
    pub(in crate::access) fn offset(&mut self, a: ExprId, by: i64) -> Option<ExprId> {
        let constant = self.constant(by);
        self.add(a, constant, 1)
    }

    /// `a * b`; `None` where the result is too large to follow.
    pub(in crate::access) fn multiply(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.products.get(&key) {
            return known;
        }
        let (left, right) = (self.get(a), self.get(b));
        let mut terms = Terms::with_capacity(left.terms.len() * right.terms.len());
        for x in &left.terms {
            for y in &right.terms {
                let mut symbols = SmallVec::from_slice(&x.symbols);
                symbols.extend_from_slice(&y.symbols);
                symbols.sort();
                let coefficient = x.coefficient.wrapping_mul(y.coefficient);
                terms.push(Term { symbols, coefficient });
            }
        }
        let no_wraps = union(&left.no_wraps, &right.no_wraps);
        let product = self.normal_of(terms, no_wraps);
        self.products.insert(key, product);
        product
    }

    /// `a`, with the no-wrap condition that it lies in `low..=high`.
    pub(in crate::access) fn with_no_wrap(
        &mut self,
        a: ExprId,
        low: i64,
        high: i64,
    ) -> Option<ExprId> {
        if let Some(value) = self.as_constant(a) {
            return (low <= value && value <= high).then_some(a);
        }
        // A narrow parameter is a number of its own type.
        if let Some(Symbol::Param { width, signed, .. }) = self.as_symbol(a)
            && width < 8
        {
            let top = 1i64 << (8 * width - u8::from(signed));
            if low <= if signed { -top } else { 0 } && top - 1 <= high {
                return Some(a);
            }
        }
        if let Some(Symbol::Index(_)) = self.as_symbol(a)
            && low <= 0
            && high >= i64::from(i32::MAX)
        {
            return Some(a);
        }
        let key = (a, low, high);
        if let Some(&known) = self.with_no_wrap.get(&key) {
            return known;
        }
        let bare = self.bare(a);
        let Polynomial { terms, no_wraps } = self.get(a);
        let (terms, no_wraps) =
            (terms.clone(), union(no_wraps, &[NoWrap { expression: bare, low, high }]));
        let with_no_wrap = self.of_size(terms, no_wraps);
        self.with_no_wrap.insert(key, with_no_wrap);
        with_no_wrap
    }

    /// `a` without its no-wrap conditions.
    pub(in crate::access) fn bare(&mut self, a: ExprId) -> ExprId {
        let Polynomial { terms, no_wraps } = self.get(a);
        if no_wraps.is_empty() {
            return a;
        }
        let terms = terms.clone();
        self.intern(Polynomial { terms, no_wraps: Vec::new() })
    }

    /// `a` with the no-wrap conditions of `b` too.
    pub(in crate::access) fn with_no_wraps_of(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        let (Polynomial { terms, no_wraps }, more) = (self.get(a), &self.get(b).no_wraps);
        if more.iter().all(|no_wrap| no_wraps.contains(no_wrap)) {
            return (no_wraps.len() <= MAX_NO_WRAPS).then_some(a);
        }
        let (terms, no_wraps) = (terms.clone(), union(no_wraps, more));
        self.of_size(terms, no_wraps)
    }

    /// Whether a symbol differs from place to place, or from iteration to iteration.
    pub(in crate::access) fn local(&self, id: SymbolId) -> bool {
        self.provenance[id.0 as usize] & Provenance::LOCAL != 0
    }

    /// Whether a symbol that `wanted` names occurs in `a`, inside functions too.
    pub(in crate::access) fn mentions(&self, a: ExprId, wanted: &impl Fn(Symbol) -> bool) -> bool {
        self.mentions_in(a, wanted, &mut HashSet::default())
    }

    fn mentions_in(
        &self,
        a: ExprId,
        wanted: &impl Fn(Symbol) -> bool,
        seen: &mut HashSet<SymbolId>,
    ) -> bool {
        self.get(a).terms.iter().flat_map(|term| &term.symbols).any(|&id| {
            let symbol = self.symbol(id);
            wanted(symbol)
                || matches!(symbol, Symbol::Function(_, x, y)
                    if seen.insert(id)
                        && (self.mentions_in(x, wanted, seen)
                            || self.mentions_in(y, wanted, seen)))
        })
    }
}
