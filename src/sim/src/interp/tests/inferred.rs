//! What `streamsan-kernels` concludes from a kernel's text against what the kernel does here: on
//! random launches every byte touched is inside the inferred set, and every byte of a set that is
//! called exact is touched.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use streamsan_kernels::access::{self, Base, KernelAccess, Reach, Touch, Waited};
use streamsan_kernels::ptx;
use streamsan_model::Extent;

use crate::interp::{AccessLog, Execution, Fault, Launch, Memory, Program, Progress};

/// Each pointer has its own part of the address space and starts in the middle of it.
const PART: u64 = 1 << 40;
const FIRST: u64 = 1 << 44;
const LAUNCHES: u32 = 24;

fn pointer(index: u64) -> u64 {
    FIRST + index * PART + PART / 2
}

/// Memory without an end, full of small words, so that indices read from it stay small.
struct Endless {
    written: RefCell<HashMap<u64, u8>>,
    salt: u64,
}

impl Endless {
    fn byte(&self, address: u64) -> u8 {
        let fresh = || match address % 4 {
            0 => ((address / 4).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ self.salt) >> 58) as u8,
            _ => 0,
        };
        self.written.borrow().get(&address).copied().unwrap_or_else(fresh)
    }
}

impl Memory for Endless {
    fn load(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        for (at, byte) in buf.iter_mut().enumerate() {
            *byte = self.byte(addr.wrapping_add(at as u64));
        }
        Ok(())
    }
    fn store(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let mut written = self.written.borrow_mut();
        written.extend(data.iter().enumerate().map(|(at, &b)| (addr.wrapping_add(at as u64), b)));
        Ok(())
    }
    fn atomic(&self, addr: u64, size: u8, f: &mut dyn FnMut(u64) -> u64) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        self.load(addr, &mut bytes[..usize::from(size)])?;
        let old = u64::from_le_bytes(bytes);
        self.store(addr, &f(old).to_le_bytes()[..usize::from(size)])?;
        Ok(old)
    }
}

fn small(rng: &mut TestRng) -> u32 {
    match rng.next_u32() % 16 {
        0 => 0,
        1 => u32::MAX,
        2 => 1 << (rng.next_u32() % 10),
        3 => rng.next_u32() % 1500,
        _ => rng.next_u32() % 130,
    }
}

/// Random arguments: pointers where the analysis sees some, small numbers elsewhere.
fn arguments(kernel: &KernelAccess, params: &[(u32, u32)], rng: &mut TestRng) -> Vec<u8> {
    let mut bytes = vec![0u8; kernel.params_size as usize];
    for &(offset, size) in params {
        let (offset, size) = (offset as usize, size as usize);
        for at in (0..size).step_by(4) {
            let wide = size == 8 && at == 4;
            let value = if wide { 0 } else { small(rng) };
            let count = (size - at).min(4);
            bytes[offset + at..offset + at + count].copy_from_slice(&value.to_le_bytes()[..count]);
        }
    }
    for (number, word) in kernel.pointers.iter().enumerate() {
        let at = word.block_offset as usize;
        bytes[at..at + 8].copy_from_slice(&pointer(number as u64).to_le_bytes());
    }
    bytes
}

fn ranges(extent: Extent) -> Vec<Range<u64>> {
    match extent {
        Extent::Range(range) => std::iter::once(range.start..range.end).collect(),
        Extent::Strided(pattern) => pattern.runs().map(|run| run.start..run.end).collect(),
    }
}

fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|r| r.start);
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

fn inside(inner: &Range<u64>, outer: &[Range<u64>]) -> bool {
    outer.iter().any(|o| o.start <= inner.start && inner.end <= o.end)
}

#[derive(Debug, Default)]
struct Score {
    launches: u32,
    sets: u32,
    exact: u32,
    kernels: u32,
    affine: u32,
}

