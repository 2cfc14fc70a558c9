//! Kernels decoded instruction by instruction, out of order, against the listing of their whole
//! cubin. Cubins are made by NVIDIA's compiler where the machine has one; `STREAMSAN_CUBINS` may
//! name a directory of others.

use crate::tools;
use libtest_mimic::{Failed, Trial};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use streamsan_kernels::Directory;
use streamsan_kernels::disassembler::Disassembler;
use streamsan_kernels::sass::{Code, Decoder, Instruction, Object, Operand};
use streamsan_kernels::toolkit::Tool;

const TARGETS: [&str; 8] = ["75", "80", "86", "89", "90a", "100a", "103", "120a"];
const CUBINS: &str = "STREAMSAN_CUBINS";

/// The instructions of each code section, by the tool's own listing of the cubin.
fn listed(tool: &Tool, cubin: &Path) -> Result<HashMap<String, Section>, Failed> {
    let output = Command::new(&tool.path).args(["-c", "-ndf"]).arg(cubin).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let mut sections: HashMap<String, Section> = HashMap::new();
    let mut current = String::new();
    let mut labels = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        if let Some(rest) = line.trim_start().strip_prefix("/*")
            && let Some((address, text)) = rest.split_once("*/")
        {
            let section = sections.entry(current.clone()).or_default();
            let address = i64::from_str_radix(address, 16)?;
            section.labels.extend(labels.drain(..).map(|label| (label, address)));
            let text = text.split("(*").next().unwrap_or_default();
            section.instructions.push(text.trim().to_owned());
        } else if let Some(label) = line.strip_suffix(':') {
            if let Some(name) = label.strip_prefix(".text.") {
                current = name.to_owned();
            }
            labels.push(label.to_owned());
        }
    }
    for (name, section) in &mut sections {
        section.labels.insert(name.clone(), 0);
    }
    Ok(sections)
}

#[derive(Default)]
struct Section {
    instructions: Vec<String>,
    labels: HashMap<String, i64>,
}

fn decoded(
    tool: &Tool,
    cubin: &Path,
    scratch: &Directory,
    decoder: &mut Decoder,
) -> Result<Vec<Code>, Failed> {
    let object = Object::parse(std::fs::read(cubin)?)?;
    let mut names: Vec<_> = object.kernels().collect();
    names.sort_unstable();
    let kernels: Result<Vec<_>, _> = names.iter().map(|name| object.kernel(name)).collect();
    let target = object.target().ok_or("no target")?;
    let disassembler = Disassembler::new(tool.clone(), scratch.clone(), Duration::from_secs(300));
    let kernels = kernels?.into_iter().flatten().collect();
    Ok(decoder.decode(&disassembler, target, kernels)?)
}

/// Whether an instruction is what the listing says, places in the code included.
fn same(ours: &Instruction, listed: &str, labels: &HashMap<String, i64>) -> bool {
    let Ok(listed) = listed.parse::<Instruction>() else { return false };
    let head = |i: &Instruction| (i.guard, i.opcode.clone(), i.modifiers.clone());
    let operand = |(ours, listed): (&Operand, &Operand)| match (ours, listed) {
        (Operand::Target(at), Operand::Other(label)) => {
            let name = label.trim_start_matches("`(").trim_end_matches(')');
            labels.get(name) == Some(at)
        }
        _ => ours == listed,
    };
    head(ours) == head(&listed)
        && ours.operands.len() == listed.operands.len()
        && ours.operands.iter().zip(&listed.operands).all(operand)
}

fn check(
    tool: &Tool,
    cubin: &Path,
    scratch: &Directory,
    decoder: &mut Decoder,
) -> Result<usize, Failed> {
    let listed = listed(tool, cubin)?;
    let mut count = 0;
    for code in decoded(tool, cubin, scratch, decoder)? {
        for function in [&code.entry].into_iter().chain(code.functions.values()) {
            let name = &function.name;
            let section = listed.get(name).ok_or_else(|| format!("no listing of {name}"))?;
            assert_eq!(function.instructions.len(), section.instructions.len(), "{name}");
            let both = function.instructions.iter().zip(&section.instructions);
            for (at, (ours, listed)) in both.enumerate() {
                let ours = ours.as_ref().ok_or_else(|| format!("{listed} is not decoded"))?;
                let place = 16 * at;
                assert!(
                    same(ours, listed, &section.labels),
                    "{name} at {place:#x}: {ours} | {listed}"
                );
                check_text(ours);
                count += 1;
            }
        }
    }
    Ok(count)
}

/// Nothing with a register in it is left as text, and what is printed is read as the same again.
fn check_text(instruction: &Instruction) {
    for operand in &instruction.operands {
        if let Operand::Other(text) = operand {
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
            assert!(!words.any(is_register), "{instruction}: {text} was not understood");
        }
    }
    let places = instruction.operands.iter().any(|o| matches!(o, Operand::Target(_)));
    if !places {
        assert_eq!(instruction.to_string().parse().as_ref(), Ok(instruction), "{instruction}");
    }
}

