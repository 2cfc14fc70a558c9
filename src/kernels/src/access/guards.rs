//! What the conditions of a kernel's accesses say at one launch.
//!
//! Accesses share most of their conditions, one by one and whole lists of them: each is looked at
//! once a launch, when an access first asks for it. Of a list only those count that some thread
//! may miss; lists of which the same are left are one case, and what accesses reach in it is worked
//! out once for all that differ in a number only.

use std::hash::{Hash, Hasher};
use std::ops::Range;

use rustc_hash::FxHasher;
use smallvec::{SmallVec, smallvec};

use super::chains::Chains;
use super::condition::{Condition, Relation};
use super::evaluator::{Evaluator, Facts, fill};
use super::linear::{FAR, Linear, Value, are_alike, least_difference};
use super::pattern::{self, Reached, Target, reached};
use super::plan::{Plan, numbers};

/// A sum that is not negative where a condition holds.
#[derive(Debug, Clone, Copy)]
struct Guard {
    sum: Value,
    low: i128,
    high: i128,
}

impl Guard {
    /// Whether this sum may never be below the other one: then neither end is. Sums near to where
    /// numbers are cut have no true ends.
    fn may_exceed(&self, other: &Guard) -> bool {
        let near = |guard: &Guard| guard.low > -FAR / 4 && guard.high < FAR / 4;
        !near(self) || !near(other) || (self.low >= other.low && self.high >= other.high)
    }
}

/// What one condition says.
#[derive(Debug, Clone, Copy)]
enum Fact {
    Unread,
    /// So many of these sums are not negative, and whether that is all of it.
    Says([u32; 2], u8, bool),
    /// It may say something where others hold.
    Perhaps,
    Nothing,
}

/// What a list of conditions says.
#[derive(Debug, Clone, Copy)]
struct Set {
    /// Where the sums that are not negative stand among those of all lists; those of conditions that
    /// every thread meets left out.
    from: u32,
    to: u32,
    /// The sums that matter.
    case: u32,
    /// Whether they say all of it.
    exact: bool,
    /// Whether they never hold together.
    never: bool,
}

/// Sums of which some values are negative, and none implies another: all others would only keep
/// variables apart.
#[derive(Debug, Clone, Copy)]
struct Case {
    from: u32,
    to: u32,
    /// The last place in `known`.
    last: Option<u32>,
}

/// What accesses reach: of sums that differ in a number only, and as many bytes, it is the same so
/// much further.
#[derive(Debug)]
struct Found {
    address: Value,
    length: i128,
    /// The only list that it holds for, where the rounds of a loop depend on it.
    set: Option<u32>,
    reached: Reached,
    /// The one before of the same case.
    before: Option<u32>,
}

/// Room for what the conditions of one launch say, for the next one to use again.
#[derive(Debug, Default)]
pub(super) struct Room {
    guards: Vec<Guard>,
    sums: Vec<Value>,
    guard_numbers: Chains,
    facts: Vec<Fact>,
    /// Conditions that every thread meets, 64 of them a block.
    idle: Vec<u64>,
    /// Conditions that no thread meets.
    never: Vec<u64>,
    sets: Vec<Option<Set>>,
    /// Sums of all lists.
    all: Vec<u32>,
    cases: Vec<Case>,
    case_numbers: Chains,
    /// Sums of all cases.
    open: Vec<u32>,
    /// What is left of lists without the conditions that every thread meets: where that stands, and
    /// what it says.
    lists: Vec<(u32, u32, Set)>,
    list_numbers: Chains,
    /// Conditions of all these.
    listed: Vec<u32>,
    /// By sum: the last time that it was marked as one that holds.
    marks: Vec<u32>,
    /// How often sums were marked, and of which list.
    marked: (u32, Option<u32>),
    known: Vec<Found>,
    /// Two bits for each pair of sums: whether it is known whether the one implies the other, and
    /// whether it does.
    implied: Vec<u8>,
    patterns: pattern::Room,
}

/// The conditions of a kernel at one launch.
#[derive(Debug)]
pub(super) struct Guards<'p> {
    plan: &'p Plan,
    room: &'p mut Room,
}

fn hash(sums: &[u32]) -> u64 {
    let mut hash = FxHasher::default();
    sums.hash(&mut hash);
    hash.finish()
}

/// Sums of which it is noted which ones imply which.
const MOST_NOTED: usize = 512;

