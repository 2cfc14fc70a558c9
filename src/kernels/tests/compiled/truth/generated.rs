//! Random loops in PTX: what is concluded of them must hold for arguments of every size, those for
//! which a counter passes the end of its type included.

use std::fmt::Write as _;

use libtest_mimic::Failed;
use proptest::test_runner::{RngAlgorithm, TestRng};
use streamsan_kernels::access::{ParameterMode, WordKind, analyse};
use streamsan_kernels::ptx;

use super::runs::{self, Kernel};
use super::sets;
use crate::corpus::{Escape, Expected, Precision, Rule, Values, Word};
use proptest::prelude::Rng;
use streamsan_interp::Program;

const KERNELS: u32 = 500;
const LAUNCHES: u32 = 6;
/// Instructions that a launch may take: many loops end only when a counter has come around.
const PATIENCE: u64 = 1_600;
/// Kernels whose sets must be the same as what is touched, in all launches that end.
const LEAST_SAME: u32 = 300;

struct Generator {
    random: TestRng,
    text: String,
    labels: u32,
    /// Bits of counters.
    bits: u32,
}

impl Generator {
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.next_u32() as usize % of.len()]
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "\t{line}");
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    /// A register or number that does not change in loops.
    fn value(&mut self) -> String {
        let mut all = vec!["%n", "%m", "%me", "%at", "%rounded", "0", "1", "17", "-3"];
        all.extend(["%n", "%rounded", "0"]);
        self.pick(&all).to_owned()
    }

    fn step(&mut self) -> String {
        let all = ["1", "1", "1", "4", "4", "2", "3", "-1", "-1", "-4", "%m", "%threads"];
        self.pick(&all).to_owned()
    }

    /// `%p = counter OP bound`, with types of every kind.
    fn test(&mut self, counter: &str, bound: &str, step: &str) {
        let down = step.starts_with('-');
        let usual = if down { ["gt", "ge", "ne"] } else { ["lt", "le", "ne"] };
        let odd = ["lt", "le", "gt", "ge", "ne", "eq"];
        let rare = self.random.next_u32().is_multiple_of(12);
        let op = if rare { self.pick(&odd) } else { self.pick(&usual) };
        let sign = self.pick(&["s", "s", "u"]);
        let bits = self.bits;
        self.line(&format!("setp.{op}.{sign}{bits} %p, {counter}, {bound};"));
    }

    fn store(&mut self, counter: &str) {
        let offset = self.pick(&[0, 0, 4, 12, -4]);
        match (self.bits, self.pick(&[0, 1, 2])) {
            (32, 0) => self.line(&format!("mul.wide.u32 %offset, {counter}, 4;")),
            (32, _) => self.line(&format!("mul.wide.s32 %offset, {counter}, 4;")),
            _ => self.line(&format!("shl.b64 %offset, {counter}, 2;")),
        }
        self.line("add.s64 %address, %data, %offset;");
        self.line(&format!("st.global.u32 [%address+{offset}], 1;"));
    }

    /// A loop from where the counter is; another one in it where there is depth left.
    fn round(&mut self, number: u32, depth: u32) {
        let counter = format!("%i{number}");
        let (step, bound) = (self.step(), self.value());
        let (head, end) = (self.label(), self.label());
        let (bits, tested_first) = (self.bits, self.pick(&[true, false]));
        let guarded = self.pick(&[true, true, false]);
        if !tested_first && guarded {
            self.test(&counter, &bound, &step);
            self.line(&format!("@!%p bra {end};"));
        }
        let _ = writeln!(self.text, "{head}:");
        if tested_first {
            self.test(&counter, &bound, &step);
            self.line(&format!("@!%p bra {end};"));
        }
        self.store(&counter);
        if self.pick(&[true, false]) {
            self.line("st.global.u32 [%running], 1;");
            let by = self.pick(&[4, 16, -4]);
            self.line(&format!("add.s64 %running, %running, {by};"));
        }
        if depth > 0 {
            let start = self.pick(&["%i0", "0", "%n"]).to_owned();
            self.line(&format!("mov.b{bits} %i{}, {start};", number + 1));
            self.round(number + 1, depth - 1);
        }
        self.line(&format!("add.s{bits} {counter}, {counter}, {step};"));
        if tested_first {
            self.line(&format!("bra {head};"));
        } else {
            self.test(&counter, &bound, &step);
            self.line(&format!("@%p bra {head};"));
        }
        let _ = writeln!(self.text, "{end}:");
        if self.pick(&[true, false]) {
            self.store(&counter);
        }
    }

    fn kernel(&mut self) -> String {
        self.text.clear();
        let bits = self.bits;
        let head = format!(
            ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry loops(.param .u64 p0, \
             .param .u32 p1, .param .u32 p2)\n{{\n\t.reg .pred %p;\n\t.reg .b32 %a<4>;\n\t.reg \
             .b64 %data, %offset, %address, %running;\n\t.reg .b{bits} %n, %m, %me, %at, \
             %threads, %rounded, %i<4>;\n"
        );
        self.text.push_str(&head);
        self.line("ld.param.u64 %data, [p0];");
        self.line("mov.u64 %running, %data;");
        let sign = self.pick(&["s", "u"]);
        for (name, from) in [("%n", "[p1]"), ("%m", "[p2]")] {
            self.line(&format!("ld.param.{sign}32 {name}, {from};"));
        }
        for (name, special) in [("%me", "%tid.x"), ("%threads", "%ntid.x"), ("%at", "%ctaid.x")] {
            self.line(&format!("mov.u32 %a0, {special};"));
            match bits {
                32 => self.line(&format!("mov.u32 {name}, %a0;")),
                _ => self.line(&format!("cvt.u64.u32 {name}, %a0;")),
            }
        }
        self.line(&format!("mad.lo.s{bits} %at, %at, %threads, %me;"));
        self.line(&format!("and.b{bits} %rounded, %n, 3;"));
        if self.pick(&[true, false]) {
            self.line(&format!("sub.s{bits} %rounded, %n, %rounded;"));
        }
        let start = self.value();
        self.line(&format!("mov.b{bits} %i0, {start};"));
        let skip = self.pick(&[true, false, false]).then(|| self.label());
        if let Some(skip) = &skip {
            self.line(&format!("setp.lt.u{bits} %p, %n, 4;"));
            self.line(&format!("@%p bra {skip};"));
        }
        let depth = self.pick(&[0, 0, 1]);
        self.round(0, depth);
        if let Some(skip) = &skip {
            let _ = writeln!(self.text, "{skip}:");
        }
        // The rest, from where the first loop ended.
        if self.pick(&[true, true, false]) {
            self.round(0, 0);
        }
        self.line("ret;");
        self.text.push_str("}\n");
        std::mem::take(&mut self.text)
    }
}

fn rule() -> Expected {
    let edges = [0, 1, 2, 3, 4, 5, 7, 8, 11, 16, 30, 64, u32::MAX, u32::MAX - 3];
    // In the time that a launch has, larger steps leave what an anchored access stands for.
    let steps = Values::OneOf(edges.iter().copied().filter(|&edge| edge <= 64).collect());
    let edges = edges.into_iter().chain([i32::MAX as u32, 1 << 31, (1 << 31) + 5, 9, 10, 12]);
    let values = Values::OneOf(edges.collect());
    let three = |last| [Values::Between(1..=last), Values::OneOf(vec![1]), Values::OneOf(vec![1])];
    let launch = Rule {
        grid: Some(three(2)),
        block: Some(three(4)),
        values: vec![(1, 0..4, values), (2, 0..4, steps)],
        ..Rule::default()
    };
    let data = Word {
        param: 0,
        offset: 0,
        kind: WordKind::Pointer,
        mode: ParameterMode::Write,
        table: false,
    };
    Expected {
        name: "loops".to_owned(),
        words: vec![data],
        variables: Vec::new(),
        held: Vec::new(),
        anything: false,
        waits: false,
        range: Precision::Bounded,
        why: Some(Escape::Shape),
        launch,
    }
}

/// Runs random kernels, and compares.
pub(crate) fn check() -> Result<(), Failed> {
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut launches = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut generator = Generator { random, text: String::new(), labels: 0, bits: 32 };
    let rule = rule();
    let (mut wrong, mut same) = (Vec::new(), 0);
    for number in 0..KERNELS {
        generator.bits = if number.is_multiple_of(2) { 32 } else { 64 };
        let text = generator.kernel();
        let module = ptx::parse(&text).map_err(|error| format!("{error}:\n{text}"))?;
        let program = Program::lower(&module).map_err(|error| format!("{error}:\n{text}"))?;
        let launch = || runs::launch(&program, &rule, &mut launches, PATIENCE);
        let runs: Result<Vec<_>, String> =
            std::iter::repeat_with(launch).take(LAUNCHES as usize).collect();
        let kernel = Kernel { rule: &rule, variables: Vec::new(), runs: runs? };
        let found = analyse(&module);
        let access = found.first().ok_or("no kernel")?;
        let judged = sets::judge(&kernel, access);
        same += u32::from(judged.loose.is_none());
        if let Some(why) = judged.wrong {
            let accesses = access.accesses.iter().map(|one| access.describe(one));
            let accesses: Vec<String> = accesses.collect();
            wrong.push(format!("{text}{why}\n{}", accesses.join("\n")));
        }
    }
    println!("{same} of {KERNELS} kernels have the same sets");
    if !wrong.is_empty() {
        let shown: Vec<String> = wrong.iter().take(3).cloned().collect();
        return Err(format!("{} kernels:\n{}", wrong.len(), shown.join("\n")).into());
    }
    if same < LEAST_SAME {
        return Err("too few kernels have the same sets".into());
    }
    Ok(())
}