fn is_register(word: &str) -> bool {
    let number = ["UR", "UP", "R", "P"].iter().find_map(|prefix| word.strip_prefix(prefix));
    number.is_some_and(|n| matches!(n, "Z" | "T") || n.parse::<u8>().is_ok())
}

fn compiled(nvcc: &Path, tool: &Tool, target: &str) -> Result<(), Failed> {
    let folder = Directory::for_this_run(&std::env::temp_dir())?;
    let libraries = nvcc.parent().and_then(Path::parent).map(|root| root.join("lib"));
    let mut decoder = Decoder::default();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compiled");
    for source in ["sass/kernels.cu", "kernels.cu"] {
        let cubin = folder.path().join("image.cubin");
        let mut command = Command::new(nvcc);
        command.args(["-cubin", &format!("-arch=sm_{target}"), "-o"]).arg(&cubin);
        command.arg(sources.join(source));
        command.args(libraries.as_ref().map(|folder| format!("-L{}", folder.display())));
        let output = command.output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let count = check(tool, &cubin, &folder, &mut decoder)?;
        assert!(count > 40, "{count} instructions of {source}");
        if source == "sass/kernels.cu" {
            check_tables(&decoded(tool, &cubin, &folder, &mut decoder)?);
        }
    }
    Ok(())
}

/// Checks the tables that the cubin has beside the instructions.
fn check_tables(kernels: &[Code]) {
    let kernel = |name: &str| kernels.iter().find(|code| code.entry.name == name).expect(name);
    let choice = kernel("choice");
    assert!(choice.entry.branch_targets.values().any(|targets| targets.len() >= 3));
    let end = 16 * choice.entry.instructions.len() as u32;
    for (branch, targets) in &choice.entry.branch_targets {
        let instruction = choice.entry.instructions[*branch as usize / 16].as_ref().expect("one");
        assert_eq!(instruction.opcode, "BRX");
        assert!(targets.iter().all(|target| *target < end && target % 16 == 0));
    }
    let constants = &choice.banks[&3].variables;
    let named: Vec<_> = constants.iter().map(|(name, _, size)| (name.as_str(), *size)).collect();
    assert!(named.contains(&("numbers", 64)) && named.contains(&("place", 8)), "{named:?}");
    let called = kernel("called");
    let inner: Vec<_> = called.entry.inner.values().collect();
    assert!(inner.iter().any(|name| name.ends_with("product")), "{inner:?}");
    let calls = called.entry.instructions.iter().flatten().filter(|i| i.opcode == "CALL");
    let to_inner = |operand: &Operand| {
        let place = match operand {
            Operand::Target(place) => u32::try_from(*place).ok(),
            _ => None,
        };
        place.is_some_and(|place| called.entry.inner.contains_key(&place))
    };
    assert!(calls.flat_map(|call| &call.operands).any(to_inner));
    let chosen = kernel("chosen");
    let addresses = &chosen.banks[&4].relocations;
    assert!(addresses.values().any(|r| r.symbol == "functions"), "{addresses:?}");
    assert_eq!(chosen.variables.get("count"), Some(&4));
    assert_eq!(chosen.parameters.parameters.len(), 4);
    assert!(chosen.parameters.bank_offset.is_some());
}

/// Every cubin of a directory.
fn directory(tool: &Tool, folder: &Path) -> Result<(), Failed> {
    let scratch = Directory::for_this_run(&std::env::temp_dir())?;
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_, Failed>>()?;
    files.sort();
    let mut decoder = Decoder::default();
    for file in files {
        let count = check(tool, &file, &scratch, &mut decoder)?;
        eprintln!("{}: {count} instructions", file.display());
    }
    Ok(())
}

/// A trial for each target, and one for the directory of cubins that may be named.
pub(crate) fn trials(nvcc: Option<&Tool>, nvdisasm: Option<&Tool>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for target in tools::wanted(&TARGETS) {
        let tools = nvcc.cloned().zip(nvdisasm.cloned());
        let without = tools.is_none() && !tools::are_required();
        let trial = Trial::test(format!("listing_of_sm_{target}"), move || match &tools {
            Some((nvcc, nvdisasm)) => compiled(&nvcc.path, nvdisasm, target),
            None => Err("no compiler or no disassembler".into()),
        });
        trials.push(trial.with_ignored_flag(without));
    }
    if let (Some(folder), Some(nvdisasm)) = (std::env::var_os(CUBINS), nvdisasm.cloned()) {
        let folder = PathBuf::from(folder);
        trials.push(Trial::test("listings_of_a_directory", move || directory(&nvdisasm, &folder)));
    }
    trials
}