/// One random launch; whether all that it touches was concluded exactly.
fn launch(
    program: &Program,
    kernel: &KernelAccess,
    rng: &mut TestRng,
    score: &mut Score,
) -> Option<bool> {
    let id = program.kernel(&kernel.name)?;
    let info = program.kernel_info(id);
    let params = arguments(kernel, &info.params, rng);
    let mut dims = |limits: [u32; 3]| limits.map(|limit| 1 + rng.next_u32() % limit);
    let (grid, block) = (dims([4, 3, 2]), dims([40, 3, 2]));
    let globals: Vec<u64> =
        (0..program.globals().len() as u64).map(|at| pointer(100 + at)).collect();
    let memory = Endless { written: RefCell::default(), salt: u64::from(rng.next_u32()) };
    for (at, &address) in globals.iter().enumerate() {
        memory.store(address, &program.initial_bytes(at, &globals)).unwrap();
    }
    let run = Launch {
        kernel: id,
        grid,
        block,
        dynamic_shared: 16384,
        params: &params,
        global_addresses: &globals,
        cooperative: false,
    };
    let mut log = AccessLog::default();
    let mut execution = Execution::new(program, &run).ok()?;
    let finished = (0..4).any(|_| {
        matches!(execution.step(program, &memory, &mut log, 200_000), Ok(Progress::Finished))
    });
    let launch = access::Launch { grid, block, params: &params };
    let touched = access::instantiate(kernel, &launch);
    score.launches += 1;
    let mut all_exact = true;
    let before = *log.before_wait.take().unwrap_or_default();
    let sets = [
        (&log.reads, &before.reads, Touch::Read),
        (&log.writes, &before.writes, Touch::Write),
        (&log.atomics, &before.atomics, Touch::Atomic),
    ];
    for (behind, before, mode) in sets {
        let (behind, before) = (behind.ranges(), before.ranges());
        let truth = merged([behind.clone(), before.clone()].concat());
        let (mut inferred, mut inferred_before) = (Vec::new(), Vec::new());
        for one in touched.iter().filter(|t| t.touch == mode || t.touch == Touch::Unknown) {
            let shift = match one.base {
                Base::Pointer(_) => 0,
                Base::Global(at) => {
                    let name = &kernel.globals[at as usize].name;
                    globals[program.globals().iter().position(|g| g.name == *name).unwrap()]
                }
                Base::Held(at) => {
                    let held = &kernel.held[at as usize];
                    let name = &kernel.globals[held.global as usize].name;
                    let at = program.globals().iter().position(|g| g.name == *name).unwrap();
                    let start = held.offset as usize;
                    let bytes = &program.initial_bytes(at, &globals)[start..start + 8];
                    u64::from_le_bytes(bytes.try_into().unwrap())
                }
            };
            let mut told = Vec::new();
            match one.reach {
                Reach::Bytes { extent, exact } => {
                    let parts: Vec<_> = ranges(extent)
                        .into_iter()
                        .map(|r| r.start.wrapping_add(shift)..r.end.wrapping_add(shift))
                        .collect();
                    score.sets += 1;
                    score.exact += u32::from(exact);
                    all_exact &= exact;
                    for part in parts.iter().filter(|_| exact && finished) {
                        assert!(
                            inside(part, &truth),
                            "{}: {mode:?} of {part:x?} is called exact, but only {truth:x?} are \
                             touched; grid {grid:?}, block {block:?}, arguments {params:?}",
                            kernel.name
                        );
                    }
                    told.extend(parts);
                }
                Reach::Anchored { start } => {
                    all_exact = false;
                    let start = start.wrapping_add(shift);
                    told.push(start - PART / 2..start + PART / 2);
                }
            }
            // What is not told to come behind the wait may come before it.
            if one.waited != Waited::Yes {
                inferred_before.extend(told.iter().cloned());
            }
            inferred.extend(told);
        }
        let (inferred, inferred_before) = (merged(inferred), merged(inferred_before));
        if !kernel.may_touch_anything() {
            let behind = behind.iter().map(|range| (range, &inferred));
            let before = before.iter().map(|range| (range, &inferred_before));
            for (range, inferred) in behind.chain(before) {
                assert!(
                    inside(range, inferred),
                    "{}: {mode:?} of {range:x?} is in none of {inferred:x?}; grid {grid:?}, block \
                     {block:?}, arguments {params:?}",
                    kernel.name
                );
            }
        }
    }
    Some(all_exact && !kernel.may_touch_anything())
}

fn check(text: &str, score: &mut Score) {
    let module = ptx::parse(text).unwrap();
    let program = Program::lower(&module).unwrap();
    for kernel in access::analyse(&module) {
        let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let results: Vec<bool> =
            (0..LAUNCHES).filter_map(|_| launch(&program, &kernel, &mut rng, score)).collect();
        if !results.is_empty() {
            score.kernels += 1;
            let exact = results.iter().filter(|&&exact| exact).count();
            let affine = exact * 2 > results.len();
            score.affine += u32::from(affine);
            if !affine {
                println!("{}: {exact} of {} launches exact", kernel.name, results.len());
            }
        }
    }
}

#[test]
fn inferred_sets_cover_what_kernels_do() {
    let mut score = Score::default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in [root.join("../kernels/tests/access"), root.join("testdata")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            // What no driver would load cannot run.
            let loads = path.file_stem().is_some_and(|stem| stem != "unknown");
            if loads && path.extension().is_some_and(|ext| ext == "ptx") {
                check(&std::fs::read_to_string(path).unwrap(), &mut score);
            }
        }
    }
    println!("{score:?}");
    assert!(score.kernels >= 88, "{score:?}");
    assert!(score.affine >= 69, "{score:?}");
}
