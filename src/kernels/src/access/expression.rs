//! Symbolic integers: polynomials over symbols, interned so that equality is equality of ids.
//!
//! A polynomial stands for a register's value modulo 2^64 (or 2^32 for narrow registers, where
//! truncation is the identity). Where a narrow value is widened or compared, the meaning needs it
//! to lie in a range; such needs are kept beside the polynomial as [`Need`]s and are checked when
//! the launch is known. Nothing here knows of instructions.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use serde::{Deserialize, Serialize};

/// An interned polynomial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExprId(pub(super) u32);

/// An interned symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SymbolId(pub(super) u32);

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
pub enum Function {
    Min,
    Max,
    /// Division rounding down; the divisor is positive.
    Quotient,
    /// What [`Function::Quotient`] leaves.
    Remainder,
    And,
    /// The upper 32 bits of a 64-bit value.
    Upper,
}

/// Set in the number of a block: its values as they come into the loop that it heads.
pub(super) const ENTRY: u32 = 1 << 31;

/// What a polynomial is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Symbol {
    /// `width` bytes at `offset` of the parameter block, as a signed or unsigned number.
    Param {
        offset: u32,
        width: u8,
        signed: bool,
    },
    Index(Index),
    /// Rounds of the loop that is headed by this block, counted from 0.
    Counter(u32),
    /// Address of a module variable: index into the result's globals.
    Global(u32),
    /// Start of shared or local memory: no global address is made of it.
    Window,
    /// Start of the kernel's parameter block.
    ParamBlock,
    /// A value that an instruction makes in a way that is not followed; the second number tells
    /// the results of one instruction apart.
    Site(u32, u16),
    /// A register where paths meet: the block, or [`ENTRY`] and the block for what comes into a loop
    /// from outside.
    Merge(u32, u32),
    /// What a counter or a choice of a loop was in its last round, behind the loop.
    Left(SymbolId),
    Function(Function, ExprId, ExprId),
}

/// A product of symbols with its coefficient; no symbols: the constant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Term {
    pub(super) symbols: Vec<SymbolId>,
    pub(super) coefficient: i64,
}

/// `low <= expression <= high` is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Need {
    pub(super) expression: ExprId,
    pub(super) low: i64,
    pub(super) high: i64,
}

/// A polynomial with what it needs to mean what it says. Terms are sorted, none is zero.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub(super) struct Polynomial {
    pub(super) terms: Vec<Term>,
    pub(super) needs: Vec<Need>,
}

/// Polynomials larger than this are given up.
const MAX_TERMS: usize = 40;
const MAX_DEGREE: usize = 5;
const MAX_NEEDS: usize = 24;
/// Functions of functions deeper than this are given up.
const MAX_DEPTH: u8 = 8;

/// The number of the constant -1 in every pool.
pub(super) const MINUS_ONE: ExprId = ExprId(0);

/// All expressions of one kernel.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) expressions: Vec<Polynomial>,
    pub(super) symbols: Vec<Symbol>,
    expression_ids: HashMap<Polynomial, ExprId>,
    symbol_ids: HashMap<Symbol, SymbolId>,
    /// Choices of 64 bits whose lower halves are choices too: which.
    pub(super) lower_choices: HashMap<SymbolId, SymbolId>,
    /// What each symbol is made of: see [`Makings`].
    makings: Vec<u8>,
    /// How deep functions of functions go in each symbol.
    depths: Vec<u8>,
}

/// What occurs in an expression, functions included, as bits.
pub(super) struct Makings;

impl Makings {
    pub(super) const WINDOW: u8 = 1;
    pub(super) const PARAM_BLOCK: u8 = 2;
    /// Something that differs from place to place of the code, or from round to round.
    pub(super) const LOCAL: u8 = 4;
}

