//! Images that NVIDIA's compiler makes of our own source, where the machine has one: in `PATH`, in
//! an installed toolkit, in a Python environment (the packages of tests/runners/nvidia.txt), or named
//! by `STREAMSAN_NVCC`. See [`tools`] for where it has none.
//!
//! The corpus in `sources` says what is true of its kernels; `modes` compares what is concluded of
//! their words, `truth` the bytes with those that the interpreter sees them touch, and `sass` the
//! instructions with the disassembler's listing.

mod compiler;
mod corpus;
mod modes;
mod sass;
mod tools;
mod truth;

use libtest_mimic::{Arguments, Failed, Trial};
use modes::Form;
use std::path::{Path, PathBuf};
use std::process::Command;
use streamsan_kernels::image::{
    CodeKind, Compression, ComputeCapability, Cubin, Image, Listing, Parameter,
};

/// Kernels of every kind of parameter. Name, then offset and size of each.
const KERNELS: [(&str, &[(u32, u32)]); 5] = [
    ("_ZN2ns5scaleIfEEvPT_PKS1_S1_i", &[(0, 8), (8, 8), (16, 4), (20, 4)]),
    ("_Z9by_struct6Packeds", &[(0, 32), (32, 2)]),
    ("_Z5large5LargePi", &[(0, 20_000), (20_000, 8)]),
    ("nothing", &[]),
    ("narrow", &[(0, 1), (8, 8)]),
];
/// Letters other than none say what a fat binary tells beside the number.
const TARGETS: [&str; 6] = ["75", "80", "90a", "100f", "103", "120a"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compiled/kernels.cu")
}

struct Compiler {
    nvcc: PathBuf,
    folder: tempfile::TempDir,
}

impl Compiler {
    fn new(nvcc: &Path) -> Result<Self, Failed> {
        Ok(Self { nvcc: nvcc.to_owned(), folder: tempfile::tempdir()? })
    }

    fn compile(&self, arguments: &[&str]) -> Result<Vec<u8>, Failed> {
        let file = self.folder.path().join("image");
        let mut command = Command::new(&self.nvcc);
        // The wheel keeps its libraries in lib, where nvcc does not look.
        let libraries = self.nvcc.parent().and_then(Path::parent).map(|root| root.join("lib"));
        command.args(arguments).arg("-o").arg(&file).arg(source());
        command.args(libraries.map(|folder| format!("-L{}", folder.display())));
        let output = command.output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(std::fs::read(file)?)
    }
}

fn check_cubin(bytes: &[u8]) -> Result<(), Failed> {
    let cubin = Cubin::parse(bytes)?;
    let mut names: Vec<_> = cubin.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    names.sort_unstable();
    let mut expected = KERNELS.map(|(name, _)| name);
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert!(cubin.kernels.iter().all(|kernel| kernel.code_size > 0));
    for (name, parameters) in KERNELS {
        check(name, &cubin.parameters(name)?.parameters, parameters);
        let bank = cubin.parameters(name)?.bank_offset;
        assert!(parameters.is_empty() || bank.is_some_and(|bank| bank >= 0x140), "{name} {bank:?}");
    }
    Ok(())
}

fn check(name: &str, found: &[Parameter], expected: &[(u32, u32)]) {
    let expected = expected.iter().zip(0..);
    let expected: Vec<_> =
        expected.map(|(&(offset, size), index)| Parameter { index, offset, size }).collect();
    assert_eq!(found, expected, "{name}");
}

fn cubins(nvcc: &Path, target: &str) -> Result<(), Failed> {
    let bytes = Compiler::new(nvcc)?.compile(&["-cubin", &format!("-arch=sm_{target}")])?;
    let image = Image::read(&bytes)?;
    let entry = image.entries().next().expect("an entry");
    // The letter f is told by the container only.
    let told = format!("sm_{}", target.trim_end_matches('f'));
    assert_eq!(entry.target.map(|target| target.to_string()), Some(told));
    check_cubin(&bytes)
}

