//! Conjunctions: lists of conditions, and path conditions.
//!
//! Stage: the domain. Most conditions of a place hold at the places behind it too, so copies share
//! their memory until one of them changes.
//!
//! Invariant: a path condition is sorted and has each condition once, so that the join of two paths
//! is an intersection.

use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

use crate::access::domain::condition::Condition;

/// Conditions in the order in which they were found.
#[derive(Debug, Clone, Default, Eq)]
pub(in crate::access) struct Conditions(Option<Rc<Vec<Condition>>>);

impl Conditions {
    fn vec(&mut self) -> &mut Vec<Condition> {
        Rc::make_mut(self.0.get_or_insert_default())
    }

    /// Keeps the conditions for which `holds` is true.
    pub(in crate::access) fn retain(&mut self, mut holds: impl FnMut(&Condition) -> bool) {
        let Some(first) = self.iter().position(|condition| !holds(condition)) else { return };
        let mut at = 0;
        self.vec().retain(|condition| {
            at += 1;
            at <= first || at > first + 1 && holds(condition)
        });
    }
}

impl Deref for Conditions {
    type Target = [Condition];

    fn deref(&self) -> &[Condition] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl PartialEq for Conditions {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(&**self, &**other) || **self == **other
    }
}

impl Hash for Conditions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl From<Vec<Condition>> for Conditions {
    fn from(conditions: Vec<Condition>) -> Self {
        Self((!conditions.is_empty()).then(|| Rc::new(conditions)))
    }
}

impl FromIterator<Condition> for Conditions {
    fn from_iter<I: IntoIterator<Item = Condition>>(conditions: I) -> Self {
        Vec::from_iter(conditions).into()
    }
}

impl Extend<Condition> for Conditions {
    fn extend<I: IntoIterator<Item = Condition>>(&mut self, conditions: I) {
        let mut conditions = conditions.into_iter().peekable();
        if conditions.peek().is_some() {
            self.vec().extend(conditions);
        }
    }
}

impl<'a> IntoIterator for &'a Conditions {
    type Item = &'a Condition;
    type IntoIter = std::slice::Iter<'a, Condition>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Conditions {
    type Item = &'a mut Condition;
    type IntoIter = std::slice::IterMut<'a, Condition>;

    fn into_iter(self) -> Self::IntoIter {
        match &mut self.0 {
            Some(conditions) => Rc::make_mut(conditions).iter_mut(),
            None => Default::default(),
        }
    }
}

/// A path condition: the set of conditions that hold at a place, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::access) struct PathCondition(Conditions);

impl PathCondition {
    /// The conditions, each once.
    pub(in crate::access) fn conditions(&self) -> &Conditions {
        &self.0
    }

    pub(in crate::access) fn contains(&self, condition: &Condition) -> bool {
        self.0.binary_search(condition).is_ok()
    }

    pub(in crate::access) fn retain(&mut self, holds: impl FnMut(&Condition) -> bool) {
        self.0.retain(holds);
    }

    /// Keeps the conditions that the other path condition has too.
    pub(in crate::access) fn keep_shared(&mut self, other: &PathCondition) {
        if !std::ptr::eq(&*self.0, &*other.0) {
            self.retain(|condition| other.contains(condition));
        }
    }
}

impl Deref for PathCondition {
    type Target = [Condition];

    fn deref(&self) -> &[Condition] {
        &self.0
    }
}

impl IntoIterator for PathCondition {
    type Item = Condition;
    type IntoIter = std::vec::IntoIter<Condition>;

    fn into_iter(self) -> Self::IntoIter {
        let Self(Conditions(conditions)) = self;
        conditions.map(Rc::unwrap_or_clone).unwrap_or_default().into_iter()
    }
}

impl Extend<Condition> for PathCondition {
    fn extend<I: IntoIterator<Item = Condition>>(&mut self, conditions: I) {
        for condition in conditions {
            if let Err(at) = self.0.binary_search(&condition) {
                self.0.vec().insert(at, condition);
            }
        }
    }
}

impl FromIterator<Condition> for PathCondition {
    fn from_iter<I: IntoIterator<Item = Condition>>(conditions: I) -> Self {
        let mut path = PathCondition::default();
        path.extend(conditions);
        path
    }
}
