//! Placing fences behind a submission that has succeeded.

use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;

use streamsan_wire::{Api, LeftAlone, NotFenced};

use super::super::operands::{self, Does, Operand};
use super::entry::Fence;
use super::memory::{self, Allocation, MemoryKind};
use super::table;
use super::{CLOCK, FUNCTIONS, Pending, count, count_left_alone, count_not_fenced};
use super::{budget, own_calls, pages, signals, splits, storm, sweep};
use super::{is_captured, is_host_memory, is_watching};
use crate::capture::Params;

/// The kernel has been launched. Its parameters are looked at here, since they are at hand while
/// the call is recorded.
pub(crate) fn launched(params: &Params, pending: &Pending, found: &mut GivenMemory) {
    if pending.ticket == 0 || !is_watching() {
        return;
    }
    params.each_word(&mut |word| {
        if memory::TABLE.may_hold(word)
            && let Ok(Some(allocation)) = memory::TABLE.find(word)
        {
            found.add(word, allocation);
        }
    });
}

/// Memory of the host that a kernel was given.
pub(crate) struct GivenMemory {
    count: usize,
    /// The first `count` are written.
    list: [MaybeUninit<(u64, Allocation)>; Self::MOST],
}

impl GivenMemory {
    const MOST: usize = 8;

    #[inline(always)]
    pub(crate) fn nothing() -> Self {
        Self { count: 0, list: [const { MaybeUninit::uninit() }; Self::MOST] }
    }

    fn add(&mut self, word: u64, allocation: Allocation) {
        for known in &mut self.list[..self.count] {
            // SAFETY: the first `count` are written.
            let known = unsafe { known.assume_init_mut() };
            if known.1 == allocation {
                known.0 = known.0.min(word);
                return;
            }
        }
        if let Some(place) = self.list.get_mut(self.count) {
            place.write((word, allocation));
            self.count += 1;
        }
    }

    /// The launch has succeeded.
    #[inline]
    pub(crate) fn place(&self, api: Api, words: &[u64], pending: &Pending) {
        if self.count == 0 || pending.ticket == 0 || !is_watching() || is_captured(api, words) {
            return;
        }
        let mut tally = Tally::default();
        for found in &self.list[..self.count] {
            // SAFETY: the first `count` are written.
            let (word, allocation) = unsafe { found.assume_init_ref() };
            // The device may take any part of managed memory.
            let start =
                if allocation.kind == MemoryKind::Managed { allocation.start } else { *word };
            let range = (start, allocation.end);
            tally.add(fence(range, allocation, libc::PROT_NONE, pending, (api, true)));
        }
        tally.tell();
    }
}

pub(super) fn copied(api: Api, words: &[u64], pending: &Pending) {
    if is_captured(api, words) {
        return;
    }
    let mut tally = Tally::default();
    let (mut source, mut ordered, mut any) = (false, false, false);
    let mut few = Few::default();
    operands::each(api, words, &mut |operand| {
        let found = memory::TABLE.find(operand.start).ok().flatten();
        let is_host = match found {
            Some(allocation) => {
                any = true;
                few.add(operand, allocation);
                allocation.kind != MemoryKind::Managed
            }
            None => !operand.of_device && is_host_memory(operand.start),
        };
        match operand.does {
            Does::Read => source = is_host,
            // From host to host a copy is fully synchronous, whatever its name.
            Does::Write => ordered |= source && is_host,
        }
    });
    if ordered {
        CLOCK.acquire(usize::from(pending.slot), pending.now, pending.now);
        return sweep();
    }
    if !any {
        return;
    }
    let mut place = |operand: Operand, allocation: &Allocation| {
        if allocation.kind == MemoryKind::Managed || operand.during_call {
            return;
        }
        let protection = match operand.does {
            Does::Read => libc::PROT_READ,
            Does::Write => libc::PROT_NONE,
        };
        let range = (operand.start, operand.end().min(allocation.end));
        tally.add(fence(range, allocation, protection, pending, (api, false)));
    };
    match few.all() {
        Some(list) => list.iter().flatten().for_each(|(operand, found)| place(*operand, found)),
        // More than are kept: a batch.
        None => operands::each(api, words, &mut |operand| {
            if let Ok(Some(allocation)) = memory::TABLE.find(operand.start) {
                place(operand, &allocation);
            }
        }),
    }
    tally.tell();
}

