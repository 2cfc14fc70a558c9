//! Stacks that were walked before, known again by the words that told their frames.
//!
//! A walk depends on nothing but the unwind information, the registers that it begins with and the
//! words of the stack that it reads. So a walk is kept with these: where the instruction, the stack
//! pointer and all these words are what they were, another walk would read the same words one after
//! the other and find the same frames. This is exact, whatever the program does with its stack; a
//! stack of which a word differs is walked. Stacks are found by the program's first return address,
//! and from one that differs in a word by that word.
//!
//! The frame pointer is compared only where a step depends on it, since code that keeps no frame
//! pointers keeps loop counters in that register. Whether a step does is tried when a walk is
//! learned: with other values in the register, or in the word that it is restored from, the step
//! must come to the same frame. Steps by rules that the unwinder keeps are sums, for which that is
//! proof; of other steps (DWARF expressions) everything is compared.
//!
//! Invariants: what is kept belongs to one snapshot of the loaded objects; words are read on the
//! calling thread's own stack alone, above its stack pointer. Deliberately absent: walks on other
//! stacks (coroutines), and those from where a signal has interrupted the thread.

use framehop::{Error, FrameAddress};
use streamsan_wire::{Api, HostCall};

use super::machine::{self, Registers};
use super::native::{self, Bounds, NativeWalk, OWN_FRAMES};
use super::objects::Snapshot;
use super::python::merge::NativeFrame;
use super::rules::Rules;
use super::{MOST_NATIVE, mix, native_hash};

/// Sets of stacks, and stacks of a set. What is not used takes no memory.
const SETS: usize = 128;
const WAYS: usize = 8;
/// Words of a stack that is kept: a return address and a frame pointer each frame.
const MOST_WORDS: usize = 2 * (MOST_NATIVE + OWN_FRAMES);
/// Words that a walk reads at most, and steps.
const MOST_READS: usize = 3 * (MOST_NATIVE + OWN_FRAMES);
const MOST_STEPS: usize = MOST_NATIVE + OWN_FRAMES + 2;
/// One of so many walks takes the place of another one in a full set. To learn a walk costs several
/// walks.
const SELDOM: u32 = 64;
/// Stacks that are compared for one.
const HOPS: usize = 8;

/// Which hook a stack begins with: from there to the program it has the same frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HookSite(u16);

impl HookSite {
    const COUNT: usize = Api::COUNT + HostCall::ALL.len();

    pub(super) const fn of(api: Api) -> Self {
        Self(api as u16)
    }

    pub(super) const fn of_host(call: HostCall) -> Self {
        Self(Api::COUNT as u16 + call as u16)
    }
}

/// A walk and what it depends on.
struct MemoEntry {
    here: Registers,
    /// Whether it depends on the frame pointer that it began with.
    needs_bp: bool,
    walk: NativeWalk,
    hash: u64,
    /// One past the highest byte that it read.
    top: usize,
    count: usize,
    /// Where the words lie, in words above the stack pointer, and what they are.
    offsets: [u32; MOST_WORDS],
    words: [u64; MOST_WORDS],
}

struct Set {
    /// The answer of [`Memo::tag`] for each stack; 0 for none.
    tags: [u64; WAYS],
    entries: [MemoEntry; WAYS],
}

/// A step of a walk that is learned.
#[derive(Clone, Copy)]
struct Logged {
    at: FrameAddress,
    before: Registers,
    end: End,
    after: Registers,
    /// One past its last read.
    reads: usize,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Frame(u64),
    Last,
    Failed,
}

impl End {
    fn of(next: &Result<Option<u64>, Error>) -> Self {
        match next {
            Ok(Some(address)) => Self::Frame(*address),
            Ok(None) => Self::Last,
            Err(_) => Self::Failed,
        }
    }
}

/// A word that a walk has read.
#[derive(Clone, Copy)]
struct Read {
    address: u64,
    word: u64,
    /// Whether the frames depend on it.
    needed: bool,
}

/// The stacks of a thread. Valid as zeroes.
pub(super) struct Memo {
    /// Words from the stack pointer to the program's first return address, by hook; 0 unknown. It
    /// leads to a stack and proves nothing.
    first: [u16; HookSite::COUNT],
    misses: u32,
    reads: [Read; MOST_READS],
    steps: [Option<Logged>; MOST_STEPS],
    sets: [Set; SETS],
}

/// The state of learning a walk.
pub(super) struct Learner<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) rules: &'a mut Rules,
    pub(super) bounds: &'a Bounds,
    /// The frames of the walk; written again.
    pub(super) frames: &'a mut [NativeFrame],
}

