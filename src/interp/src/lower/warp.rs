//! Barriers and operations across a warp.

use streamsan_ptx::{Operand, Type};

use super::form::{Form, Lowered, Problem, invalid};
use super::function::FunctionLowering;
use crate::code::{BarrierKind, Op, SINK, Slot, WarpKind};

impl FunctionLowering<'_, '_> {
    fn meet(&mut self, kind: WarpKind, d: Slot, p: Slot, inputs: [Slot; 3], mask: Option<Slot>) {
        let [a, b, c] = inputs;
        self.push(Op::Warp { kind, d, p, a, b, c, mask });
    }

    /// The member mask, where the instruction has `.sync`; the old forms take whoever is there.
    fn member_mask(&mut self, form: &Form<'_>, at: usize) -> Lowered<Option<Slot>> {
        if form.has("sync") {
            return Ok(Some(self.source(form.operand(at)?, Type::U32)?));
        }
        form.at_most(at)?;
        Ok(None)
    }

    /// `bar`, `barrier`.
    pub(super) fn barrier(&mut self, form: &Form<'_>) -> Lowered<()> {
        let words: Vec<&str> =
            form.words.iter().copied().filter(|w| !matches!(*w, "cta" | "aligned")).collect();
        let kind = match words[..] {
            ["warp", "sync"] => {
                let mask = self.source(form.operand(0)?, Type::U32)?;
                self.meet(WarpKind::Barrier, SINK, SINK, [SINK; 3], Some(mask));
                return Ok(());
            }
            ["sync"] => BarrierKind::Sync,
            ["arrive"] => BarrierKind::Arrive,
            ["red", "popc"] => BarrierKind::Popc,
            ["red", "and"] => BarrierKind::And,
            ["red", "or"] => BarrierKind::Or,
            _ => return Err(Problem::Unsupported),
        };
        let operands = &form.instruction.operands[..];
        let (d, rest) = match (words[0], operands) {
            ("red", [first, rest @ ..]) => (self.destination(first)?, rest),
            _ => (SINK, operands),
        };
        let (p, rest) = match (words[0], rest) {
            ("red", [rest @ .., last]) => (self.source(last, Type::Pred)?, rest),
            _ => (SINK, rest),
        };
        let (id, count) = match rest {
            [] => return invalid("the number of the barrier is missing"),
            [id] => (id, None),
            [id, count] => (id, Some(self.source(count, Type::U32)?)),
            _ => return invalid("more operands than a barrier takes"),
        };
        if kind == BarrierKind::Arrive && count.is_none() {
            return invalid("an arrival needs the number of threads");
        }
        let id = self.source(id, Type::U32)?;
        self.push(Op::Barrier { kind, id, count, d, p });
        Ok(())
    }

    pub(super) fn shuffle(&mut self, form: &Form<'_>) -> Lowered<()> {
        let kind = match form.words.iter().copied().find(|w| *w != "sync") {
            Some("up") => WarpKind::ShuffleUp,
            Some("down") => WarpKind::ShuffleDown,
            Some("bfly") => WarpKind::ShuffleButterfly,
            Some("idx") => WarpKind::ShuffleIndex,
            _ => return Err(Problem::Unsupported),
        };
        let inputs = [
            self.source(form.operand(1)?, form.ty(0)?)?,
            self.source(form.operand(2)?, Type::U32)?,
            self.source(form.operand(3)?, Type::U32)?,
        ];
        let mask = self.member_mask(form, 4)?;
        let (d, p) = self.destination_pair(form.operand(0)?)?;
        self.meet(kind, d, p, inputs, mask);
        Ok(())
    }

    pub(super) fn vote(&mut self, form: &Form<'_>) -> Lowered<()> {
        let kind = match form.words.iter().copied().find(|w| *w != "sync") {
            Some("all") => WarpKind::VoteAll,
            Some("any") => WarpKind::VoteAny,
            Some("uni") => WarpKind::VoteUniform,
            Some("ballot") => WarpKind::VoteBallot,
            _ => return Err(Problem::Unsupported),
        };
        let a = self.source(form.operand(1)?, Type::Pred)?;
        let mask = self.member_mask(form, 2)?;
        let d = self.destination(form.operand(0)?)?;
        self.meet(kind, d, SINK, [a, SINK, SINK], mask);
        Ok(())
    }

    pub(super) fn match_lanes(&mut self, form: &Form<'_>) -> Lowered<()> {
        let kind = match form.words[..] {
            ["any", "sync"] => WarpKind::MatchAny,
            ["all", "sync"] => WarpKind::MatchAll,
            _ => return Err(Problem::Unsupported),
        };
        let a = self.source(form.operand(1)?, form.ty(0)?)?;
        let mask = self.member_mask(form, 2)?;
        let (d, p) = self.destination_pair(form.operand(0)?)?;
        self.meet(kind, d, p, [a, SINK, SINK], mask);
        Ok(())
    }

    pub(super) fn redux(&mut self, form: &Form<'_>) -> Lowered<()> {
        let ty = form.ty(0)?;
        let kind = match (&form.words[..], ty) {
            (["sync", "add"], Type::U32 | Type::S32) => WarpKind::ReduceAdd,
            (["sync", "min"], Type::U32) => WarpKind::ReduceMinUnsigned,
            (["sync", "max"], Type::U32) => WarpKind::ReduceMaxUnsigned,
            (["sync", "min"], Type::S32) => WarpKind::ReduceMinSigned,
            (["sync", "max"], Type::S32) => WarpKind::ReduceMaxSigned,
            (["sync", "and"], Type::B32) => WarpKind::ReduceAnd,
            (["sync", "or"], Type::B32) => WarpKind::ReduceOr,
            (["sync", "xor"], Type::B32) => WarpKind::ReduceXor,
            _ => return Err(Problem::Unsupported),
        };
        let a = self.source(form.operand(1)?, ty)?;
        let mask = self.member_mask(form, 2)?;
        let d = self.destination(form.operand(0)?)?;
        self.meet(kind, d, SINK, [a, SINK, SINK], mask);
        Ok(())
    }

    pub(super) fn active_mask(&mut self, form: &Form<'_>) -> Lowered<()> {
        let d = self.destination(form.operand(0)?)?;
        self.meet(WarpKind::ActiveMask, d, SINK, [SINK; 3], None);
        Ok(())
    }

    pub(super) fn elect(&mut self, form: &Form<'_>) -> Lowered<()> {
        form.only(&["sync"])?;
        let mask = self.source(form.operand(1)?, Type::U32)?;
        let (d, p) = match form.operand(0)? {
            Operand::Pair(..) => self.destination_pair(form.operand(0)?)?,
            _ => return invalid("`elect` has a register and a predicate as result"),
        };
        self.meet(WarpKind::Elect, d, p, [SINK; 3], Some(mask));
        Ok(())
    }
}
