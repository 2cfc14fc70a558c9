//! The PTX that is committed: what is concluded from a kernel's text against what the kernel does.
//! On random launches every byte touched is inside the inferred set, and every byte of a set that
//! is called exact is touched; what comes before the wait for the primary is told to.

use std::path::Path;

use libtest_mimic::Failed;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use streamsan_interp::{AccessLog, Execution, Launch, Memory as _, Program, Progress};
use streamsan_kernels::access::{self, Base, KernelAccess, Reach, Touch, Waited};
use streamsan_kernels::ptx;

use super::memory::{Endless, PART, pointer};
use super::runs::{Bytes, TOUCHES};
use super::sets::{inside, merged, ranges};

const LAUNCHES: u32 = 24;

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
    let memory = Endless::new(rng.next_u32(), Vec::new(), false);
    for (at, &address) in globals.iter().enumerate() {
        memory.store(address, &program.initial_bytes(at, &globals)).expect("memory");
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
    let sets = Bytes::of(&log).0.into_iter().zip(Bytes::of(&before).0).zip(TOUCHES);
    for ((behind, before), mode) in sets {
        let truth = merged([behind.clone(), before.clone()].concat());
        let (mut inferred, mut inferred_before) = (Vec::new(), Vec::new());
        for one in touched.iter().filter(|t| t.touch == mode || t.touch == Touch::Unknown) {
            let shift = match one.base {
                Base::Pointer(_) => 0,
                Base::Global(at) => {
                    let name = &kernel.globals[at as usize].name;
                    globals[program
                        .globals()
                        .iter()
                        .position(|g| g.name == *name)
                        .expect("a variable")]
                }
                Base::GlobalPointer(at) => {
                    let pointer = &kernel.global_pointers[at as usize];
                    let name = &kernel.globals[pointer.global as usize].name;
                    let at =
                        program.globals().iter().position(|g| g.name == *name).expect("a variable");
                    let start = pointer.offset as usize;
                    let bytes = &program.initial_bytes(at, &globals)[start..start + 8];
                    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
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
            // An access that is not told to come behind the wait may come before it.
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

fn check_module(text: &str, score: &mut Score) {
    let module = ptx::parse(text).expect("PTX");
    let program = Program::lower(&module).expect("a program");
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

/// Runs the kernels of every file, and compares.
pub(super) fn check() -> Result<(), Failed> {
    let mut score = Score::default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in
        [root.join("tests/access"), root.join("../interp/testdata"), root.join("../sim/testdata")]
    {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            // Code that no driver would load cannot run.
            let loads = path.file_stem().is_some_and(|stem| stem != "unknown");
            if loads && path.extension().is_some_and(|ext| ext == "ptx") {
                check_module(&std::fs::read_to_string(path)?, &mut score);
            }
        }
    }
    println!("{score:?}");
    // Fewer would mean that kernels no longer run or are no longer understood.
    if score.kernels < 88 || score.affine < 69 {
        return Err(format!("too few kernels: {score:?}").into());
    }
    Ok(())
}