impl Memo {
    /// The loaded objects have changed.
    pub(super) fn forget(&mut self) {
        for set in &mut self.sets {
            // A load first: untouched pages stay untouched.
            if set.tags != [0; WAYS] {
                set.tags = [0; WAYS];
            }
        }
    }

    /// The walk from here, if it is known; with its hash.
    #[inline]
    pub(super) fn find(
        &self,
        (low, high): (usize, usize),
        here: Registers,
        site: HookSite,
    ) -> Option<(NativeWalk, u64)> {
        if !(low..high).contains(&(here.sp as usize)) {
            return None;
        }
        match self.follow(high, here, self.tag(high, here, site)?) {
            Ok(entry) => Some((entry.walk, entry.hash)),
            Err(_) => None,
        }
    }

    /// From stack to stack: where one differs in a word, that word leads to the next. The tag under
    /// which nothing is kept where the stack is not known, 0 where there is none.
    #[inline(always)]
    fn follow(&self, high: usize, here: Registers, mut tag: u64) -> Result<&MemoEntry, u64> {
        for _ in 0..HOPS {
            let set = &self.sets[tag as usize % SETS];
            let Some(way) = set.tags.iter().position(|kept| *kept == tag) else { return Err(tag) };
            let entry = &set.entries[way];
            match entry.first_difference(here, high) {
                None => return Ok(entry),
                Some((0, _)) => return Err(0),
                Some((position, word)) => tag = mix(tag ^ position as u64, word).max(1),
            }
        }
        Err(0)
    }

    /// Tells most stacks apart; `None` where none is known from this hook.
    #[inline]
    fn tag(&self, high: usize, here: Registers, site: HookSite) -> Option<u64> {
        let offset = 8 * u64::from(self.first[usize::from(site.0)]);
        if offset == 0 {
            return None;
        }
        let word = native::read_own(here.sp as usize, high, here.sp + offset).ok()?;
        Some(mix(mix(here.sp, word), here.ip).max(1))
    }

    /// Keeps a walk that was just made, if there is room or it is time for it.
    pub(super) fn learn(
        &mut self,
        learner: &mut Learner<'_>,
        here: Registers,
        site: HookSite,
        found: (NativeWalk, u64),
    ) {
        let (low, high) = learner.bounds.get();
        let own = (low..high).contains(&(here.sp as usize)) && here.sp.is_multiple_of(8);
        if !own || found.0.count == 0 {
            return;
        }
        let NativeFrame { address, stack } = learner.frames[0];
        let read = |at| native::read_own(here.sp as usize, high, at);
        let place = machine::return_address_of(stack as u64, address as u64, read);
        let distance = place.wrapping_sub(here.sp) / 8;
        self.first[usize::from(site.0)] = u16::try_from(distance).unwrap_or(0);
        let Some(tag) = self.tag(high, here, site) else { return };
        let Err(tag @ 1..) = self.follow(high, here, tag) else { return };
        self.misses = self.misses.wrapping_add(1);
        let seldom = self.misses.is_multiple_of(SELDOM);
        let any = (self.misses / SELDOM) as usize % WAYS;
        let set = &self.sets[tag as usize % SETS];
        let free = set.tags.iter().position(|tag| *tag == 0);
        let Some(way) = free.or(seldom.then_some(any)) else { return };
        self.keep(learner, here, high, found, (tag, way));
    }

    #[cold]
    fn keep(
        &mut self,
        learner: &mut Learner<'_>,
        here: Registers,
        high: usize,
        (walk, hash): (NativeWalk, u64),
        (tag, way): (u64, usize),
    ) {
        let Some((steps, needs_bp)) = self.analyse(learner, here, high, (walk, hash)) else {
            return;
        };
        let Some(reads) = steps.checked_sub(1).and_then(|last| self.steps[last]) else { return };
        let set = &mut self.sets[tag as usize % SETS];
        set.tags[way] = 0;
        let entry = &mut set.entries[way];
        entry.count = 0;
        entry.top = 0;
        for read in self.reads[..reads.reads].iter().filter(|read| read.needed) {
            let Ok(offset) = u32::try_from((read.address - here.sp) / 8) else { return };
            if entry.count == MOST_WORDS {
                return;
            }
            entry.offsets[entry.count] = offset;
            entry.words[entry.count] = read.word;
            entry.top = entry.top.max(read.address as usize + 8);
            entry.count += 1;
        }
        (entry.here, entry.needs_bp, entry.walk, entry.hash) = (here, needs_bp, walk, hash);
        set.tags[way] = tag;
    }