/// The operands of a call that lie in watched memory, as long as they are few.
#[derive(Default)]
struct Few {
    list: [Option<(Operand, Allocation)>; Self::MOST],
    count: usize,
}

impl Few {
    const MOST: usize = 4;

    fn add(&mut self, operand: Operand, allocation: Allocation) {
        if let Some(place) = self.list.get_mut(self.count) {
            *place = Some((operand, allocation));
        }
        self.count += 1;
    }

    fn all(&self) -> Option<&[Option<(Operand, Allocation)>]> {
        self.list.get(..self.count)
    }
}

/// The outcome of fencing an operation's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    Whole,
    Partly,
    Not,
}

#[derive(Default)]
pub(super) struct Tally {
    whole: u32,
    partly: u32,
    not: u32,
}

impl Tally {
    pub(super) fn add(&mut self, placed: Placed) {
        match placed {
            Placed::Whole => self.whole += 1,
            Placed::Partly => self.partly += 1,
            Placed::Not => self.not += 1,
        }
    }

    pub(super) fn tell(&self) {
        if self.whole + self.partly + self.not == 0 {
            return;
        }
        count(|counters| &counters.qualified);
        if self.whole + self.partly > 0 {
            count(|counters| &counters.fenced);
            if self.partly + self.not > 0 {
                count(|counters| &counters.partly);
            }
        } else {
            count(|counters| &counters.skipped);
        }
    }
}

/// Places a fence around bytes of an allocation.
pub(super) fn fence(
    (start, end): (u64, u64),
    allocation: &Allocation,
    protection: i32,
    pending: &Pending,
    (api, kernel): (Api, bool),
) -> Placed {
    let not = |reason| {
        count_not_fenced(reason);
        Placed::Not
    };
    if memory::TABLE.is_left_alone(allocation) {
        return not(NotFenced::LeftAlone);
    }
    if storm::rages() {
        return not(NotFenced::Storm);
    }
    let site = budget::site(allocation, api as u32, end - start);
    if !budget::is_due(site) {
        return not(NotFenced::Budget);
    }
    if !signals::are_ours() {
        return Placed::Not;
    }
    let own_calls = own_calls::are_made();
    if own_calls && kernel {
        return not(NotFenced::OwnCalls);
    }
    let number = memory::TABLE.count_operation(allocation);
    let managed = allocation.kind == MemoryKind::Managed;
    let (mut pieces, mut all) = pages::pieces(start, end, allocation, managed, number.into());
    if own_calls && pages::without_edges(&mut pieces, start, end) {
        count_not_fenced(NotFenced::OwnCalls);
        all = false;
    }
    if pieces.iter().all(|piece| piece.start >= piece.end) || holds_this_stack(start, end) {
        return not(NotFenced::Pages);
    }
    if !splits::is_room(allocation, &pieces) {
        return not(NotFenced::Mappings);
    }
    let slot = usize::from(pending.slot);
    let fence = Fence {
        slot,
        ticket: pending.ticket,
        waits: pending.waits,
        kernel,
        site,
        start,
        end,
        pieces,
        protection,
    };
    let is_over = || {
        CLOCK.has(slot, pending.ticket)
            || !table::is_same(allocation, memory::TABLE.find(allocation.start))
    };
    let finished = || FUNCTIONS[slot].1.load(Ordering::SeqCst);
    match table::TABLE.place(&fence, finished, is_over) {
        Some(true) if all => Placed::Whole,
        Some(true) => Placed::Partly,
        Some(false) => {
            // Huge pages of hugetlbfs, a seal, the limit of mappings.
            leave_alone(allocation, LeftAlone::Refused);
            not(NotFenced::LeftAlone)
        }
        None => not(NotFenced::Full),
    }
}

pub(super) fn leave_alone(allocation: &Allocation, reason: LeftAlone) {
    if memory::TABLE.leave_alone(allocation) {
        count_left_alone(reason);
    }
}

/// Whether the calling thread's stack lies among the bytes.
fn holds_this_stack(start: u64, end: u64) -> bool {
    let here = 0u8;
    (start..end).contains(&(&raw const here as u64))
}
