//! Conditions on expressions, what they imply, and predicates.
//!
//! Stage: the domain. A predicate register is represented by the conditions that its being true
//! implies, and by those that its being false implies.
//!
//! Invariant: an [`Implied`] is necessary: its conditions hold where the predicate has the value. A
//! condition may be left out of it, but not without clearing `complete`, which says that the
//! conditions are sufficient too. A condition whose no-wrap conditions fail implies nothing.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::access::domain::expression::{ExprId, Interner, MINUS_ONE, Operator};
use crate::access::domain::path_condition::Conditions;

/// How an expression relates to zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(in crate::access) enum Relation {
    AtLeast,
    Equal,
    Differs,
}

/// `expression >= 0`, `== 0` or `!= 0`. Where a no-wrap condition of the expression fails, the
/// condition says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(in crate::access) struct Condition {
    pub(in crate::access) expression: ExprId,
    pub(in crate::access) relation: Relation,
}

const CONTRADICTION: Condition = Condition { expression: MINUS_ONE, relation: Relation::AtLeast };

impl Condition {
    /// Whether the condition is a contradiction, if its no-wrap conditions hold.
    pub(in crate::access) fn is_contradiction(&self, interner: &Interner) -> bool {
        self.relation == Relation::AtLeast
            && interner.as_constant(self.expression).is_some_and(|value| value < 0)
    }

    /// Whether two conditions contradict each other, if their no-wrap conditions hold.
    pub(in crate::access) fn contradicts(&self, other: &Condition, interner: &Interner) -> bool {
        let sum = |factor| interner.constant_sum(self.expression, other.expression, factor);
        let either = |wanted: fn(i64) -> bool| [1, -1].into_iter().filter_map(sum).any(wanted);
        match (self.relation, other.relation) {
            (Relation::AtLeast, Relation::AtLeast) => sum(1).is_some_and(|sum| sum < 0),
            (Relation::AtLeast, Relation::Equal) => either(|sum| sum < 0),
            (Relation::Equal, Relation::AtLeast) => other.contradicts(self, interner),
            (Relation::Equal, Relation::Equal) => either(|sum| sum != 0),
            (Relation::Equal, Relation::Differs) | (Relation::Differs, Relation::Equal) => {
                either(|sum| sum == 0)
            }
            _ => false,
        }
    }
}

/// The conditions that a truth implies. `complete` marks that they are sufficient for it too.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(in crate::access) struct Implied {
    pub(in crate::access) conditions: Conditions,
    pub(in crate::access) complete: bool,
}

/// Conditions of one side of "either these or those" at most.
const MAX_SIDE: usize = 4;

impl Implied {
    /// The conditions that "this or the other" implies.
    fn either(&self, other: &Implied, interner: &mut Interner) -> Implied {
        match (self.contradicting_expression(interner), other.contradicting_expression(interner)) {
            (Some(no_wraps), _) => return other.with_no_wraps_of(no_wraps, interner),
            (_, Some(no_wraps)) => return self.with_no_wraps_of(no_wraps, interner),
            _ if self.is_tautology(interner) => return self.clone(),
            _ if other.is_tautology(interner) => return other.clone(),
            _ => {}
        }
        let one = |interner: &mut Interner| {
            // The larger of two is not negative where one of them is not.
            let (a, b) = (self.as_one(interner)?, other.as_one(interner)?);
            let expression = interner.limited(Operator::Max, a.min(b), a.max(b))?;
            Some(Condition { expression, relation: Relation::AtLeast })
        };
        let conditions: Conditions = one(interner).into_iter().collect();
        let whole = |known: &Implied| known.complete && known.conditions.len() <= MAX_SIDE;
        let complete = !conditions.is_empty() && whole(self) && whole(other);
        Implied { conditions, complete }
    }

    /// An expression that is not negative where all conditions hold.
    fn as_one(&self, interner: &mut Interner) -> Option<ExprId> {
        let mut all: Option<ExprId> = None;
        for condition in self.conditions.iter().take(MAX_SIDE) {
            let plain = condition.expression;
            let own = match condition.relation {
                Relation::AtLeast => plain,
                Relation::Equal => {
                    let zero = interner.constant(0);
                    let negated = interner.add(zero, plain, -1)?;
                    interner.limited(Operator::Min, plain.min(negated), plain.max(negated))?
                }
                Relation::Differs => {
                    let above = interner.offset(plain, -1)?;
                    let below = interner.add(MINUS_ONE, plain, -1)?;
                    interner.limited(Operator::Max, above.min(below), above.max(below))?
                }
            };
            all = Some(match all {
                // One that always holds only has no-wrap conditions.
                Some(all) if interner.is_true(all) => interner.with_no_wraps_of(own, all)?,
                Some(all) if interner.is_true(own) => interner.with_no_wraps_of(all, own)?,
                Some(all) => interner.limited(Operator::Min, all.min(own), all.max(own))?,
                None => own,
            });
        }
        all
    }