impl Pool {
    pub(super) fn new() -> Pool {
        let mut pool = Pool {
            expressions: Vec::new(),
            symbols: Vec::new(),
            expression_ids: HashMap::default(),
            symbol_ids: HashMap::default(),
            lower_choices: HashMap::default(),
            makings: Vec::new(),
            depths: Vec::new(),
        };
        pool.constant(-1);
        pool
    }

    pub(super) fn get(&self, id: ExprId) -> &Polynomial {
        &self.expressions[id.0 as usize]
    }

    pub(super) fn symbol(&self, id: SymbolId) -> Symbol {
        self.symbols[id.0 as usize]
    }

    pub(super) fn symbol_id(&mut self, symbol: Symbol) -> SymbolId {
        if let Some(&id) = self.symbol_ids.get(&symbol) {
            return id;
        }
        let makings = match symbol {
            Symbol::Window => Makings::WINDOW,
            Symbol::ParamBlock => Makings::PARAM_BLOCK,
            Symbol::Site(..) | Symbol::Merge(..) | Symbol::Counter(_) | Symbol::Left(_) => {
                Makings::LOCAL
            }
            Symbol::Function(_, a, b) => self.makings(a) | self.makings(b),
            _ => 0,
        };
        let depth = match symbol {
            Symbol::Function(_, a, b) => self.depth(a).max(self.depth(b)).saturating_add(1),
            _ => 0,
        };
        self.depths.push(depth);
        let id = SymbolId(self.symbols.len() as u32);
        self.symbols.push(symbol);
        self.makings.push(makings);
        self.symbol_ids.insert(symbol, id);
        id
    }

    fn depth(&self, a: ExprId) -> u8 {
        let symbols = self.get(a).terms.iter().flat_map(|term| &term.symbols);
        symbols.map(|id| self.depths[id.0 as usize]).max().unwrap_or(0)
    }

    /// [`Self::function`]; `None` where it would be too large to follow.
    pub(super) fn limited(&mut self, function: Function, a: ExprId, b: ExprId) -> Option<ExprId> {
        (self.depth(a).max(self.depth(b)) < MAX_DEPTH).then(|| self.function(function, a, b))
    }

    /// What occurs in an expression, its needs left aside.
    pub(super) fn makings(&self, a: ExprId) -> u8 {
        let symbols = self.get(a).terms.iter().flat_map(|term| &term.symbols);
        symbols.fold(0, |all, id| all | self.makings[id.0 as usize])
    }

    fn intern(&mut self, polynomial: Polynomial) -> ExprId {
        if let Some(&id) = self.expression_ids.get(&polynomial) {
            return id;
        }
        let id = ExprId(self.expressions.len() as u32);
        self.expressions.push(polynomial.clone());
        self.expression_ids.insert(polynomial, id);
        id
    }

    /// Sorts and merges terms and needs; `None` where the result is too large to follow.
    pub(super) fn normal(&mut self, mut terms: Vec<Term>, mut needs: Vec<Need>) -> Option<ExprId> {
        terms.sort_by(|a, b| a.symbols.cmp(&b.symbols));
        let mut out: Vec<Term> = Vec::with_capacity(terms.len());
        for term in terms {
            match out.last_mut() {
                Some(last) if last.symbols == term.symbols => {
                    last.coefficient = last.coefficient.wrapping_add(term.coefficient);
                }
                _ => out.push(term),
            }
        }
        out.retain(|term| term.coefficient != 0);
        needs.sort();
        needs.dedup();
        if out.len() > MAX_TERMS
            || needs.len() > MAX_NEEDS
            || out.iter().any(|term| term.symbols.len() > MAX_DEGREE)
        {
            return None;
        }
        Some(self.intern(Polynomial { terms: out, needs }))
    }

    pub(super) fn constant(&mut self, value: i64) -> ExprId {
        let terms = match value {
            0 => Vec::new(),
            _ => vec![Term { symbols: Vec::new(), coefficient: value }],
        };
        self.intern(Polynomial { terms, needs: Vec::new() })
    }

