//! Putting a launch into what is known of a kernel, and learning it from the text.

use divan::{Bencher, black_box};
use streamsan_kernels::access::{KernelAccess, Launch, analyse, analyse_kernel, instantiate};
use streamsan_kernels::ptx;

const LINEAR: &str = include_str!("../tests/access/linear.ptx");
const LOOPS: &str = include_str!("../tests/access/loops.ptx");
const DIMENSIONS: &str = include_str!("../tests/access/dimensions.ptx");

fn main() {
    divan::main();
}

fn kernel(name: &str) -> KernelAccess {
    [LINEAR, LOOPS, DIMENSIONS]
        .iter()
        .find_map(|text| analyse_kernel(&ptx::parse(text).expect("PTX"), name))
        .expect("a kernel of the corpus")
}

#[divan::bench(args = ["copy_guarded", "interior", "grid_stride_rotated", "pitched", "transpose", "nested"])]
fn launch(bencher: Bencher<'_, '_>, name: &str) {
    let kernel = kernel(name);
    let mut params = vec![0u8; kernel.params_size as usize];
    for at in (0..params.len()).step_by(4) {
        params[at..at + 4].copy_from_slice(&1000u32.to_le_bytes());
    }
    for (number, word) in kernel.pointers.iter().enumerate() {
        let at = word.block_offset as usize;
        let value = 0x7f00_0000_0000u64 + ((number as u64) << 32);
        params[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let launch = Launch { grid: [64, 64, 1], block: [16, 16, 1], params: &params };
    bencher.bench(|| instantiate(black_box(&kernel), black_box(&launch)));
}

#[divan::bench]
fn analyse_loops(bencher: Bencher<'_, '_>) {
    let module = ptx::parse(LOOPS).expect("PTX");
    bencher.bench(|| analyse(black_box(&module)));
}
