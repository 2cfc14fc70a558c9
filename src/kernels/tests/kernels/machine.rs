//! Short pieces of machine code, written by hand in `access/machine/*.sass`, and what is concluded
//! from them in the `.expected` file beside each. `BLESS=1` writes these files.
//!
//! A kernel begins with `.kernel NAME TARGET SIZE...`, the sizes of its parameters. Names of places
//! end with a colon. `// modes:` is written by hand: the true mode of each word, in order.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::conclusions;
use proptest::prelude::*;
use streamsan_kernels::access::{KernelAccess, Launch, Reach, analyse_code, instantiate};
use streamsan_kernels::image::{Parameter, ParameterLayout, Target};
use streamsan_kernels::sass::{Code, Function, Instruction, Operand};

struct Kernel {
    code: Code,
    modes: String,
}

/// Where parameters lie in bank 0, by the number of the target.
fn bank_offset(target: Target) -> u32 {
    match target.capability.number() {
        ..90 => 0x160,
        90..100 => 0x210,
        _ => 0x380,
    }
}

fn layout(target: Target, sizes: &[u32]) -> ParameterLayout {
    let mut parameters = Vec::new();
    let mut offset = 0u32;
    for (index, &size) in (0..).zip(sizes) {
        offset = offset.next_multiple_of(size.min(8));
        parameters.push(Parameter { index, offset, size });
        offset += size;
    }
    ParameterLayout { parameters, size: offset, bank_offset: Some(bank_offset(target)) }
}

fn function(name: &str, lines: &[&str]) -> Function {
    let mut places = HashMap::new();
    let mut instructions: Vec<Instruction> = Vec::new();
    for line in lines {
        match line.strip_suffix(':') {
            Some(label) => {
                places.insert(label.to_owned(), instructions.len() as i64 * 16);
            }
            None => instructions.push(line.parse().expect("an instruction")),
        }
    }
    for operand in instructions.iter_mut().flat_map(|i| &mut i.operands) {
        if let Operand::Other(text) = operand
            && let Some(&place) = places.get(text.as_str())
        {
            *operand = Operand::Target(place);
        }
    }
    Function {
        name: name.to_owned(),
        instructions: instructions.into_iter().map(|i| Some(Arc::new(i))).collect(),
        relocations: BTreeMap::new(),
        branch_targets: BTreeMap::new(),
        inner: BTreeMap::new(),
    }
}

fn kernel(head: &str, lines: &[&str], modes: &str) -> Kernel {
    let mut words = head.split_whitespace();
    let name = words.next().expect("a name");
    let target: Target = words.next().expect("a target").parse().expect("a target");
    let sizes: Vec<u32> = words.map(|word| word.parse().expect("a size")).collect();
    let code = Code {
        target,
        entry: function(name, lines),
        functions: HashMap::new(),
        parameters: layout(target, &sizes),
        banks: BTreeMap::new(),
        variables: HashMap::new(),
    };
    Kernel { code, modes: modes.to_owned() }
}

fn kernels(text: &str) -> Vec<Kernel> {
    let mut out = Vec::new();
    for part in text.split(".kernel ").skip(1) {
        let (head, body) = part.split_once('\n').expect("lines");
        let mut modes = "";
        let mut lines = Vec::new();
        for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.strip_prefix("// modes:") {
                Some(written) => modes = written.trim(),
                None => lines.push(line),
            }
        }
        out.push(kernel(head, &lines, modes));
    }
    out
}

fn corpus() -> Vec<PathBuf> {
    conclusions::files("tests/access/machine", "sass")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file of the corpus")
}

#[test]
fn conclusions_are_the_expected_ones() {
    conclusions::check(&corpus(), |text| {
        kernels(text).iter().map(|k| concluded(&k.code)).collect()
    });
}

/// Modes of the parameters that are words, or of the words that were found where one parameter
/// has several.
fn modes(kernel: &KernelAccess, code: &Code) -> String {
    let found = |param: u32, offset: u32| {
        let word = kernel.pointers.iter().find(|w| (w.param, w.offset) == (param, offset));
        word.map_or_else(
            || "none".to_owned(),
            |w| format!("{}{}", w.mode.description(), if w.table { "+table" } else { "" }),
        )
    };
    let mut out = Vec::new();
    for parameter in code.parameters.parameters.iter().filter(|p| p.size >= 8) {
        let words = if parameter.size == 64 { 8 } else { 1 };
        out.extend((0..words).map(|word| found(parameter.index, 8 * word)));
    }
    out.join(" ")
}

#[test]
fn modes_are_the_ones_written_by_hand() {
    let (mut count, mut wrong) = (0, Vec::new());
    for path in corpus() {
        for kernel in kernels(&read(&path)) {
            count += 1;
            let access = concluded(&kernel.code);
            let found = modes(&access, &kernel.code);
            // Words without an access at the end are not written.
            let found = found.strip_suffix(" none").unwrap_or(&found);
            let found = if found == "none" { "" } else { found };
            if found != kernel.modes {
                wrong.push(format!("{}: {found} and not {}", access.name, kernel.modes));
            }
        }
    }
    assert!(wrong.is_empty(), "wrong modes:\n{}", wrong.join("\n"));
    assert!(count >= 25, "only {count} kernels");
}