/// Every way of packing gives the same code; PTX and machine code agree about the parameters.
fn fat_binaries(nvcc: &Path) -> Result<(), Failed> {
    let compiler = Compiler::new(nvcc)?;
    let mut packings = Vec::new();
    let mut texts = Vec::new();
    for mode in ["none", "speed", "size"] {
        let bytes = compiler.compile(&[
            "-fatbin",
            "-gencode=arch=compute_90a,code=[sm_90a,compute_90a]",
            "-gencode=arch=compute_100f,code=[sm_100f,compute_100f]",
            &format!("--compress-mode={mode}"),
        ])?;
        let image = Image::read(&bytes)?;
        let mut targets = Vec::new();
        for entry in image.entries() {
            targets.push(format!("{:?} {}", entry.kind, entry.target.expect("told")));
            packings.push(entry.compression);
            match entry.kind {
                CodeKind::Cubin => check_cubin(&entry.code()?)?,
                _ => texts.push(entry.code()?.into_owned()),
            }
        }
        targets.sort();
        assert_eq!(targets, ["Cubin sm_100f", "Cubin sm_90a", "Ptx sm_100f", "Ptx sm_90a"]);
        let device = ComputeCapability::from_number(103).expect("a number");
        let listing = Listing::new(&image, Some(device));
        assert!(listing.problems.is_empty(), "{:?}", listing.problems);
        assert_eq!(listing.kernels.len(), KERNELS.len());
        for kernel in &listing.kernels {
            assert!(kernel.module.is_some() && kernel.sources[0].kind == CodeKind::Cubin);
            let (name, expected) =
                KERNELS.iter().find(|(name, _)| *name == kernel.name).expect("one of ours");
            check(name, kernel.parameters.as_ref().expect("described"), expected);
        }
    }
    for packing in [Compression::None, Compression::Lz4, Compression::Zstd] {
        assert!(packings.contains(&packing), "nothing was packed with {}", packing.description());
    }
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 2, "the text of a target differs by how it was packed");
    Ok(())
}

/// Programs, separately compiled ones included, before and after their symbols are stripped.
fn host_programs(nvcc: &Path) -> Result<(), Failed> {
    let compiler = Compiler::new(nvcc)?;
    for more in [&["-shared", "-Xcompiler=-fPIC"][..], &["-rdc=true", "-DPROGRAM"]] {
        let bytes = compiler.compile(&[&["-arch=sm_90"], more].concat())?;
        let mut listed = Vec::new();
        for strip in [false, true] {
            let file = compiler.folder.path().join("image");
            if strip && !Command::new("strip").arg(&file).status()?.success() {
                return Err("strip failed".into());
            }
            let bytes = if strip { std::fs::read(&file)? } else { bytes.clone() };
            let listing = Listing::new(&Image::read(&bytes)?, None);
            assert!(listing.problems.is_empty(), "{:?}", listing.problems);
            let names = listing.kernels.iter().map(|kernel| kernel.name.clone());
            listed.push(names.collect::<Vec<_>>());
        }
        assert_eq!(listed[0], listed[1]);
        for (name, _) in KERNELS {
            assert!(listed[0].iter().any(|other| other == name), "{name} of {more:?}");
        }
    }
    Ok(())
}

fn main() {
    let arguments = Arguments::from_args();
    let nvcc = tools::nvcc();
    let missing = !tools::are_required();
    let without = nvcc.is_none() && missing;
    let nvdisasm = tools::nvdisasm();
    let mut trials = sass::trials(nvcc.as_ref(), nvdisasm.as_ref());
    let path = nvcc.map_or_else(|| "nvcc".into(), |tool| tool.path);
    for target in tools::wanted(&TARGETS) {
        let nvcc = path.clone();
        let trial = Trial::test(format!("cubins_of_sm_{target}"), move || cubins(&nvcc, target));
        trials.push(trial.with_ignored_flag(without));
    }
    let nvcc = path.clone();
    let trial = Trial::test("fat_binaries", move || fat_binaries(&nvcc));
    trials.push(trial.with_ignored_flag(without));
    let nvcc = path.clone();
    let trial = Trial::test("host_programs", move || host_programs(&nvcc));
    trials.push(trial.with_ignored_flag(without));
    let corpus = compiler::Compiler::find(Path::new(env!("CARGO_TARGET_TMPDIR")));
    for form in [Form::Ptx, Form::MachineCode] {
        let none = without || (form == Form::MachineCode && nvdisasm.is_none() && missing);
        let (corpus, tool) = (corpus.clone(), nvdisasm.clone());
        let trial = Trial::test(form.trial(), move || match corpus {
            None => Err("no nvcc".into()),
            Some(_) if form == Form::MachineCode && tool.is_none() => Err("no nvdisasm".into()),
            Some(compiler) => modes::check(&compiler, tool, form),
        });
        trials.push(trial.with_ignored_flag(none));
    }
    trials.extend(truth::trials(corpus.as_ref(), nvdisasm.as_ref()));
    for trial in trials.iter().filter(|trial| trial.has_ignored_flag()) {
        eprintln!("{} is skipped: no nvcc or nvdisasm was found", trial.name());
    }
    libtest_mimic::run(&arguments, trials).exit();
}
