//! What is concluded from compiled kernels against what they do: the interpreter runs the PTX of
//! the corpus of CUDA sources on random launches and records every byte; what is concluded from
//! the PTX and from the machine code of every target must cover these bytes, what is called exact
//! must be touched, and where the corpus says that a launch can be known exactly, the sets are the
//! same.
//!
//! Needs NVIDIA's compiler, and its disassembler for machine code. Where the machine has none, the
//! tests are shown as ignored. The interpreter is a private part of the library, so it is compiled
//! into this test a second time.

#[path = "../../../kernels/tests/compiled/compiler.rs"]
mod compiler;
#[path = "../../../kernels/tests/compiled/corpus.rs"]
#[expect(dead_code, reason = "what words are used for is compared elsewhere")]
mod corpus;
mod generated;
#[path = "../../src/interp/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the driver uses the rest, and its own tests")]
mod interp;
mod memory;
mod runs;
mod sets;

use std::collections::BTreeMap;
use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use streamsan_kernels::access::KernelAccess;
use streamsan_kernels::disassembler::Disassembler;
use streamsan_kernels::image::Target;
use streamsan_kernels::reader::{Reader, Request};
use streamsan_kernels::toolkit::Places;

use compiler::Compiler;
use corpus::Precision;
use runs::Kernel;
use sets::Judged;

/// Kernels that the interpreter must be able to run.
const FLOOR: usize = 150;

/// Of which code the conclusions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Ptx,
    MachineCode,
}

/// What is counted of kernels, each once for every target.
#[derive(Debug, Default)]
struct Score {
    /// Whose sets can be known exactly, and of those, whose are in every launch.
    exact: usize,
    met: usize,
    /// Whose sets are the same as what is touched though nobody asked for it.
    better: usize,
    wrong: Vec<String>,
    /// Targets by kernel and by what was found.
    deviations: BTreeMap<String, Vec<String>>,
}

impl Score {
    fn add(&mut self, kernel: &Kernel<'_>, access: &KernelAccess, target: Target) {
        let name = &kernel.rule.name;
        let Judged { wrong, loose } = sets::judge(kernel, access);
        let asked = kernel.rule.range == Precision::Exact;
        self.exact += usize::from(asked);
        self.met += usize::from(asked && loose.is_none());
        self.better += usize::from(!asked && loose.is_none());
        self.wrong.extend(wrong.map(|wrong| format!("{target} {name}: {wrong}")));
        if let Some(loose) = loose.filter(|_| asked) {
            let line = format!("{name}: {loose}");
            self.deviations.entry(line).or_default().push(target.to_string());
        }
    }
}

fn check(compiler: &Compiler, tool: Option<Disassembler>, form: Form) -> Result<(), Failed> {
    let reader = Reader::new(tool, None);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let sources = corpus::read(&root);
    let mut all = Vec::new();
    for source in &sources {
        let compiled = compiler.compile(source)?;
        let kernels = runs::run(source, &compiled[0].ptx)?;
        all.push((kernels, compiled));
    }
    let mut targets: Vec<Target> =
        all.iter().flat_map(|(_, compiled)| compiled.iter().map(|code| code.target)).collect();
    targets.sort();
    targets.dedup();
    let mut score = Score::default();
    for target in targets {
        let mut kernels = Vec::new();
        let mut requests = Vec::new();
        for (of_source, compiled) in &all {
            let Some(code) = compiled.iter().find(|code| code.target == target) else { continue };
            let image = if form == Form::Ptx { code.ptx.as_bytes() } else { &code.cubin };
            kernels.extend(of_source);
            requests.extend(of_source.iter().map(|kernel| Request {
                image,
                device: target.capability,
                kernel: &kernel.rule.name,
            }));
        }
        for (kernel, read) in kernels.into_iter().zip(reader.read(&requests)) {
            match read {
                Ok(read) => score.add(kernel, &read.access, target),
                Err(error) => {
                    score.wrong.push(format!("{target} {}: {error}", kernel.rule.name));
                }
            }
        }
    }
    for (line, targets) in &score.deviations {
        println!("{line} ({})", targets.join(" "));
    }
    let kernels: usize = all.iter().map(|(kernels, _)| kernels.len()).sum();
    let Score { exact, met, better, .. } = score;
    println!("{kernels} kernels; of {exact} that can be exact {met} are, and {better} more");
    if !score.wrong.is_empty() {
        return Err(score.wrong.join("\n").into());
    }
    if kernels < FLOOR {
        return Err(format!("only {kernels} kernels ran").into());
    }
    if met < exact {
        return Err(format!("only {met} of {exact} are exact").into());
    }
    Ok(())
}

fn main() {
    let arguments = Arguments::from_args();
    let compiler = Compiler::find(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let places = Places::of_this_process(None);
    let nvdisasm = Disassembler::locate(&places).unwrap_or_else(|e| panic!("{e}"));
    let mut trials = Vec::new();
    for (name, form) in [("ptx", Form::Ptx), ("machine_code", Form::MachineCode)] {
        let without = compiler.is_none() || (form == Form::MachineCode && nvdisasm.is_none());
        if without {
            eprintln!("{name} is skipped: no nvcc or nvdisasm was found");
        }
        let compiler = compiler.clone();
        let tool = nvdisasm.clone().filter(|_| form == Form::MachineCode);
        let trial = Trial::test(name, move || match compiler {
            Some(compiler) => check(&compiler, tool.map(runs::disassembler), form),
            None => Err("no nvcc".into()),
        });
        trials.push(trial.with_ignored_flag(without));
    }
    trials.push(Trial::test("generated", generated::check));
    libtest_mimic::run(&arguments, trials).exit();
}