impl<'p> Guards<'p> {
    pub(super) fn new(plan: &'p Plan, room: &'p mut Room) -> Self {
        room.guards.clear();
        room.guard_numbers.clear(plan.facts.len());
        fill(&mut room.facts, plan.facts.len(), Fact::Unread);
        fill(&mut room.idle, plan.facts.len().div_ceil(64), 0);
        fill(&mut room.never, plan.facts.len().div_ceil(64), 0);
        fill(&mut room.sets, plan.sets.len(), None);
        room.all.clear();
        room.sums.clear();
        room.cases.clear();
        room.case_numbers.clear(plan.sets.len());
        room.open.clear();
        room.lists.clear();
        room.list_numbers.clear(plan.sets.len());
        room.listed.clear();
        room.marks.clear();
        room.marked = (0, None);
        room.known.clear();
        room.implied.clear();
        Self { plan, room }
    }

    /// Looks at the conditions of a list. Its case and whether they say all of what they are;
    /// `None` where they never hold together.
    pub(super) fn look(&mut self, set: u32, evaluator: &mut Evaluator<'_>) -> Option<(u32, bool)> {
        let place = set as usize;
        let set = match self.room.sets[place] {
            Some(set) => set,
            None => {
                let set = self.read(place, evaluator);
                self.room.sets[place] = Some(set);
                set
            }
        };
        (!set.never).then_some((set.case, set.exact))
    }