    /// The expression of a contradiction among the conditions, with its no-wrap conditions.
    pub(in crate::access) fn contradicting_expression(
        &self,
        interner: &Interner,
    ) -> Option<ExprId> {
        let mut conditions = self.conditions.iter();
        conditions
            .find(|condition| condition.is_contradiction(interner))
            .map(|contradiction| contradiction.expression)
    }

    /// Whether the condition is a tautology, apart from its no-wrap conditions.
    fn is_tautology(&self, interner: &Interner) -> bool {
        let holds =
            |c: &Condition| c.relation == Relation::AtLeast && interner.is_true(c.expression);
        self.complete && self.conditions.iter().all(holds)
    }

    /// The same, under the no-wrap conditions of an expression too.
    fn with_no_wraps_of(&self, no_wraps: ExprId, interner: &mut Interner) -> Implied {
        if interner.get(no_wraps).no_wraps.is_empty() {
            return self.clone();
        }
        let mut known = Implied { conditions: Conditions::default(), complete: self.complete };
        for condition in &self.conditions {
            match interner.with_no_wraps_of(condition.expression, no_wraps) {
                Some(expression) => {
                    known.conditions.extend([Condition { expression, ..*condition }]);
                }
                None => known.complete = false,
            }
        }
        if known.conditions.is_empty() {
            let zero = interner.constant(0);
            match interner.with_no_wraps_of(zero, no_wraps) {
                Some(expression) => {
                    let relation = Relation::AtLeast;
                    known.conditions.extend([Condition { expression, relation }]);
                }
                None => known.complete = false,
            }
        }
        known
    }

    /// The implication of something that never is: a contradiction.
    fn contradiction() -> Implied {
        Implied { conditions: vec![CONTRADICTION].into(), complete: true }
    }

    fn is_contradiction(&self) -> bool {
        self.complete && *self.conditions == [CONTRADICTION]
    }
}

/// The value of a predicate register.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(in crate::access) struct Predicate {
    pub(in crate::access) when_true: Implied,
    pub(in crate::access) when_false: Implied,
    /// For machine code: what the instruction did to lower halves.
    pub(in crate::access) low: Option<Low>,
    /// The place where the predicate was made, for machine code: predicates of other places may
    /// differ.
    pub(in crate::access) place: Option<(u32, u16)>,
}

/// Lower halves that were added, or with the mark subtracted.
pub(in crate::access) type Lows = SmallVec<[(ExprId, bool); 3]>;

/// The effect of an instruction that made a predicate on the lower halves of 64-bit values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::access) enum Low {
    /// Added them, or subtracted those with the mark: the predicate is the carry, where a guard
    /// lets it be: a predicate and whether it was negated.
    Carry(Lows, Option<(u32, bool)>),
    /// Compared two of them.
    Compare(ExprId, ExprId),
}

impl Predicate {
    /// The opposite predicate.
    pub(in crate::access) fn not(self) -> Predicate {
        Predicate { when_true: self.when_false, when_false: self.when_true, low: None, place: None }
    }

    /// One that always is the same.
    pub(in crate::access) fn always(value: bool) -> Predicate {
        let holds = Implied { conditions: Conditions::default(), complete: true };
        let contradiction = Implied::contradiction();
        match value {
            true => {
                Predicate { when_true: holds, when_false: contradiction, low: None, place: None }
            }
            false => {
                Predicate { when_true: contradiction, when_false: holds, low: None, place: None }
            }
        }
    }

    /// Whether conditions determine when the predicate is true. Predicates with the same conditions
    /// are then the same.
    pub(in crate::access) fn is_told(&self) -> bool {
        self.when_true.complete || self.when_false.complete
    }

    /// The predicate's constant value, if it has one.
    pub(in crate::access) fn constant(&self) -> Option<bool> {
        match (self.when_true.is_contradiction(), self.when_false.is_contradiction()) {
            (false, true) => Some(true),
            (true, false) => Some(false),
            _ => None,
        }
    }

    /// Both predicates hold. Where one of them is constant the result is exact, else the false side
    /// is a disjunction.
    pub(in crate::access) fn and(&self, other: &Predicate, interner: &mut Interner) -> Predicate {
        match (self.constant(), other.constant()) {
            (Some(false), _) | (_, Some(false)) => return Predicate::always(false),
            (Some(true), _) => return Predicate { low: None, ..other.clone() },
            (_, Some(true)) => return Predicate { low: None, ..self.clone() },
            _ => {}
        }
        let mut conditions = self.when_true.conditions.clone();
        conditions.extend(other.when_true.conditions.iter().copied());
        Predicate {
            when_true: Implied {
                conditions,
                complete: self.when_true.complete && other.when_true.complete,
            },
            when_false: self.when_false.either(&other.when_false, interner),
            low: None,
            place: None,
        }
    }

    /// One of the predicates holds.
    pub(in crate::access) fn or(self, other: Predicate, interner: &mut Interner) -> Predicate {
        self.not().and(&other.not(), interner).not()
    }

