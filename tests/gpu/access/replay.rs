//! Conclusions from the code of kernels about launches that were measured on a GPU, asked without
//! one: `access_replay LOG MODULES [DEVICE]`.
//!
//! LOG is what the measuring tool wrote with `ACCESS_MODULES` set to the folder MODULES, where it
//! kept the machine code; DEVICE is a number such as 90. Prints one line of JSON a measured launch,
//! which `compare.py` takes in the place of a trace. Allocations are those that the tool knew; where
//! the collector knows more (memory pools, tensor maps seen being made), its answer is narrower.

use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::Path;
use std::time::Duration;
use std::{env, fs};
use streamsan_kernels::Directory;
use streamsan_kernels::access::{
    Base, KernelAccess, Launch, ParameterMode, Reach, Touch, WordKind, instantiate,
};
use streamsan_kernels::disassembler::Disassembler;
use streamsan_kernels::image::ComputeCapability;
use streamsan_kernels::reader::{CodeForm, Reader, Request};
use streamsan_kernels::toolkit::Places;
use streamsan_model::{Basis, ByteRange, Extent, Mode};

const LONGEST_DISASSEMBLY: Duration = Duration::from_secs(120);

/// A measured launch.
struct Measured {
    ordinal: u64,
    kernel: String,
    code: String,
    grid: [u32; 3],
    block: [u32; 3],
    params: Vec<u8>,
    memory: Vec<ByteRange>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [log, modules, device @ ..] = &arguments[..] else {
        return Err("usage: access_replay LOG MODULES [DEVICE]".into());
    };
    let device = device.first().map_or(Ok(90), |device| device.parse())?;
    let device = ComputeCapability::from_number(device).ok_or("no such device")?;
    let text = fs::read_to_string(log)?;
    let mut launches = Vec::new();
    for line in text.lines() {
        launches.extend(measured(&serde_json::from_str(line)?)?);
    }

    let mut images: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for launch in &launches {
        // One that was too large to be kept is missing.
        if let Ok(image) = fs::read(Path::new(modules).join(&launch.code)) {
            images.insert(&launch.code, image);
        }
    }
    let mut asked: Vec<(&str, &str)> =
        launches.iter().map(|launch| (launch.code.as_str(), launch.kernel.as_str())).collect();
    asked.sort_unstable();
    asked.dedup();
    asked.retain(|(code, _)| images.contains_key(code));
    let requests: Vec<_> = asked
        .iter()
        .map(|&(code, kernel)| Request { image: &images[code], device, kernel })
        .collect();
    let tool = Disassembler::locate(&Places::of_this_process(None))?;
    let scratch = Directory::for_this_run(&env::temp_dir())?;
    let disassembler = tool.map(|tool| Disassembler::new(tool, scratch, LONGEST_DISASSEMBLY));
    let read: HashMap<_, _> =
        asked.iter().zip(Reader::new(disassembler, None).read(&requests)).collect();

    for launch in &launches {
        let line = match read.get(&(launch.code.as_str(), launch.kernel.as_str())) {
            Some(Ok(read)) => {
                let source = match read.source {
                    CodeForm::Ptx => "PTX",
                    CodeForm::Sass => "machine code",
                };
                concluded(launch, &read.access, source)
            }
            Some(Err(reason)) => unread(launch, &reason.to_string()),
            None => unread(launch, "its machine code was not kept"),
        };
        println!("{line}");
    }
    Ok(())
}

/// A line of the log, if it is a measured launch whose code was kept.
fn measured(line: &Value) -> Result<Option<Measured>, Box<dyn Error>> {
    let (Some(ordinal), Some(code)) = (line["ordinal"].as_u64(), line["code"].as_str()) else {
        return Ok(None);
    };
    let three = |name: &str| -> Option<[u32; 3]> {
        let numbers = line[name].as_array()?.iter().map(|n| n.as_u64()?.try_into().ok());
        numbers.collect::<Option<Vec<u32>>>()?.try_into().ok()
    };
    let params = line["params"].as_str().ok_or("a launch without parameters")?;
    let params: Result<Vec<u8>, _> = (0..params.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&params[at..at + 2], 16))
        .collect();
    let mut memory = Vec::new();
    for run in line["memory"].as_array().ok_or("a launch without memory")? {
        // [start, length, pitch, count]
        let number = |at: usize| run[at].as_u64().unwrap_or(0);
        memory.extend(
            (0..number(3)).map(|at| ByteRange::with_len(number(0) + at * number(2), number(1))),
        );
    }
    Ok(Some(Measured {
        ordinal,
        kernel: line["name"].as_str().unwrap_or_default().to_owned(),
        code: code.to_owned(),
        grid: three("grid").ok_or("a launch without a grid")?,
        block: three("block").ok_or("a launch without blocks")?,
        params: params?,
        memory,
    }))
}