    /// The sums that are not negative where a list holds that was looked at, as far as that is not
    /// known anyway.
    pub(super) fn known(&mut self, at: u32) -> Facts<'_> {
        if self.room.marked.1 != Some(at) {
            self.mark_none(Some(at));
            let Room { all, sets, marks, marked, .. } = &mut *self.room;
            let own = sets[at as usize].map_or(0..0, |set| set.from as usize..set.to as usize);
            all[own].iter().for_each(|&sum| marks[sum as usize] = marked.0);
        }
        self.facts(Some(at))
    }

    /// The sums that are marked.
    fn facts(&self, set: Option<u32>) -> Facts<'_> {
        Facts { sums: &self.room.sums, marks: &self.room.marks, mark: self.room.marked.0, set }
    }

    fn mark_none(&mut self, set: Option<u32>) {
        self.room.marked = (self.room.marked.0 + 1, set);
    }

    fn number(&mut self, sum: Value, evaluator: &mut Evaluator<'_>) -> u32 {
        let guards = &mut self.room.guards;
        let own = evaluator.get(sum);
        let mut hash = FxHasher::default();
        (own.constant as u64).hash(&mut hash);
        for &(variable, coefficient) in own.terms {
            (variable, coefficient as u64).hash(&mut hash);
        }
        let same = |at: usize| evaluator.get(guards[at].sum) == own;
        let (number, new) = self.room.guard_numbers.number(hash.finish(), same);
        if new {
            let (low, high) = evaluator.interval(sum);
            guards.push(Guard { sum, low, high });
            self.room.sums.push(sum);
            self.room.marks.push(0);
        }
        number as u32
    }

    /// Looks at one condition.
    fn look_at(&mut self, place: usize, evaluator: &mut Evaluator<'_>) {
        let condition = self.plan.facts[place];
        let fact = if evaluator.needs_hold(condition.expression, &Facts::NONE) {
            self.says(&condition, evaluator)
        } else if condition.relation == Relation::AtLeast {
            Fact::Perhaps
        } else {
            Fact::Nothing
        };
        self.room.facts[place] = fact;
        let Fact::Says(sums, count, whole) = fact else { return };
        let guards = sums[..usize::from(count)].iter().map(|&sum| self.room.guards[sum as usize]);
        let bit = 1 << (place % 64);
        if guards.clone().any(|guard| guard.high < 0) {
            self.room.never[place / 64] |= bit;
        } else if whole && guards.clone().all(|guard| guard.low >= 0) {
            self.room.idle[place / 64] |= bit;
        }
    }

    /// A condition as sums that are not negative.
    fn says(&mut self, condition: &Condition, evaluator: &mut Evaluator<'_>) -> Fact {
        if condition.relation == Relation::AtLeast {
            let sum = evaluator.linear(condition.expression);
            return Fact::Says([self.number(sum, evaluator), 0], 1, true);
        }
        let (value, (low, high)) = evaluator.compared(condition);
        let sums = &mut *evaluator.sums;
        let differs = condition.relation == Relation::Differs;
        let sums: SmallVec<[Value; 2]> = match (differs, low, high) {
            // By how much it is another number plays no part, and a pointer may be in it.
            (false, low, high) if low > 0 || high < 0 => smallvec![sums.number(-1)],
            (false, ..) => smallvec![value, sums.less(0, value)],
            (true, 0, 0) => smallvec![sums.number(-1)],
            (true, low, high) if low > 0 || high < 0 => smallvec![],
            (true, 0, _) => smallvec![sums.more(value, -1)],
            (true, _, 0) => smallvec![sums.less(-1, value)],
            (true, ..) => return Fact::Says([0; 2], 0, false),
        };
        let mut numbers = [0; 2];
        for (number, &sum) in numbers.iter_mut().zip(&sums) {
            *number = self.number(sum, evaluator);
        }
        Fact::Says(numbers, sums.len() as u8, true)
    }

    /// Adds what a condition says to the last list; whether that is all of it.
    fn add(&mut self, fact: Fact) -> bool {
        let Fact::Says(sums, count, whole) = fact else { return false };
        let Room { all, marks, marked, .. } = &mut *self.room;
        for &sum in &sums[..usize::from(count)] {
            if std::mem::replace(&mut marks[sum as usize], marked.0) != marked.0 {
                all.push(sum);
            }
        }
        whole
    }

    fn read(&mut self, at: usize, evaluator: &mut Evaluator<'_>) -> Set {
        const NEVER: Set = Set { from: 0, to: 0, case: 0, exact: true, never: true };
        let plan = self.plan;
        let blocks = plan.sets[at].blocks();
        if blocks.iter().any(|&(block, bits)| bits & self.room.never[block as usize] != 0) {
            return NEVER;
        }
        let from = self.room.listed.len();
        for &(block, bits) in blocks {
            let (block, bit) = (block as usize, |place: u32| 1 << (place % 64));
            for place in numbers(block as u32, bits & !self.room.idle[block]) {
                if matches!(self.room.facts[place as usize], Fact::Unread) {
                    self.look_at(place as usize, evaluator);
                    if self.room.never[block] & bit(place) != 0 {
                        self.room.listed.truncate(from);
                        return NEVER;
                    }
                }
                if self.room.idle[block] & bit(place) == 0 {
                    self.room.listed.push(place);
                }
            }
        }
        let Room { lists, list_numbers, listed, .. } = &mut *self.room;
        let own = &listed[from..];
        let same = |at: usize| listed[lists[at].0 as usize..lists[at].1 as usize] == *own;
        let (number, new) = list_numbers.number(hash(own), same);
        if !new {
            listed.truncate(from);
            return lists[number].2;
        }
        let to = listed.len();
        let set = self.put_together(from..to, evaluator);
        self.room.lists.push((from as u32, to as u32, set));
        set
    }

    /// What conditions say together, given where they are listed.
    fn put_together(&mut self, listed: Range<usize>, evaluator: &mut Evaluator<'_>) -> Set {
        self.mark_none(None);
        let (from, mut exact) = (self.room.all.len(), true);
        for at in listed.clone() {
            let place = self.room.listed[at] as usize;
            let fact = self.room.facts[place];
            exact &= matches!(fact, Fact::Perhaps) || self.add(fact);
        }
        // What some conditions say may be what others need.
        for at in listed {
            let place = self.room.listed[at] as usize;
            if !matches!(self.room.facts[place], Fact::Perhaps) {
                continue;
            }
            let condition = self.plan.facts[place];
            if !evaluator.needs_hold(condition.expression, &self.facts(None)) {
                exact = false;
                continue;
            }
            let fact = self.says(&condition, evaluator);
            exact &= self.add(fact);
        }
        let mut open: SmallVec<[u32; 8]> = SmallVec::new();
        let mut never = false;
        for &sum in &self.room.all[from..] {
            let Guard { low, high, .. } = self.room.guards[sum as usize];
            never |= high < 0;
            if low < 0 {
                open.push(sum);
            }
        }
        if !never {
            // What is never negative implies nothing that is.
            self.drop_implied(evaluator, &mut open);
        }
        let (from, to) = (from as u32, self.room.all.len() as u32);
        Set { from, to, case: self.case(&open), exact, never }
    }

    fn case(&mut self, sums: &[u32]) -> u32 {
        let Room { cases, case_numbers, open, .. } = &mut *self.room;
        let same = |at: usize| open[cases[at].from as usize..cases[at].to as usize] == *sums;
        let (number, new) = case_numbers.number(hash(sums), same);
        if new {
            let from = open.len() as u32;
            open.extend_from_slice(sums);
            cases.push(Case { from, to: open.len() as u32, last: None });
        }
        number as u32
    }

    /// Drops sums that another one implies.
    fn drop_implied(&mut self, evaluator: &Evaluator<'_>, sums: &mut SmallVec<[u32; 8]>) {
        let mut at = 0;
        while at < sums.len() {
            let own = sums[at];
            if sums.iter().any(|&other| other != own && self.implies(other, own, evaluator)) {
                sums.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Whether a sum is never below another one.
    fn implies(&mut self, other: u32, own: u32, evaluator: &Evaluator<'_>) -> bool {
        let Room { guards, implied, .. } = &mut *self.room;
        let (other, own) = (other as usize, own as usize);
        if !guards[own].may_exceed(&guards[other]) {
            return false;
        }
        let find = || {
            let (own, other) = (evaluator.get(guards[own].sum), evaluator.get(guards[other].sum));
            least_difference(own, other, &evaluator.sums.variables) >= 0
        };
        let (more, less) = (own.max(other), own.min(other));
        if more >= MOST_NOTED {
            return find();
        }
        // Pairs with the first, with the second, and so on.
        let place = more * more + 2 * less + usize::from(own > other);
        if implied.len() <= place {
            implied.resize((more + 1) * (more + 1), 0);
        }
        if implied[place] == 0 {
            implied[place] = 1 + u8::from(find());
        }
        implied[place] == 2
    }

    /// The bytes `address .. address + length` where the conditions of a list hold, and whether
    /// they need not be the same for others of its case.
    pub(super) fn reached(
        &mut self,
        at: u32,
        address: Value,
        length: i128,
        evaluator: &mut Evaluator<'_>,
    ) -> (Reached, bool) {
        let Some(set) = self.room.sets[at as usize] else { return (Reached::Anywhere, false) };
        let case = set.case as usize;
        let mut place = self.room.cases[case].last;
        let own = evaluator.get(address);
        while let Some(found) = place.map(|place| &self.room.known[place as usize]) {
            let other = evaluator.get(found.address);
            if found.length == length
                && found.set.is_none_or(|only| only == at)
                && are_alike(own, other, 1)
            {
                let further = own.constant - other.constant;
                return (found.reached.further(further), found.set.is_some());
            }
            place = found.before;
        }
        let (mut rounds, mut only) = (SmallVec::<[(u32, bool); 2]>::new(), None);
        let open = {
            let Case { from, to, .. } = self.room.cases[case];
            from as usize..to as usize
        };
        let counters = self.counters(open.clone(), address, evaluator);
        if !counters.is_empty() {
            only = Some(at);
            let telling = self.telling(at, evaluator);
            for (variable, header) in counters {
                rounds.push((variable, evaluator.rounds_are_guarded(header, &telling)));
            }
        }
        let room = &mut *self.room;
        let guards: SmallVec<[Linear<'_>; 8]> = room.open[open]
            .iter()
            .map(|&sum| evaluator.get(room.guards[sum as usize].sum))
            .collect();
        let target = Target {
            address: evaluator.get(address),
            guards: &guards,
            length,
            variables: &evaluator.sums.variables,
            rounds: &rounds,
        };
        let found = reached(&target, &mut room.patterns);
        let before = room.cases[case].last.replace(room.known.len() as u32);
        room.known.push(Found { address, length, set: only, reached: found, before });
        (found, only.is_some())
    }

    /// The counters in an address and in sums whose rounds are not known to be all made, with their
    /// loops.
    fn counters(
        &self,
        open: Range<usize>,
        address: Value,
        evaluator: &Evaluator<'_>,
    ) -> SmallVec<[(u32, u32); 2]> {
        let mut counters: SmallVec<[(u32, u32); 2]> = SmallVec::new();
        let sums = self.room.open[open].iter().map(|&sum| self.room.guards[sum as usize].sum);
        for &(number, _) in sums.chain([address]).flat_map(|sum| evaluator.get(sum).terms) {
            let variable = &evaluator.sums.variables[number as usize];
            let Some(header) = variable.header else { continue };
            if !variable.full && !counters.contains(&(number, header)) {
                counters.push((number, header));
            }
        }
        counters
    }

    /// The sums of a list that no other one implies.
    fn telling(&mut self, at: u32, evaluator: &Evaluator<'_>) -> SmallVec<[Value; 8]> {
        let Some(Set { from, to, .. }) = self.room.sets[at as usize] else {
            return SmallVec::new();
        };
        let mut sums: SmallVec<[u32; 8]> = self.room.all[from as usize..to as usize].into();
        for place in self.plan.sets[at as usize].iter() {
            let Fact::Says(more, count, _) = self.room.facts[place as usize] else { continue };
            for sum in &more[..usize::from(count)] {
                if !sums.contains(sum) {
                    sums.push(*sum);
                }
            }
        }
        self.drop_implied(evaluator, &mut sums);
        sums.iter().map(|&sum| self.room.guards[sum as usize].sum).collect()
    }
}