fn concluded(code: &Code) -> KernelAccess {
    analyse_code(code).expect("it is not too large")
}

fn named(name: &str) -> KernelAccess {
    let all = corpus().into_iter().flat_map(|path| kernels(&read(&path)));
    let kernel = all.into_iter().find(|k| k.code.entry.name == name).expect("a kernel");
    concluded(&kernel.code)
}

#[test]
fn a_pointer_that_was_loaded_may_touch_anything() {
    for name in ["list", "through_shared", "halves_of_two", "new_opcode"] {
        assert!(named(name).may_touch_anything(), "{name}");
    }
    assert!(!named("index_from_memory").may_touch_anything());
}

#[test]
fn a_launch_that_follows_pointers_may_touch_anything() {
    let names = ["list", "through_shared", "exchanged_addresses", "guarded_table", "swapped_head"];
    for name in names {
        let kernel = named(name);
        // The flag of the guarded table, and its other half.
        for (flag, second) in [(1u32, 0u32), (1, 1), (0, 0)] {
            let words = [0x1000_0000u64.to_le_bytes(), 0x2000_0000u64.to_le_bytes()];
            let mut params = words.concat();
            if name == "guarded_table" {
                params.truncate(8);
                params.extend(flag.to_le_bytes());
                params.extend(second.to_le_bytes());
            }
            params.resize(kernel.params_size as usize, 1);
            let launch = Launch { grid: [2, 1, 1], block: [64, 1, 1], params: &params };
            let follows = kernel.may_touch_anything_at(&instantiate(&kernel, &launch));
            let expected = name != "guarded_table" || flag == 1;
            assert_eq!(follows, expected, "{name} with {flag} and {second}");
        }
    }
}

#[test]
fn a_table_that_is_not_asked_for_is_not_read() {
    let kernel = named("pointer_or_table");
    for (flag, follows) in [(1u32, false), (0, true)] {
        let words = [0x1000_0000u64.to_le_bytes(), 0x2000_0000u64.to_le_bytes()].concat();
        let params = [&words[..], &flag.to_le_bytes()].concat();
        let launch = Launch { grid: [2, 1, 1], block: [64, 1, 1], params: &params };
        let touched = instantiate(&kernel, &launch);
        assert_eq!(kernel.may_touch_anything_at(&touched), follows, "{flag}: {touched:?}");
    }
}

#[test]
fn bytes_of_a_launch_are_exact() {
    let pointer = |value: u64| value.to_le_bytes().to_vec();
    let words = [pointer(0x1000_0000), pointer(0x2000_0000), 100u64.to_le_bytes().to_vec()];
    for (name, extent, first) in [("wide", 400, 0x2000_0010), ("grid_stride", 400, 0x2000_0000)] {
        let params = words.concat();
        let launch = Launch { grid: [2, 1, 1], block: [64, 1, 1], params: &params[..20] };
        let touched = instantiate(&named(name), &launch);
        let write = touched.iter().find(|t| t.param == 1).expect("a write");
        let Reach::Bytes { extent: streamsan_model::Extent::Range(range), exact } = write.reach
        else {
            panic!("{name}: {write:?}")
        };
        assert_eq!((range.start, range.end - range.start, exact), (first, extent, true), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mangled_kernels_never_panic(
        file in any::<prop::sample::Index>(),
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..7), 1..12),
        word in any::<u32>(),
    ) {
        let files = corpus();
        let text = read(&files[file.index(files.len())]);
        let mut lines: Vec<String> = text
            .lines()
            .map(str::to_owned)
            .filter(|line| !line.trim().is_empty() && !line.starts_with("//"))
            .collect();
        let fixed = |line: &str| line.starts_with(".kernel") || line.ends_with(':');
        for (first, second, kind) in edits {
            let (a, b) = (first.index(lines.len()), second.index(lines.len()));
            if fixed(&lines[a]) || fixed(&lines[b]) {
                continue;
            }
            match kind {
                0 => lines.swap(a, b),
                1 => { lines.remove(a); }
                2 => lines[a] = lines[b].clone(),
                3 => lines[a] = lines[a].replace("R2", "R3").replace("UR4", "URZ"),
                4 => lines[a] = lines[a].replace("0x", "0x7fffffff"),
                5 => lines[a] = lines[a].replace(", RZ", ""),
                _ => lines[a] = lines[a].replace("64", "128").replace(".X", ""),
            }
        }
        for kernel in kernels(&lines.join("\n")) {
            let access = concluded(&kernel.code);
            let params = word.to_le_bytes().repeat(access.params_size as usize / 4);
            let launch = Launch { grid: [word | 1, 3, 1], block: [32, 2, 2], params: &params };
            instantiate(&access, &launch);
        }
    }
}
