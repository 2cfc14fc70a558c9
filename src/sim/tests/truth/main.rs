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
#[path = "../../src/interp/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the driver uses the rest, and its own tests")]
mod interp;
mod memory;
mod runs;
mod sets;

use std::collections::BTreeMap;
use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use streamsan_kernels::disassembler::Disassembler;
use streamsan_kernels::reader::{Reader, Request};
use streamsan_kernels::toolkit::Places;

use compiler::Compiler;
use corpus::{Precision, Source};
use sets::Judged;

/// Kernels that the interpreter must be able to run.
const FLOOR: usize = 125;

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

fn judge(
    source: &Source,
    compiled: &[compiler::Compiled],
    reader: &Reader,
    form: Form,
    score: &mut Score,
) -> Result<usize, Failed> {
    let kernels = runs::run(source, &compiled[0].ptx)?;
    for code in compiled {
        let image = if form == Form::Ptx { code.ptx.as_bytes() } else { &code.cubin };
        let device = code.target.capability;
        let requests: Vec<_> = kernels
            .iter()
            .map(|kernel| Request { image, device, kernel: &kernel.rule.name })
            .collect();
        for (kernel, read) in kernels.iter().zip(reader.read(&requests)) {
            let name = &kernel.rule.name;
            let access = match read {
                Ok(read) => read.access,
                Err(error) => {
                    score.wrong.push(format!("{} {name}: {error}", code.target));
                    continue;
                }
            };
            let Judged { wrong, loose } = sets::judge(kernel, &access);
            let asked = kernel.rule.range == Precision::Exact;
            score.exact += usize::from(asked);
            score.met += usize::from(asked && loose.is_none());
            score.better += usize::from(!asked && loose.is_none());
            score.wrong.extend(wrong.map(|wrong| format!("{} {name}: {wrong}", code.target)));
            if let Some(loose) = loose.filter(|_| asked) {
                let line = format!("{name}: {loose}");
                score.deviations.entry(line).or_default().push(code.target.to_string());
            }
        }
    }
    Ok(kernels.len())
}

fn check(compiler: &Compiler, tool: Option<Disassembler>, form: Form) -> Result<(), Failed> {
    let reader = Reader::new(tool, None);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let mut score = Score::default();
    let mut kernels = 0;
    for source in corpus::read(&root) {
        let compiled = compiler.compile(&source)?;
        kernels += judge(&source, &compiled, &reader, form, &mut score)?;
    }
    for (line, targets) in &score.deviations {
        println!("{line} ({})", targets.join(" "));
    }
    let Score { exact, met, better, .. } = score;
    println!("{kernels} kernels; of {exact} that can be exact {met} are, and {better} more");
    if !score.wrong.is_empty() {
        return Err(score.wrong.join("\n").into());
    }
    if kernels < FLOOR {
        return Err(format!("only {kernels} kernels ran").into());
    }
    if met * 100 < exact * 95 {
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
    libtest_mimic::run(&arguments, trials).exit();
}
