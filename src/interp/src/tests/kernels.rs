//! Whole kernels, compiled from `testdata/kernels.cu`: results and exact access sets.

use super::harness::{Arg, Bench, span};

const KERNELS: &str = include_str!("../../testdata/kernels.ptx");

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i as f32 * 0.75) - 20.0).collect()
}

#[test]
fn vector_addition_touches_only_the_elements_in_range() {
    let bench = Bench::new(KERNELS);
    let (a, b) = (numbers(100), numbers(128));
    let (pa, pb, pc) = (bench.floats(&a), bench.floats(&b), bench.allocate(400));
    let args = [Arg::U64(pa), Arg::U64(pb), Arg::U64(pc), Arg::U32(100)];
    let log = bench.launch("vadd", [2, 1, 1], [64, 1, 1], &args).unwrap();
    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    assert_eq!(bench.read_floats(pc, 100), expected);
    assert_eq!(log.weak.reads.ranges(), [span(pa, 400), span(pb, 400)]);
    assert_eq!(log.weak.writes.ranges(), [span(pc, 400)]);
    assert_eq!(log.weak.atomics.ranges(), []);
}

#[test]
fn fill_of_many_elements_is_one_interval() {
    let bench = Bench::new(KERNELS);
    let p = bench.allocate(4 << 16);
    let args = [Arg::U64(p), Arg::U32(0xabcd), Arg::U32(1 << 16)];
    let log = bench.launch("fill", [256, 1, 1], [256, 1, 1], &args).unwrap();
    assert_eq!(bench.read_words(p, 1 << 16), vec![0xabcd; 1 << 16]);
    assert_eq!(log.weak.writes.ranges(), [span(p, 4 << 16)]);
    assert_eq!(log.weak.reads.ranges(), []);
}

#[test]
fn scaling_reads_and_writes_the_same_bytes() {
    let bench = Bench::new(KERNELS);
    let values = [1.5f64, -2.0, 4.25];
    let p = bench.upload(&values, f64::to_le_bytes);
    let args = [Arg::U64(p), Arg::F64(2.5), Arg::U32(3)];
    let log = bench.launch("scale", [1, 1, 1], [32, 1, 1], &args).unwrap();
    assert_eq!(bench.download(p, 3, f64::from_le_bytes), [3.75, -5.0, 10.625]);
    assert_eq!(log.weak.reads.ranges(), [span(p, 24)]);
    assert_eq!(log.weak.writes.ranges(), [span(p, 24)]);
}

#[test]
fn grid_stride_loop_covers_every_element() {
    let bench = Bench::new(KERNELS);
    let (x, y) = (numbers(1000), numbers(1000));
    let (px, py) = (bench.floats(&x), bench.floats(&y));
    let args = [Arg::U32(1000), Arg::F32(3.0), Arg::U64(px), Arg::U64(py)];
    let log = bench.launch("saxpy", [3, 1, 1], [64, 1, 1], &args).unwrap();
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 3f32.mul_add(*x, *y)).collect();
    assert_eq!(bench.read_floats(py, 1000), expected);
    assert_eq!(log.weak.reads.ranges(), [span(px, 4000), span(py, 4000)]);
    assert_eq!(log.weak.writes.ranges(), [span(py, 4000)]);
}

#[test]
fn shared_memory_reduction_waits_at_its_barriers() {
    let bench = Bench::new(KERNELS);
    let values: Vec<f32> = (0..256).map(|i| i as f32).collect();
    let (input, out) = (bench.floats(&values), bench.allocate(8));
    let args = [Arg::U64(input), Arg::U64(out)];
    let log = bench.launch("reduce", [2, 1, 1], [128, 1, 1], &args).unwrap();
    assert_eq!(bench.read_floats(out, 2), [8128.0, 24512.0]);
    assert_eq!(log.weak.reads.ranges(), [span(input, 1024)]);
    assert_eq!(log.weak.writes.ranges(), [span(out, 8)]);
    let id = bench.program.kernel("reduce").unwrap();
    assert_eq!(bench.program.kernel_info(id).static_shared, 512);
}

#[test]
fn dynamic_shared_memory_has_the_size_of_the_launch() {
    let bench = Bench::new(KERNELS);
    let values = numbers(48);
    let (input, out) = (bench.floats(&values), bench.allocate(192));
    let args = [Arg::U64(input), Arg::U64(out), Arg::U32(48)];
    bench.launch_with("reverse", [1, 1, 1], [48, 1, 1], &args, 192, false).1.unwrap();
    let expected: Vec<f32> = values.iter().rev().copied().collect();
    assert_eq!(bench.read_floats(out, 48), expected);
}