    /// Walks again and finds out what the walk depends on: its words, marked in `reads`, and whether
    /// the first frame pointer. Answers the number of steps too; `None` where it cannot be told.
    fn analyse(
        &mut self,
        learner: &mut Learner<'_>,
        here: Registers,
        high: usize,
        (walk, hash): (NativeWalk, u64),
    ) -> Option<(usize, bool)> {
        let start = here.sp as usize;
        let (reads, steps) = (&mut self.reads, &mut self.steps);
        let (count, step) = (core::cell::Cell::new(0), core::cell::Cell::new(0));
        let (snapshot, bounds) = (learner.snapshot, learner.bounds);
        let again = native::walk_from(
            snapshot,
            learner.rules,
            bounds,
            here,
            learner.frames,
            |address| {
                let word = native::read_own(start, high, address)?;
                if let Some(read) = reads.get_mut(count.get()) {
                    *read = Read { address, word, needed: true };
                }
                count.set(count.get() + 1);
                Ok(word)
            },
            |done| {
                if let Some(place) = steps.get_mut(step.get()) {
                    *place = Some(Logged {
                        at: done.at,
                        before: done.before,
                        end: End::of(done.next),
                        after: done.after,
                        reads: count.get(),
                    });
                }
                step.set(step.get() + 1);
            },
        );
        let (count, step) = (count.get(), step.get());
        let removed = snapshot.counts.removed;
        let frames = learner.frames.get(..again.count)?;
        let same = again == walk && native_hash(removed, again.cut, frames) == hash;
        if !same || count > MOST_READS || step > MOST_STEPS {
            return None;
        }
        // From the last step to the first: whether the frame pointer matters behind it.
        let mut needed = false;
        for index in (0..step).rev() {
            let done = self.steps[index]?;
            let first = match index {
                0 => 0,
                _ => self.steps[index - 1]?.reads,
            };
            // With what it was again: whether its rule is kept, and trying it changes nothing.
            let cache = learner.rules.of(done.at, || bounds.have_room());
            let mut other = |bp: u64, changed: Option<(u64, u64)>| {
                let mut registers = Registers { bp, ..done.before }.unwinding();
                let hits = cache.stats().hits();
                let mut read = |address| match changed {
                    Some((at, word)) if at == address => Ok(word),
                    _ => native::read_own(start, high, address),
                };
                let next = machine::step(snapshot, done.at, &mut registers, cache, &mut read);
                let after = Registers::of(&registers);
                let same = End::of(&next) == done.end && after.sp == done.after.sp;
                let kept = cache.stats().hits() > hits;
                (same && kept).then_some(after.bp)
            };
            if done.end == End::Failed || other(done.before.bp, None).is_none() {
                needed = true;
                continue;
            }
            if !needed {
                // Registers that depend only on the frame pointer behind the step are not needed.
                let return_address = done.after.sp.wrapping_sub(8);
                let reads = self.reads[first..done.reads].iter_mut();
                for read in reads.filter(|read| read.address != return_address) {
                    let values = others(read.word, high);
                    let differs =
                        |word: &u64| other(done.before.bp, Some((read.address, *word))).is_none();
                    read.needed = values.iter().any(differs);
                }
            }
            let values = others(done.before.bp, high);
            let bps = values.map(|bp| other(bp, None));
            let passes = (0..values.len()).all(|at| bps[at] == Some(values[at]));
            let restored = bps.iter().all(|bp| *bp == Some(done.after.bp));
            needed = if passes { needed } else { !restored };
        }
        Some((step, needed))
    }
}

/// Values that a word does not have and no frame is at: near 0, and beyond the stack.
fn others(word: u64, high: usize) -> [u64; 2] {
    [8, high as u64 + 64].map(|value| if value == word { value + 4096 } else { value })
}

impl MemoEntry {
    /// Where a walk from here would read another word than this one did, from 1, and that word; `None`
    /// where it would read the same. Position 0: it cannot be compared.
    #[inline(always)]
    fn first_difference(&self, here: Registers, high: usize) -> Option<(usize, u64)> {
        if self.here.sp != here.sp || self.here.ip != here.ip || self.top > high {
            return Some((0, 0));
        }
        let stack = here.sp as *const u64;
        let words = self.offsets.iter().zip(&self.words).take(self.count);
        for (position, (offset, word)) in words.enumerate() {
            // SAFETY: between the stack pointer and the stack's end (`top`), at a multiple of eight
            // bytes above the former, which is one.
            let found = unsafe { stack.add(*offset as usize).read() };
            if found != *word {
                return Some((position + 1, found));
            }
        }
        let same = !self.needs_bp || self.here.bp == here.bp;
        if same { None } else { Some((MOST_WORDS + 1, here.bp)) }
    }
}

#[cfg(test)]
mod tests;
