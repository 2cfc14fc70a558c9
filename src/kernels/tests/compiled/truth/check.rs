//! The corpus of CUDA sources: what is concluded from its PTX and from the machine code of every
//! target, against what its PTX does.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use libtest_mimic::{Failed, Trial};
use streamsan_kernels::access::KernelAccess;
use streamsan_kernels::disassembler::Disassembler;
use streamsan_kernels::image::Target;
use streamsan_kernels::reader::{Reader, Request};
use streamsan_kernels::toolkit::Tool;

use super::runs::{self, Kernel};
use super::sets::{self, Judged};
use super::{committed, generated};
use crate::compiler::{Compiled, Compiler};
use crate::corpus::{self, Precision, Source};
use crate::modes::Form;
use crate::tools;

/// Kernels that the interpreter must be able to run.
const FLOOR: usize = 150;

/// The counts of kernels, each once for every target.
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

/// A source's kernels with their launches, and its code for each target.
type Ran = (Vec<Kernel<'static>>, Vec<Compiled>);

/// Compiles and runs the corpus, once for both forms.
fn ran(compiler: &Compiler) -> Result<&'static [Ran], String> {
    static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();
    static ALL: OnceLock<Result<Vec<Ran>, String>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut all = Vec::new();
        for source in SOURCES.get_or_init(|| corpus::read(root)) {
            let compiled = compiler.compile(source)?;
            if let Some(oldest) = compiled.first() {
                all.push((runs::run(source, &oldest.ptx)?, compiled));
            }
        }
        Ok(all)
    });
    all.as_deref().map_err(Clone::clone)
}

fn check(compiler: &Compiler, tool: Option<Disassembler>, form: Form) -> Result<(), Failed> {
    let reader = Reader::new(tool, None);
    let all = ran(compiler)?;
    let mut targets: Vec<Target> =
        all.iter().flat_map(|(_, compiled)| compiled.iter().map(|code| code.target)).collect();
    targets.sort();
    targets.dedup();
    let mut score = Score::default();
    for target in targets {
        let mut kernels = Vec::new();
        let mut requests = Vec::new();
        for (of_source, compiled) in all {
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

/// The trials of this folder. Those that need NVIDIA's compiler, or its disassembler, are shown as
/// ignored where the machine has none.
pub(crate) fn trials(compiler: Option<&Compiler>, nvdisasm: Option<&Tool>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, form) in [("truth_of_ptx", Form::Ptx), ("truth_of_machine_code", Form::MachineCode)]
    {
        let without = compiler.is_none() || (form == Form::MachineCode && nvdisasm.is_none());
        let without = without && !tools::are_required();
        let compiler = compiler.cloned();
        let tool = nvdisasm.cloned().filter(|_| form == Form::MachineCode);
        let trial = Trial::test(name, move || match compiler {
            None => Err("no nvcc".into()),
            Some(_) if form == Form::MachineCode && tool.is_none() => Err("no nvdisasm".into()),
            Some(compiler) => check(&compiler, tool.map(runs::disassembler), form),
        });
        trials.push(trial.with_ignored_flag(without));
    }
    trials.push(Trial::test("truth_of_generated_kernels", generated::check));
    trials.push(Trial::test("truth_of_committed_ptx", committed::check));
    trials
}