#[test]
fn warp_shuffle_reduction_sums_all_lanes() {
    let bench = Bench::new(KERNELS);
    let values: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let (input, out) = (bench.floats(&values), bench.allocate(8));
    bench.launch("warp_sum", [2, 1, 1], [32, 1, 1], &[Arg::U64(input), Arg::U64(out)]).unwrap();
    assert_eq!(bench.read_floats(out, 2), [496.0, 1520.0]);
}

#[test]
fn tiled_matrix_product_matches_the_plain_one() {
    let bench = Bench::new(KERNELS);
    let a: Vec<f32> = (0..1024).map(|i| (i % 7) as f32 - 3.0).collect();
    let b: Vec<f32> = (0..1024).map(|i| (i % 5) as f32 * 0.5).collect();
    let (pa, pb, pc) = (bench.floats(&a), bench.floats(&b), bench.allocate(4096));
    let args = [Arg::U64(pa), Arg::U64(pb), Arg::U64(pc)];
    let log = bench.launch("matmul", [4, 4, 1], [8, 8, 1], &args).unwrap();
    let product = |n: usize| (0..32).map(|k| a[n / 32 * 32 + k] * b[k * 32 + n % 32]).sum::<f32>();
    assert_eq!(bench.read_floats(pc, 1024), (0..1024).map(product).collect::<Vec<_>>());
    assert_eq!(log.weak.reads.ranges(), [span(pa, 4096), span(pb, 4096)]);
    assert_eq!(log.weak.writes.ranges(), [span(pc, 4096)]);
}

#[test]
fn pointers_in_a_table_lead_to_the_rows_they_name() {
    let bench = Bench::new(KERNELS);
    let rows: Vec<u64> = (0..3).map(|r| bench.floats(&[r as f32, 10.0, 100.0])).collect();
    let (table, sums) = (bench.upload(&rows, u64::to_le_bytes), bench.allocate(12));
    let args = [Arg::U64(table), Arg::U64(sums), Arg::U32(2)];
    let log = bench.launch("pointer_table", [1, 1, 1], [3, 1, 1], &args).unwrap();
    assert_eq!(bench.read_floats(sums, 3), [10.0, 11.0, 12.0]);
    let mut expected: Vec<_> = rows.iter().map(|&row| span(row, 8)).collect();
    expected.push(span(table, 24));
    assert_eq!(log.weak.reads.ranges(), expected);
}

/// `struct Job`: offset, factor, where, weights.
fn job(target: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(2i32.to_le_bytes());
    bytes.extend(0.5f32.to_le_bytes());
    bytes.extend(target.to_le_bytes());
    for weight in [10i16, -20, 30, -40, 50] {
        bytes.extend(weight.to_le_bytes());
    }
    bytes.resize(32, 0);
    bytes
}

#[test]
fn struct_passed_by_value_arrives_whole() {
    let bench = Bench::new(KERNELS);
    let out = bench.allocate(80);
    let args = [Arg::Bytes(&job(out)), Arg::U32(6)];
    let log = bench.launch("by_value", [1, 1, 1], [8, 1, 1], &args).unwrap();
    let values = bench.download(out, 9, f64::from_le_bytes);
    assert_eq!(values, [0.0, 0.0, 5.0, -10.0, 15.0, -20.0, 25.0, 5.0, 0.0]);
    assert_eq!(log.weak.writes.ranges(), [span(out + 16, 48)]);
    assert_eq!(log.weak.reads.ranges(), []);
}

#[test]
fn atomics_lose_no_update_and_are_logged_apart() {
    let bench = Bench::new(KERNELS);
    let values: Vec<u32> = (0..256).map(|i| i * 37 % 101).collect();
    let (input, bins) = (bench.words(&values), bench.allocate(32));
    let (total, most) = (bench.allocate(4), bench.allocate(8));
    let args = [Arg::U64(input), Arg::U64(bins), Arg::U64(total), Arg::U64(most)];
    let log = bench.launch("histogram", [4, 1, 1], [64, 1, 1], &args).unwrap();
    let mut expected = [0; 8];
    values.iter().for_each(|v| expected[(v & 7) as usize] += 1);
    assert_eq!(bench.read_words(bins, 8), expected);
    assert_eq!(bench.read_floats(total, 1), [128.0]);
    assert_eq!(bench.download(most, 1, u64::from_le_bytes), [100]);
    assert_eq!(log.weak.atomics.ranges(), [span(bins, 32), span(total, 4), span(most, 8)]);
    assert_eq!(log.weak.reads.ranges(), [span(input, 1024)]);
    assert_eq!(log.weak.writes.ranges(), []);
}