    pub(super) fn of(&mut self, symbol: Symbol) -> ExprId {
        let id = self.symbol_id(symbol);
        let terms = vec![Term { symbols: vec![id], coefficient: 1 }];
        self.intern(Polynomial { terms, needs: Vec::new() })
    }

    pub(super) fn function(&mut self, function: Function, a: ExprId, b: ExprId) -> ExprId {
        // What the arguments need, the result needs.
        let mut needs = self.get(a).needs.clone();
        needs.extend_from_slice(&self.get(b).needs);
        let id = self.symbol_id(Symbol::Function(function, a, b));
        let terms = vec![Term { symbols: vec![id], coefficient: 1 }];
        needs.sort();
        needs.dedup();
        self.intern(Polynomial { terms, needs })
    }

    pub(super) fn as_constant(&self, id: ExprId) -> Option<i64> {
        match &self.get(id).terms[..] {
            [] => Some(0),
            [term] if term.symbols.is_empty() => Some(term.coefficient),
            _ => None,
        }
    }

    /// The symbol, where the expression is exactly one.
    pub(super) fn as_symbol(&self, id: ExprId) -> Option<Symbol> {
        match &self.get(id).terms[..] {
            [term] if term.coefficient == 1 && term.symbols.len() == 1 => {
                Some(self.symbol(term.symbols[0]))
            }
            _ => None,
        }
    }

    /// The number of that symbol.
    pub(super) fn lone_symbol(&self, id: ExprId) -> Option<SymbolId> {
        match &self.get(id).terms[..] {
            [term] if term.coefficient == 1 && term.symbols.len() == 1 => Some(term.symbols[0]),
            _ => None,
        }
    }

    /// `a + factor * b`.
    pub(super) fn add(&mut self, a: ExprId, b: ExprId, factor: i64) -> Option<ExprId> {
        let (left, right) = (self.get(a), self.get(b));
        let mut terms = left.terms.clone();
        terms.extend(right.terms.iter().map(|term| Term {
            symbols: term.symbols.clone(),
            coefficient: term.coefficient.wrapping_mul(factor),
        }));
        let needs = left.needs.iter().chain(&right.needs).copied().collect();
        self.normal(terms, needs)
    }

    pub(super) fn offset(&mut self, a: ExprId, by: i64) -> Option<ExprId> {
        let constant = self.constant(by);
        self.add(a, constant, 1)
    }

    pub(super) fn multiply(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        let (left, right) = (self.get(a), self.get(b));
        let mut terms = Vec::with_capacity(left.terms.len() * right.terms.len());
        for x in &left.terms {
            for y in &right.terms {
                let mut symbols = x.symbols.clone();
                symbols.extend_from_slice(&y.symbols);
                symbols.sort();
                let coefficient = x.coefficient.wrapping_mul(y.coefficient);
                terms.push(Term { symbols, coefficient });
            }
        }
        let needs = left.needs.iter().chain(&right.needs).copied().collect();
        self.normal(terms, needs)
    }

    /// `a`, with the need that it lies in `low..=high`.
    pub(super) fn needing(&mut self, a: ExprId, low: i64, high: i64) -> Option<ExprId> {
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
        let bare = self.bare(a);
        let polynomial = self.get(a);
        let terms = polynomial.terms.clone();
        let mut needs = polynomial.needs.clone();
        needs.push(Need { expression: bare, low, high });
        self.normal(terms, needs)
    }

    /// `a` without its needs.
    pub(super) fn bare(&mut self, a: ExprId) -> ExprId {
        let terms = self.get(a).terms.clone();
        self.intern(Polynomial { terms, needs: Vec::new() })
    }

    /// `a` with the needs of `b` too.
    pub(super) fn with_needs_of(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        let mut needs = self.get(a).needs.clone();
        needs.extend_from_slice(&self.get(b).needs);
        let terms = self.get(a).terms.clone();
        self.normal(terms, needs)
    }

