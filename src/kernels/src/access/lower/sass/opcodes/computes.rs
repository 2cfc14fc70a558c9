//! Opcodes that compute with registers and whose results are followed.
//!
//! Stage: lowering. Invariant: an unknown form assigns the same registers and is not followed.

use super::*;

impl Lifter<'_> {
    pub(super) fn moves(&mut self) {
        let count = if self.has("64") { 2 } else { 1 };
        let results = (0..count).map(|n| self.target(0, n)).collect();
        let sources = (0..count).map(|n| self.source(1, n)).collect();
        self.push(Operation::Move, results, sources);
    }

    /// Moves a register to or from a half of the place that a function returns to, where compilers
    /// keep registers that they need for something else in between.
    pub(super) fn move_return(&mut self) {
        let half = |at| match self.operand(at) {
            Some(Operand::Other(name)) if name == "Rpc.LO" => Some(RETURN),
            Some(Operand::Other(name)) if name == "Rpc.HI" => Some(RETURN + 1),
            _ => None,
        };
        let moved = match (half(0), half(1)) {
            _ if !self.has("32") => None,
            (Some(result), None) => Some((result, self.source(1, 0))),
            (None, Some(half)) => {
                Some((self.target(0, 0), LiftedSource::plain(SourceValue::Register(half))))
            }
            _ => None,
        };
        match moved {
            Some((result, source)) => {
                self.push(Operation::Move, smallvec![result], smallvec![source]);
            }
            None => {
                let results = smallvec![self.target(0, 0), self.target(0, 1), RETURN, RETURN + 1];
                self.unread(results, "");
            }
        }
    }

    pub(super) fn special(&mut self) {
        let name = match self.operand(1) {
            Some(Operand::Special(name)) => name.as_str(),
            _ => "",
        };
        let dimension = match name.as_bytes().last() {
            Some(b'X') => 0,
            Some(b'Y') => 1,
            _ => 2,
        };
        let index = match name {
            "SR_TID.X" | "SR_TID.Y" | "SR_TID.Z" => Some(Index::Thread(dimension)),
            "SR_CTAID.X" | "SR_CTAID.Y" | "SR_CTAID.Z" => Some(Index::Block(dimension)),
            "SR_NTID.X" | "SR_NTID.Y" | "SR_NTID.Z" => Some(Index::BlockSize(dimension)),
            "SR_NCTAID.X" | "SR_NCTAID.Y" | "SR_NCTAID.Z" => Some(Index::GridSize(dimension)),
            "SR_LANEID" => Some(Index::Lane),
            _ => None,
        };
        let operation = match name {
            "SR_SWINHI" | "SR_SWINLO" | "SR_LWINHI" | "SR_LWINLO" => Operation::Window,
            _ => Operation::Special(index),
        };
        let result = self.target(0, 0);
        self.push(operation, smallvec![result], smallvec![]);
    }

    /// Predicates in a row from an operand on; their end.
    pub(super) fn predicates(&self, from: usize) -> usize {
        let mut at = from;
        while self.is_predicate(at) {
            at += 1;
        }
        at
    }

    pub(super) fn add(&mut self) {
        let first = self.predicates(1);
        let mut results: SmallVec<[u32; 4]> = smallvec![self.target(0, 0)];
        let carries: Vec<u32> = (1..first).map(|at| self.target(at, 0)).collect();
        let last = self.predicates(self.value_end(first));
        if self.has("64") {
            results.push(self.target(0, 1));
            let end = self.value_end(first);
            let sources = (first..end).flat_map(|at| [self.source(at, 0), self.source(at, 1)]);
            let sources = sources.collect();
            self.push(Operation::AddPairs, results, sources);
            (1..first).for_each(|at| self.opaque_predicate(at));
            return;
        }
        results.extend(carries);
        results.resize(3, NOWHERE);
        let end = self.value_end(first);
        let mut sources: LiftedSources = (first..end).map(|at| self.source(at, 0)).collect();
        sources.truncate(3);
        sources.resize(3, constant(0));
        let extended = self.has("X");
        if extended {
            sources.extend((end..last).map(|at| self.source(at, 0)));
        }
        self.push(Operation::Add { extended }, results, sources);
    }

    /// The first operand from `first` on that is a predicate or missing.
    pub(super) fn value_end(&self, first: usize) -> usize {
        let mut at = first;
        while self.operand(at).is_some() && !self.is_predicate(at) {
            at += 1;
        }
        at
    }

    pub(super) fn multiply(&mut self) {
        let first = self.predicates(1);
        let carry = if first > 1 { self.target(1, 0) } else { NOWHERE };
        let half = match (self.has("WIDE"), self.has("HI")) {
            (true, _) => Half::Both,
            (_, true) => Half::High,
            _ => Half::Low,
        };
        let upper = if half == Half::Both { self.target(0, 1) } else { NOWHERE };
        let results = smallvec![self.target(0, 0), upper, carry];
        let mut sources: LiftedSources = (first..first + 3).map(|at| self.source(at, 0)).collect();
        if self.operand(first + 2).is_none() {
            sources[2] = constant(0);
        }
        let second = if half == Half::Low { constant(0) } else { self.source(first + 2, 1) };
        sources.push(second);
        let extended = self.has("X");
        if extended {
            sources.push(self.source(first + 3, 0));
        }
        let signed = !self.has("U32");
        self.push(Operation::Multiply { half, signed, extended }, results, sources);
    }

    pub(super) fn scale(&mut self) {
        let first = self.predicates(1);
        let mut results: SmallVec<[u32; 4]> = smallvec![self.target(0, 0)];
        results.extend((1..first).map(|at| self.target(at, 0)));
        results.resize(2, NOWHERE);
        let high = self.has("HI");
        let signed = self.has("SX32");
        let extended = self.has("X");
        let end = self.value_end(first);
        // The shift is the last value; a third one in front of it is the upper half.
        let shift = match self.operand(end.saturating_sub(1)) {
            Some(Operand::Integer(shift)) => Some(*shift),
            _ => None,
        };
        let Some(shift @ 0..=31) = shift else {
            return self.opaque_of_all();
        };
        let mut sources: LiftedSources = (first..end - 1).map(|at| self.source(at, 0)).collect();
        sources.resize(3, constant(0));
        if extended {
            sources.push(self.source(end, 0));
        }
        let half = if high { Half::High } else { Half::Low };
        let operation = Operation::Scale { shift: shift as u32, half, extended, signed };
        self.push(operation, results, sources);
    }

    pub(super) fn shift(&mut self) {
        let left = self.has("L");
        let wide = self.has("U64") || self.has("S64");
        let signed = self.has("S32") || self.has("S64");
        let operation = Operation::Shift { left, signed, upper: self.has("HI"), wide };
        let sources = (1..4).map(|at| self.source(at, 0)).collect();
        let result = self.target(0, 0);
        self.push(operation, smallvec![result], sources);
    }

    pub(super) fn plain_shift(&mut self, left: bool) {
        let signed = !self.has("U32");
        let operation = Operation::Shift { left, signed, upper: !left, wide: false };
        let (value, by) = (self.source(1, 0), self.source(2, 0));
        let sources = match left {
            true => smallvec![value, by, constant(0)],
            false => smallvec![constant(0), by, value],
        };
        let result = self.target(0, 0);
        self.push(operation, smallvec![result], sources);
    }

    pub(super) fn logic(&mut self) {
        let first = usize::from(self.is_predicate(0));
        let result = self.target(first, 0);
        let predicate = if first == 1 { self.target(0, 0) } else { NOWHERE };
        let end = self.value_end(first + 1);
        let table = match self.operand(end.saturating_sub(1)) {
            Some(Operand::Integer(table)) => *table as u8,
            _ => return self.opaque_of_all(),
        };
        let mut sources: LiftedSources =
            (first + 1..end - 1).map(|at| self.source(at, 0)).collect();
        if sources.len() != 3 {
            return self.opaque_of_all();
        }
        sources.push(self.source(end, 0));
        self.push(Operation::Logic { table }, smallvec![result, predicate], sources);
    }

    pub(super) fn predicate_logic(&mut self) {
        let results = smallvec![self.target(0, 0), self.target(1, 0)];
        let sources: LiftedSources = (2..5).map(|at| self.source(at, 0)).collect();
        let table = |at| match self.operand(at) {
            Some(Operand::Integer(table)) => Some(*table as u8),
            _ => None,
        };
        match (table(5), table(6)) {
            (Some(a), Some(b)) => {
                self.push(Operation::PredicateLogic { tables: [a, b] }, results, sources);
            }
            _ => self.opaque_of_all(),
        }
    }

    pub(super) fn choose(&mut self) {
        let pair = self.has("64");
        let count = 1 + u8::from(pair);
        let results = (0..count).map(|n| self.target(0, n)).collect();
        let mut sources = LiftedSources::new();
        for at in 1..3 {
            sources.extend((0..count).map(|n| self.source(at, n)));
        }
        sources.push(self.source(3, 0));
        self.push(Operation::Choose { pair }, results, sources);
    }

    pub(super) fn extreme(&mut self, sum: bool) {
        let end = self.value_end(1);
        let mut sources: LiftedSources = (1..end).map(|at| self.source(at, 0)).collect();
        if sources.len() != 2 + usize::from(sum) {
            return self.opaque_of_all();
        }
        sources.push(self.source(end, 0));
        let signed = !self.has("U32");
        let result = self.target(0, 0);
        self.push(Operation::Extreme { signed, sum }, smallvec![result], sources);
    }

    /// The least or greatest of three: the first two, and what that is with the third.
    pub(super) fn extreme_of_three(&mut self) {
        let end = self.value_end(1);
        let result = self.target(0, 0);
        // The result may be one of the sources of the second step.
        if end != 4 || self.source(3, 0).origin == SourceValue::Register(result) {
            return self.opaque_of_all();
        }
        let signed = !self.has("U32");
        let which = self.source(end, 0);
        let first = smallvec![self.source(1, 0), self.source(2, 0), which];
        let operation = Operation::Extreme { signed, sum: false };
        self.push(operation.clone(), smallvec![result], first);
        let between = LiftedSource::plain(SourceValue::Register(result));
        let second = smallvec![between, self.source(3, 0), which];
        self.push(operation, smallvec![result], second);
    }

    pub(super) fn compare(&mut self) {
        let order = match self.instruction.modifiers.first().map_or("", String::as_str) {
            "LT" => Order::Less,
            "LE" => Order::LessEqual,
            "GT" => Order::Greater,
            "GE" => Order::GreaterEqual,
            "EQ" => Order::Equal,
            "NE" => Order::Differs,
            _ => Order::Other,
        };
        let combine = match (self.has("AND"), self.has("OR")) {
            (true, _) => Combine::And,
            (_, true) => Combine::Or,
            _ => Combine::Other,
        };
        let results = smallvec![self.target(0, 0), self.target(1, 0)];
        if self.has("U64") || self.has("S64") || self.has("64") {
            let signed = !self.has("U64");
            let halves = [(2, 0), (2, 1), (3, 0), (3, 1), (4, 0)];
            let sources =
                halves.map(|(at, further)| self.source(at, further)).into_iter().collect();
            return self.push(Operation::ComparePairs { order, signed, combine }, results, sources);
        }
        let extended = self.has("EX");
        let sources = (2..5 + usize::from(extended)).map(|at| self.source(at, 0)).collect();
        let signed = !self.has("U32");
        self.push(Operation::Compare { order, signed, extended, combine }, results, sources);
    }
}