impl Measured {
    fn word(&self, at: usize) -> u64 {
        let bytes = self.params.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    }

    /// The allocation around an address.
    fn around(&self, address: u64) -> Option<ByteRange> {
        self.memory.iter().copied().find(|range| (range.start..range.end).contains(&address))
    }
}

fn concluded(launch: &Measured, kernel: &KernelAccess, source: &str) -> Value {
    let mut accesses = Vec::new();
    let mut add = |extent: Extent, mode: Mode, basis: Basis| {
        accesses.push(row(extent, mode, basis));
    };
    let values = Launch { grid: launch.grid, block: launch.block, params: &launch.params };
    for touched in instantiate(kernel, &values) {
        let Base::Pointer(at) = touched.base else { continue };
        let word = &kernel.pointers[at as usize];
        if word.kind != WordKind::Pointer {
            continue;
        }
        let mode = match touched.touch.weak() {
            Touch::Read => Mode::Read,
            Touch::Write => Mode::Write,
            Touch::Atomic => Mode::Atomic,
            _ => Mode::MayWrite,
        };
        let around = launch.around(launch.word(word.block_offset as usize));
        match touched.reach {
            Reach::Bytes { extent, exact: true } => add(extent, mode, Basis::Inferred),
            Reach::Bytes { extent, exact: false } => {
                // A bound, and no access leaves the allocation.
                let part = around.and_then(|range| extent.hull().intersection(range));
                match part {
                    Some(part) if part != extent.hull() => {
                        add(Extent::Range(part), mode, Basis::Anchored);
                    }
                    Some(_) => add(extent, mode, Basis::Anchored),
                    None => {}
                }
            }
            Reach::Anchored { .. } => {
                if let Some(range) = around {
                    add(Extent::Range(range), mode, Basis::Anchored);
                }
            }
        }
    }
    for word in kernel.pointers.iter().filter(|word| word.kind == WordKind::TensorMap) {
        let (Some(mode), at) = (mode_of(word.mode), word.block_offset as usize) else { continue };
        for part in (at..at + 128).step_by(8) {
            if let Some(range) = launch.around(launch.word(part)) {
                add(Extent::Range(range), mode, Basis::Assumed);
            }
        }
    }
    // Accesses through a variable's pointer are not measured.
    let follows = kernel.pointers.iter().any(|word| word.table)
        || kernel.globals.iter().any(|global| global.table)
        || !kernel.global_pointers.is_empty();
    let words: Vec<_> =
        kernel.pointers.iter().map(|word| mode_of(word.mode).map(code_of)).collect();
    json!({
        "ordinal": launch.ordinal, "name": launch.kernel, "code": launch.code, "source": source,
        "reason": kernel.unknown.join("; "), "words": words, "accesses": accesses,
        "declared": follows || kernel.may_touch_anything(),
    })
}

/// Every word that looks like a pointer may do anything.
fn unread(launch: &Measured, reason: &str) -> Value {
    let words = (0..launch.params.len()).step_by(8).filter_map(|at| launch.around(launch.word(at)));
    let accesses: Vec<_> =
        words.map(|range| row(Extent::Range(range), Mode::MayWrite, Basis::Assumed)).collect();
    json!({
        "ordinal": launch.ordinal, "name": launch.kernel, "code": launch.code,
        "source": "not read", "reason": reason, "words": [], "accesses": accesses,
        "declared": false,
    })
}

/// [start, length, mode, basis, pattern], numbered as in traces.
fn row(extent: Extent, mode: Mode, basis: Basis) -> Value {
    let hull = extent.hull();
    let pattern = match extent {
        Extent::Range(_) => Value::Null,
        Extent::Strided(p) => json!([p.width, p.pitch, p.rows, p.slice_pitch, p.slices]),
    };
    let basis = Basis::ALL.iter().position(|other| *other == basis);
    json!([hull.start, hull.end - hull.start, code_of(mode), basis, pattern])
}

fn code_of(mode: Mode) -> usize {
    Mode::ALL.iter().position(|other| *other == mode).unwrap_or(Mode::ALL.len())
}

fn mode_of(mode: ParameterMode) -> Option<Mode> {
    Some(match mode {
        ParameterMode::None => return None,
        ParameterMode::Read => Mode::Read,
        ParameterMode::Write => Mode::Write,
        ParameterMode::ReadWrite => Mode::ReadWrite,
        ParameterMode::Atomic => Mode::Atomic,
        ParameterMode::Unknown => Mode::MayWrite,
    })
}
