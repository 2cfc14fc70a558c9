//! The corpus against what is concluded from it: what each word is used for.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use libtest_mimic::Failed;
use streamsan_kernels::Directory;
use streamsan_kernels::access::{GlobalPointer, KernelAccess, ParameterMode, WordKind};
use streamsan_kernels::disassembler::Disassembler;
use streamsan_kernels::image::Target;
use streamsan_kernels::reader::{Reader, Request};
use streamsan_kernels::toolkit::Tool;

use super::compiler::Compiler;
use super::corpus::{self, Expected};

/// The form of the code that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Ptx,
    MachineCode,
}

impl Form {
    /// The name of the test.
    pub(crate) fn trial(self) -> &'static str {
        match self {
            Form::Ptx => "modes_from_ptx",
            Form::MachineCode => "modes_from_machine_code",
        }
    }

    /// The share of kernels, in percent, that must be concluded exactly.
    fn least_exact(self) -> u32 {
        match self {
            Form::Ptx => 95,
            Form::MachineCode => 95,
        }
    }
}

/// The counts over kernels and targets.
#[derive(Debug, Default)]
struct Score {
    kernels: u32,
    /// Kernels of which all is concluded that is true, and nothing more.
    exact: u32,
    words: u32,
    exact_words: u32,
    /// Words and kernels of which something true is not concluded.
    missed: Vec<String>,
    deviations: Vec<String>,
}

/// Reads the corpus in one form for every target and compares.
pub(crate) fn check(compiler: &Compiler, tool: Option<Tool>, form: Form) -> Result<(), Failed> {
    let scratch = Directory::for_this_run(&std::env::temp_dir())?;
    let tool = tool.filter(|_| form == Form::MachineCode);
    let tool = tool.map(|tool| Disassembler::new(tool, scratch, Duration::from_secs(300)));
    let reader = Reader::new(tool, None);
    let sources = corpus::read(Path::new(env!("CARGO_MANIFEST_DIR")));
    let mut compiled = Vec::new();
    for source in &sources {
        compiled.extend(compiler.compile(source)?.into_iter().map(|code| (source, code)));
    }
    let mut targets: Vec<Target> = compiled.iter().map(|(_, code)| code.target).collect();
    targets.sort();
    targets.dedup();
    let mut scores: Vec<(Target, Score)> = Vec::new();
    for target in targets {
        let mut kernels = Vec::new();
        let mut requests = Vec::new();
        for (source, code) in compiled.iter().filter(|(_, code)| code.target == target) {
            let image = if form == Form::Ptx { code.ptx.as_bytes() } else { &code.cubin };
            kernels.extend(&source.kernels);
            requests.extend(source.kernels.iter().map(|kernel| Request {
                image,
                device: target.capability,
                kernel: &kernel.name,
            }));
        }
        let mut score = Score::default();
        for (kernel, read) in kernels.into_iter().zip(reader.read(&requests)) {
            match read {
                Ok(read) => score.add(kernel, &read.access, target),
                Err(error) => score.missed.push(format!("{target} {}: {error}", kernel.name)),
            }
        }
        scores.push((target, score));
    }
    let mut missed = String::new();
    let (mut kernels, mut exact) = (0, 0);
    for (target, score) in &scores {
        for line in &score.deviations {
            println!("{line}");
        }
        println!(
            "{target}: {} of {} kernels exact, {} of {} words",
            score.exact, score.kernels, score.exact_words, score.words
        );
        for line in &score.missed {
            let _ = writeln!(missed, "{line}");
        }
        kernels += score.kernels;
        exact += score.exact;
    }
    if !missed.is_empty() {
        return Err(format!("not sound:\n{missed}").into());
    }
    if exact * 100 < kernels * form.least_exact() {
        return Err(format!("only {exact} of {kernels} kernels are exact").into());
    }
    Ok(())
}