#[test]
fn device_functions_recurse_and_take_structs() {
    let bench = Bench::new(KERNELS);
    let (out, weights) = (bench.allocate(20), bench.allocate(40));
    let args = [Arg::U64(out), Arg::U64(weights), Arg::Bytes(&job(0))];
    bench.launch("calls", [1, 1, 1], [5, 1, 1], &args).unwrap();
    assert_eq!(bench.read_words(out, 5), [3, 5, 7, 9, 11]);
    let weights = bench.download(weights, 5, f64::from_le_bytes);
    assert_eq!(weights, [5.0, -10.0, 15.0, -20.0, 25.0]);
}

#[test]
fn function_pointers_in_a_global_are_called() {
    let bench = Bench::new(KERNELS);
    let out = bench.allocate(16);
    bench.launch("through_pointer", [1, 1, 1], [4, 1, 1], &[Arg::U64(out)]).unwrap();
    assert_eq!(bench.read_words(out, 4), [0, 1, 4, 9]);
}

#[test]
fn local_arrays_belong_to_their_thread() {
    let bench = Bench::new(KERNELS);
    let order: Vec<u32> = (0..16).map(|i| (i * 5 + 3) % 16).collect();
    let (input, out) = (bench.words(&order), bench.allocate(64));
    bench.launch("local_array", [1, 1, 1], [16, 1, 1], &[Arg::U64(input), Arg::U64(out)]).unwrap();
    let expected = |thread: u32| {
        let mut mine = [0u32; 16];
        (0..16u32).for_each(|i| mine[order[i as usize] as usize] = i * i + thread);
        let start = order[thread as usize];
        (0..16).fold(0u32, |sum, i| {
            sum.wrapping_mul(3).wrapping_add(mine[((start + i) & 15) as usize])
        })
    };
    assert_eq!(bench.read_words(out, 16), (0..16).map(expected).collect::<Vec<_>>());
}

#[test]
fn vector_loads_and_stores_move_four_values() {
    let bench = Bench::new(KERNELS);
    let (input, out) = (bench.floats(&[1., 2., 3., 4., 5., 6., 7., 8.]), bench.allocate(32));
    let args = [Arg::U64(input), Arg::U64(out)];
    let log = bench.launch("vectors", [1, 1, 1], [2, 1, 1], &args).unwrap();
    assert_eq!(bench.read_floats(out, 8), [4., 3., 2., 1., 8., 7., 6., 5.]);
    assert_eq!(log.weak.reads.ranges(), [span(input, 32)]);
}

#[test]
fn globals_and_constants_are_read_where_the_driver_put_them() {
    let bench = Bench::new(KERNELS);
    let out = bench.allocate(24);
    let log = bench.launch("globals", [1, 1, 1], [6, 1, 1], &[Arg::U64(out)]).unwrap();
    let got = bench.download(out, 6, i32::from_le_bytes);
    assert_eq!(got, [-597, 2401, -2596, 4401, -4597, 6401]);
    let mut expected = [
        span(bench.global("table"), 16),
        span(bench.global("where"), 8),
        span(bench.global("weights"), 12),
    ];
    expected.sort_by_key(|range| range.start);
    assert_eq!(log.weak.reads.ranges(), expected);
}

#[test]
fn switch_takes_every_branch() {
    let bench = Bench::new(KERNELS);
    let out = bench.words(&[0, 1, 2, 3, 4, 5, 6, 7]);
    bench.launch("choose", [1, 1, 1], [8, 1, 1], &[Arg::U64(out), Arg::U32(13)]).unwrap();
    let got = bench.download(out, 8, i32::from_le_bytes);
    assert_eq!(got, [5, 91, -13, 4, 3, 104, 99, 99]);
}

#[test]
fn narrow_loads_extend_their_sign() {
    let bench = Bench::new(KERNELS);
    let input = bench.upload(&[-1i8, 2, -128, 127], i8::to_le_bytes);
    let (out, wide) = (bench.allocate(4), bench.allocate(32));
    let args = [Arg::U64(input), Arg::U64(out), Arg::U64(wide)];
    let log = bench.launch("bytes", [1, 1, 1], [4, 1, 1], &args).unwrap();
    assert_eq!(bench.download(out, 4, u8::from_le_bytes), [253, 6, 128, 125]);
    assert_eq!(bench.download(wide, 4, i64::from_le_bytes), [-1, 2, -128, 127]);
    assert_eq!(log.weak.writes.ranges(), [span(out, 4), span(wide, 32)]);
}

#[test]
fn block_that_waits_for_a_later_one_lets_it_start() {
    let bench = Bench::new(KERNELS);
    for cooperative in [false, true] {
        let (flag, out) = (bench.allocate(4), bench.allocate(4));
        let args = [Arg::U64(flag), Arg::U64(out)];
        let run = bench.launch_with("handover", [2, 1, 1], [32, 1, 1], &args, 0, cooperative);
        run.1.unwrap();
        assert_eq!(bench.read_words(out, 1), [7]);
    }
}
