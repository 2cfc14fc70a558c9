//! `mbarrier`: barriers that are objects in shared memory (PTX ISA, "mbarrier").
//!
//! The 64 bits of an object are opaque to programs. Here they are: bits 0 to 19 the arrivals still
//! pending, 20 to 39 those expected in each phase, and bit 63 the parity of the current phase.
//! Deliberately absent: transaction counts, which only bulk copies use.

use streamsan_ptx::{Operand, Space, Type};

use super::form::{Form, Lowered, Problem};
use super::function::FunctionLowering;
use super::operand::Location;
use crate::code::{Op, Place, SINK, Slot};

const COUNT: u64 = 0xf_ffff;
const PARITY: u64 = 1 << 63;
/// Virtual nanoseconds that a failed test costs, so that others run before the next one.
const PAUSE: u64 = 20;

fn initial(count: u64) -> u64 {
    (count & COUNT) << 20 | (count & COUNT)
}

fn arrive(old: u64, count: u64, _: u64) -> u64 {
    let (pending, expected) = (old & COUNT, old >> 20 & COUNT);
    if pending > count { old - count } else { ((old & PARITY) ^ PARITY) | initial(expected) }
}

fn arrive_and_drop(old: u64, count: u64, _: u64) -> u64 {
    let expected = (old >> 20 & COUNT).saturating_sub(count);
    arrive((old & !(COUNT << 20)) | expected << 20, count, 0)
}

impl FunctionLowering<'_, '_> {
    fn barrier_object(&mut self, operand: &Operand, shared: bool) -> Lowered<(Location, Place)> {
        let location = self.address(operand)?;
        let named = if shared { Place::Shared } else { Place::Generic };
        let place = location.place.unwrap_or(named);
        Ok((location, place))
    }

    pub(super) fn mbarrier(&mut self, form: &Form<'_>) -> Lowered<()> {
        let is_space = |word: &&str| Space::from_name(word) == Some(Space::Shared);
        let shared = form.words.iter().any(is_space);
        let orders = ["acquire", "release", "relaxed", "cta", "cluster"];
        let words: Vec<&str> =
            form.words.iter().copied().filter(|w| !is_space(w) && !orders.contains(w)).collect();
        match words[..] {
            ["init"] => {
                let (location, place) = self.barrier_object(form.operand(0)?, shared)?;
                let Location { base: a, offset, .. } = location;
                let count = self.source(form.operand(1)?, Type::U32)?;
                let v = self.temporary();
                self.push(Op::Alu1 { f: initial, d: v, a: count });
                self.push(Op::Store { place, strong: false, size: 8, v, a, offset });
            }
            ["inval"] => self.push(Op::Nop),
            ["arrive"] | ["arrive", "noComplete"] => self.arrive(form, shared, arrive)?,
            ["arrive_drop"] | ["arrive_drop", "noComplete"] => {
                self.arrive(form, shared, arrive_and_drop)?;
            }
            ["test_wait" | "try_wait"] => {
                let state = self.source(form.operand(2)?, Type::B64)?;
                self.test(
                    form,
                    shared,
                    |now, state| u64::from((now ^ state) & PARITY != 0),
                    state,
                )?;
            }
            ["test_wait" | "try_wait", "parity"] => {
                let parity = self.source(form.operand(2)?, Type::U32)?;
                self.test(form, shared, |now, parity| u64::from(now >> 63 != parity & 1), parity)?;
            }
            ["pending_count"] => {
                let a = self.source(form.operand(1)?, Type::B64)?;
                let d = self.destination(form.operand(0)?)?;
                self.push(Op::Alu1 { f: |state| state & COUNT, d, a });
            }
            _ => return Err(Problem::Unsupported),
        }
        Ok(())
    }

    fn arrive(
        &mut self,
        form: &Form<'_>,
        shared: bool,
        f: fn(u64, u64, u64) -> u64,
    ) -> Lowered<()> {
        let d = self.destination(form.operand(0)?)?;
        let (location, place) = self.barrier_object(form.operand(1)?, shared)?;
        let b = match form.instruction.operands.get(2) {
            Some(count) => self.source(count, Type::U32)?,
            None => self.bits(1),
        };
        let Location { base: a, offset, .. } = location;
        self.push(Op::Atomic { f, place, strong: false, size: 8, d, a, offset, b, c: SINK });
        Ok(())
    }

    fn test(
        &mut self,
        form: &Form<'_>,
        shared: bool,
        f: fn(u64, u64) -> u64,
        b: Slot,
    ) -> Lowered<()> {
        let d = self.destination(form.operand(0)?)?;
        let (location, place) = self.barrier_object(form.operand(1)?, shared)?;
        let Location { base: a, offset, .. } = location;
        let now = self.temporary();
        self.push(Op::Load { place, strong: false, size: 8, d: now, a, offset });
        self.push(Op::Alu2 { f, d, a: now, b });
        let pause = self.bits(PAUSE);
        let after = self.code.ops.len() as u32 + 2;
        self.push(Op::BranchIf { p: d, negated: false, target: after });
        self.push(Op::Sleep { a: pause });
        Ok(())
    }
}