impl Score {
    fn add(&mut self, expected: &Expected, found: &KernelAccess, target: Target) {
        self.kernels += 1;
        let before = self.deviations.len();
        let name = format!("{target} {}", expected.name);
        let anything = found.may_touch_anything();
        if expected.anything != anything {
            let reasons = found.unknown.join("; ");
            self.deviations.push(format!("{name}: anything: {anything} {reasons}"));
        }
        // To wait late or not at all is a fact that gives order: claiming it wrongly is unsound.
        if expected.waits != found.waits_on_primary {
            let line = format!("{name}: waits for the primary: {}", found.waits_on_primary);
            match found.waits_on_primary {
                true => self.missed.push(line),
                false => self.deviations.push(line),
            }
        }
        if expected.anything && !anything {
            self.missed.push(format!("{name}: pointers out of memory"));
        }
        for word in &expected.words {
            let place = format!("p{}.{}", word.param, word.offset);
            let same = |kind: WordKind| kind == word.kind;
            let other = found
                .pointers
                .iter()
                .find(|p| (p.param, p.offset) == (word.param, word.offset) && same(p.kind));
            let other = other.map_or((ParameterMode::None, false), |p| (p.mode, p.table));
            self.compare(&format!("{name} {place}"), (word.mode, word.table), other, anything);
        }
        for variable in &expected.variables {
            let other = found.globals.iter().find(|global| global.name == variable.name);
            let other = other.map_or((ParameterMode::None, false), |g| (g.mode, g.table));
            let place = format!("{name} {}", variable.name);
            self.compare(&place, (variable.mode, variable.table), other, anything);
        }
        let holder = |held: &GlobalPointer| &found.globals[held.global as usize].name;
        for held in &expected.held {
            let place = (&held.variable, held.offset);
            let other =
                found.global_pointers.iter().find(|other| (holder(other), other.offset) == place);
            let other = other.map_or(ParameterMode::None, |other| other.mode);
            let place = format!("{name} *{}.{}", held.variable, held.offset);
            self.compare(&place, (held.mode, false), (other, false), anything);
        }
        for extra in &found.global_pointers {
            let (variable, offset) = (holder(extra), extra.offset);
            if expected.held_in(variable, offset).is_none() {
                self.deviations.push(format!("{name} *{variable}.{offset}: is not true"));
            }
        }
        for extra in &found.pointers {
            let known = expected
                .words
                .iter()
                .any(|w| (w.param, w.offset, w.kind) == (extra.param, extra.offset, extra.kind));
            if !known && extra.mode != ParameterMode::None {
                let mode = extra.mode.description();
                let (param, offset, kind) = (extra.param, extra.offset, extra.kind);
                let line = format!("{name} p{param}.{offset}: {mode} {kind:?} is not true");
                self.deviations.push(line);
            }
        }
        for extra in &found.globals {
            let known = expected.variables.iter().any(|variable| variable.name == extra.name);
            // Constants that the compiler made itself are harmless.
            if !known && extra.mode != ParameterMode::Read {
                self.deviations.push(format!("{name} {}: is not true", extra.name));
            }
        }
        self.exact += u32::from(self.deviations.len() == before);
    }

    fn compare(
        &mut self,
        place: &str,
        expected: (ParameterMode, bool),
        found: (ParameterMode, bool),
        anything: bool,
    ) {
        self.words += 1;
        if expected == found {
            self.exact_words += 1;
            return;
        }
        let text = |(mode, table): (ParameterMode, bool)| {
            format!("{}{}", mode.description(), if table { "+table" } else { "" })
        };
        let line = format!("{place}: {} and not {}", text(found), text(expected));
        if !anything && !covers(found.0, expected.0) {
            self.missed.push(line.clone());
        }
        self.deviations.push(line);
    }
}

/// Whether nothing of what is true is missed.
fn covers(found: ParameterMode, truth: ParameterMode) -> bool {
    match (found, truth) {
        (_, ParameterMode::None) | (ParameterMode::Unknown, _) => true,
        // Atomic operations beside plain ones are both.
        (ParameterMode::ReadWrite, _) => true,
        (found, truth) => found == truth,
    }
}