    /// The predicate with the no-wrap conditions of an expression added.
    pub(in crate::access) fn with_no_wraps_of(
        &self,
        no_wraps: ExprId,
        interner: &mut Interner,
    ) -> Predicate {
        let when_true = self.when_true.with_no_wraps_of(no_wraps, interner);
        let when_false = self.when_false.with_no_wraps_of(no_wraps, interner);
        Predicate { when_true, when_false, low: None, place: self.place }
    }

    /// The φ of predicates where paths meet: that of each path, with what holds on that path alone
    /// and whether that is enough for it to be the one.
    pub(in crate::access) fn phi(
        inputs: &[(&Predicate, Conditions, bool)],
        interner: &mut Interner,
    ) -> Predicate {
        let mut side = |value: bool| {
            let mut all: Option<Implied> = None;
            for (predicate, path, exact) in inputs {
                if predicate.constant() == Some(!value) {
                    continue;
                }
                let own = if value { &predicate.when_true } else { &predicate.when_false };
                let mut conditions = path.clone();
                conditions.extend(own.conditions.iter().filter(|c| !path.contains(c)).copied());
                let known = Implied { conditions, complete: *exact && own.complete };
                all = Some(match all {
                    Some(all) => all.either(&known, interner),
                    None => known,
                });
            }
            all.unwrap_or_else(Implied::contradiction)
        };
        let (when_true, when_false) = (side(true), side(false));
        Predicate { when_true, when_false, low: None, place: None }
    }

    /// `a OP b` of integers of `bits`. The words of PTX: `lt`, `le`, `gt`, `ge`, `eq`, `ne`, and
    /// `lo`, `ls`, `hi`, `hs`, which are unsigned.
    pub(in crate::access) fn compare(
        interner: &mut Interner,
        word: &str,
        signed: bool,
        bits: u32,
        a: ExprId,
        b: ExprId,
    ) -> Predicate {
        Self::try_compare(interner, word, signed, bits, a, b).unwrap_or_default()
    }

    fn try_compare(
        interner: &mut Interner,
        word: &str,
        signed: bool,
        bits: u32,
        a: ExprId,
        b: ExprId,
    ) -> Option<Predicate> {
        let signed = signed && !matches!(word, "lo" | "ls" | "hi" | "hs");
        let half = if bits >= 64 { i64::MAX } else { (1i64 << (bits - 1)) - 1 };
        let least = -half - 1;
        let one = |known: Vec<Condition>| Implied { conditions: known.into(), complete: true };
        if matches!(word, "eq" | "ne") {
            // Equal modulo 2^bits is equal where both lie in one range of that size.
            let (a, b) =
                (interner.with_no_wrap(a, least, half)?, interner.with_no_wrap(b, least, half)?);
            let expression = interner.add(a, b, -1)?;
            let equal = one(vec![Condition { expression, relation: Relation::Equal }]);
            let differs = one(vec![Condition { expression, relation: Relation::Differs }]);
            let predicate =
                Predicate { when_true: equal, when_false: differs, low: None, place: None };
            return Some(if word == "eq" { predicate } else { predicate.not() });
        }
        // All orders are `x < y` or its negation.
        let (x, y, negated) = match word {
            "lt" | "lo" => (a, b, false),
            "gt" | "hi" => (b, a, false),
            "ge" | "hs" => (a, b, true),
            "le" | "ls" => (b, a, true),
            _ => return None,
        };
        let predicate = if signed {
            let (x, y) =
                (interner.with_no_wrap(x, least, half)?, interner.with_no_wrap(y, least, half)?);
            let (less, not_less) = Self::less(interner, x, y)?;
            Predicate {
                when_true: one(vec![less]),
                when_false: one(vec![not_less]),
                low: None,
                place: None,
            }
        } else {
            // x < y with y no larger than the signed maximum also says that x is not negative.
            let whole = if bits >= 64 { i64::MAX } else { (1i64 << bits) - 1 };
            let (lx, ly) =
                (interner.with_no_wrap(x, least, half)?, interner.with_no_wrap(y, 0, half)?);
            let (less, _) = Self::less(interner, lx, ly)?;
            let expression = interner.with_no_wraps_of(lx, ly)?;
            let positive = Condition { expression, relation: Relation::AtLeast };
            let (gx, gy) =
                (interner.with_no_wrap(x, 0, whole)?, interner.with_no_wrap(y, 0, whole)?);
            let (_, not_less) = Self::less(interner, gx, gy)?;
            Predicate {
                when_true: one(vec![less, positive]),
                when_false: one(vec![not_less]),
                low: None,
                place: None,
            }
        };
        Some(if negated { predicate.not() } else { predicate })
    }

    fn less(interner: &mut Interner, x: ExprId, y: ExprId) -> Option<(Condition, Condition)> {
        let difference = interner.add(y, x, -1)?;
        let expression = interner.offset(difference, -1)?;
        let less = Condition { expression, relation: Relation::AtLeast };
        let expression = interner.add(x, y, -1)?;
        Some((less, Condition { expression, relation: Relation::AtLeast }))
    }
}
