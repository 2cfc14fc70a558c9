//! Placing fences behind a submission that has succeeded.

use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;

use streamsan_wire::Api;

use super::super::operands::{self, Does};
use super::memory::{self, Allocation, Kind};
use super::table::{self, Fence};
use super::{CLOCK, FUNCTIONS, Pending, count, is_captured, is_host_memory, is_watching, pages};
use super::{signals, storm, sweep};
use crate::capture::Params;

/// The kernel has been launched. Its parameters are looked at here, since they are at hand while
/// the call is recorded.
pub(crate) fn launched(params: &Params, pending: &Pending, found: &mut Found) {
    if pending.ticket == 0 || !is_watching() {
        return;
    }
    params.each_word(&mut |word| {
        if let Ok(Some(allocation)) = memory::TABLE.find(word) {
            found.add(word, allocation);
        }
    });
}

/// Memory of the host that a kernel was given.
pub(crate) struct Found {
    count: usize,
    /// The first `count` are written.
    list: [MaybeUninit<(u64, Allocation)>; Self::MOST],
}

impl Found {
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
            // Of managed memory the device may take any of it.
            let start = if allocation.kind == Kind::Managed { allocation.start } else { *word };
            let range = (start, allocation.end);
            tally.add(fence(range, allocation, libc::PROT_NONE, pending, true));
        }
        tally.tell();
    }
}

pub(super) fn copied(api: Api, words: &[u64], pending: &Pending) {
    if is_captured(api, words) {
        return;
    }
    let mut tally = Tally::default();
    let (mut source, mut ordered) = (false, false);
    operands::each(api, words, &mut |operand| {
        let found = memory::TABLE.find(operand.start).ok().flatten();
        let is_host = match found {
            Some(allocation) => allocation.kind != Kind::Managed,
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
    operands::each(api, words, &mut |operand| {
        let Ok(Some(allocation)) = memory::TABLE.find(operand.start) else { return };
        if allocation.kind == Kind::Managed || operand.during_call {
            return;
        }
        let protection = match operand.does {
            Does::Read => libc::PROT_READ,
            Does::Write => libc::PROT_NONE,
        };
        let range = (operand.start, operand.end().min(allocation.end));
        tally.add(fence(range, &allocation, protection, pending, false));
    });
    tally.tell();
}

/// What became of an operation's memory.
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
    kernel: bool,
) -> Placed {
    if memory::TABLE.is_left_alone(allocation) || storm::rages() || !signals::are_ours() {
        return Placed::Not;
    }
    let number = memory::TABLE.count_operation(allocation);
    let managed = allocation.kind == Kind::Managed;
    let (pieces, all) = pages::pieces(start, end, allocation, managed, number.into());
    if pieces[0].start >= pieces[0].end || holds_this_stack(start, end) {
        return Placed::Not;
    }
    let slot = usize::from(pending.slot);
    let fence = Fence {
        slot,
        ticket: pending.ticket,
        waits: pending.waits,
        kernel,
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
            leave_alone(allocation);
            Placed::Not
        }
        None => Placed::Not,
    }
}

pub(super) fn leave_alone(allocation: &Allocation) {
    if memory::TABLE.leave_alone(allocation) {
        count(|counters| &counters.left_alone);
    }
}

/// Whether the calling thread's stack lies among the bytes.
fn holds_this_stack(start: u64, end: u64) -> bool {
    let here = 0u8;
    (start..end).contains(&(&raw const here as u64))
}