    /// `a` with every occurrence of some symbols replaced, inside functions and needs too.
    /// `None` from `replace` keeps the symbol.
    pub(super) fn substitute(
        &mut self,
        a: ExprId,
        replace: &mut impl FnMut(SymbolId) -> Option<ExprId>,
    ) -> Option<ExprId> {
        self.substitute_in(a, replace, &mut HashMap::default())
    }

    /// As [`Pool::substitute`]. Parts are shared, so each is worked on once: `done` holds what this
    /// very replacement has made so far.
    pub(super) fn substitute_in(
        &mut self,
        a: ExprId,
        replace: &mut impl FnMut(SymbolId) -> Option<ExprId>,
        done: &mut HashMap<ExprId, Option<ExprId>>,
    ) -> Option<ExprId> {
        if let Some(&known) = done.get(&a) {
            return known;
        }
        let result = self.substitute_new(a, replace, done);
        done.insert(a, result);
        result
    }

    fn substitute_new(
        &mut self,
        a: ExprId,
        replace: &mut impl FnMut(SymbolId) -> Option<ExprId>,
        done: &mut HashMap<ExprId, Option<ExprId>>,
    ) -> Option<ExprId> {
        let Polynomial { terms, needs } = self.get(a).clone();
        let mut same = true;
        for &id in terms.iter().flat_map(|term| &term.symbols) {
            same &= replace(id).is_none();
            if let (true, Symbol::Function(_, x, y)) = (same, self.symbol(id)) {
                same = self.substitute_in(x, replace, done)? == x
                    && self.substitute_in(y, replace, done)? == y;
            }
        }
        for need in &needs {
            same = same && self.substitute_in(need.expression, replace, done)? == need.expression;
        }
        if same {
            return Some(a);
        }
        let (mut all, mut wanted) = (Vec::with_capacity(terms.len()), Vec::new());
        for term in terms {
            let mut product = None;
            for (at, &symbol) in term.symbols.iter().enumerate() {
                let factor = match (replace(symbol), self.symbol(symbol)) {
                    (Some(expression), _) => Some(expression),
                    (None, Symbol::Function(function, x, y)) => {
                        let new_x = self.substitute_in(x, replace, done)?;
                        let new_y = self.substitute_in(y, replace, done)?;
                        ((new_x, new_y) != (x, y)).then(|| self.function(function, new_x, new_y))
                    }
                    _ => None,
                };
                product = match (product, factor) {
                    (None, None) => None,
                    (None, Some(factor)) => {
                        // What stands in front of the first that changes has not changed.
                        let symbols = term.symbols[..at].to_vec();
                        let front = Term { symbols, coefficient: term.coefficient };
                        let front = self.normal(vec![front], Vec::new())?;
                        Some(self.multiply(front, factor)?)
                    }
                    (Some(product), factor) => {
                        let factor = factor.unwrap_or_else(|| self.of(self.symbol(symbol)));
                        Some(self.multiply(product, factor)?)
                    }
                };
            }
            match product {
                None => all.push(term),
                Some(product) => {
                    let Polynomial { terms, needs } = self.get(product);
                    all.extend_from_slice(terms);
                    wanted.extend_from_slice(needs);
                }
            }
        }
        for need in needs {
            let expression = self.substitute_in(need.expression, replace, done)?;
            wanted.extend_from_slice(&self.get(expression).needs);
            wanted.push(Need { expression: self.bare(expression), ..need });
        }
        self.normal(all, wanted)
    }

    /// Whether a symbol differs from place to place, or from round to round.
    pub(super) fn local(&self, id: SymbolId) -> bool {
        self.makings[id.0 as usize] & Makings::LOCAL != 0
    }

    /// Whether a symbol that `wanted` names occurs in `a`, inside functions too.
    pub(super) fn mentions(&self, a: ExprId, wanted: &impl Fn(Symbol) -> bool) -> bool {
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
