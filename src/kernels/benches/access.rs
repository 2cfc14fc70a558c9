//! Putting a launch into what is known of a kernel, and learning it from the text.

use divan::{Bencher, black_box};
use streamsan_kernels::access::{KernelAccess, Launch, Shapes, Workspace, analyse, analyse_kernel};
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
        .find_map(|text| analyse_kernel(&ptx::parse(text).expect("PTX"), name)?.ok())
        .expect("a kernel of the corpus")
}

const KERNELS: [&str; 6] =
    ["copy_guarded", "interior", "grid_stride_rotated", "pitched", "transpose", "nested"];

fn params(kernel: &KernelAccess, pointers: u64) -> Vec<u8> {
    let mut params = vec![0u8; kernel.params_size as usize];
    for at in (0..params.len()).step_by(4) {
        params[at..at + 4].copy_from_slice(&1000u32.to_le_bytes());
    }
    for (number, word) in kernel.pointers.iter().enumerate() {
        let at = word.block_offset as usize;
        let value = pointers + ((number as u64) << 32);
        params[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    params
}

fn launch(params: &[u8]) -> Launch<'_> {
    Launch { grid: [64, 64, 1], block: [16, 16, 1], params }
}

/// A launch whose numbers or sizes were not seen before.
#[divan::bench(args = KERNELS)]
fn new_shape(bencher: Bencher<'_, '_>, name: &str) {
    let kernel = kernel(name);
    let params = params(&kernel, 0x7f00_0000_0000);
    let (mut shapes, mut workspace) = (Shapes::new(&kernel), Workspace::default());
    bencher.bench_local(|| {
        shapes.clear();
        let launch = launch(&params);
        black_box(shapes.launch(black_box(&kernel), black_box(&launch), &mut workspace).len())
    });
}

/// A launch that differs from one before in its pointers only.
#[divan::bench(args = KERNELS)]
fn new_pointers(bencher: Bencher<'_, '_>, name: &str) {
    let kernel = kernel(name);
    let params = [0, 4096].map(|more| params(&kernel, 0x7f00_0000_0000 + more));
    let (mut shapes, mut workspace) = (Shapes::new(&kernel), Workspace::default());
    let mut turn = 0;
    bencher.bench_local(|| {
        turn ^= 1;
        let launch = launch(&params[turn]);
        black_box(shapes.launch(black_box(&kernel), black_box(&launch), &mut workspace).len())
    });
}

#[divan::bench]
fn analyse_loops(bencher: Bencher<'_, '_>) {
    let module = ptx::parse(LOOPS).expect("PTX");
    bencher.bench(|| analyse(black_box(&module)));
}
