//! `printf` of a kernel formats as C does.

use super::harness::{Bench, TestMemory};
use crate::AccessLog;
use crate::memory::LOCAL_WINDOW;
use crate::printf::render;
use crate::space::Spaces;

/// A value as the compiler packs it.
enum Value {
    Int(i32),
    Long(i64),
    Double(f64),
    Text(&'static str),
}
use Value::{Double, Int, Long, Text};

fn formatted(format: &str, values: &[Value]) -> String {
    let mut local = Vec::new();
    let mut texts = Vec::new();
    for value in values {
        let (bytes, size) = match value {
            Int(v) => (v.to_le_bytes().to_vec(), 4),
            Long(v) => (v.to_le_bytes().to_vec(), 8),
            Double(v) => (v.to_le_bytes().to_vec(), 8),
            Text(v) => {
                texts.push((local.len().next_multiple_of(8), *v));
                (vec![0; 8], 8)
            }
        };
        local.resize(local.len().next_multiple_of(size), 0);
        local.extend(bytes);
    }
    let mut place = |text: &str| {
        let at = local.len();
        local.extend(text.bytes().chain([0]));
        LOCAL_WINDOW + at as u64
    };
    let format = place(format);
    let addresses: Vec<_> = texts.iter().map(|(at, text)| (*at, place(text))).collect();
    for (at, address) in addresses {
        local[at..at + 8].copy_from_slice(&address.to_le_bytes());
    }
    let (memory, mut log) = (TestMemory::default(), AccessLog::default());
    let mut spaces =
        Spaces { memory: &memory, shared: &mut [], params: &[], workspace: &mut [], log: &mut log };
    String::from_utf8(render(&mut spaces, &local, format, LOCAL_WINDOW).unwrap()).unwrap()
}

#[test]
fn conversions_give_the_text_that_c_gives() {
    let cases: &[(&str, &[Value], &str)] = &[
        ("plain %% text\n", &[], "plain % text\n"),
        (
            "%d|%5d|%-5d|%05d|%+d",
            &[Int(7), Int(-7), Int(7), Int(-7), Int(7)],
            "7|   -7|7    |-0007|+7",
        ),
        (
            "%u %x %X %#x %o",
            &[Int(-1), Int(255), Int(255), Int(255), Int(8)],
            "4294967295 ff FF 0xff 10",
        ),
        ("%d %lld %d", &[Int(1), Long(-1 << 40), Int(2)], "1 -1099511627776 2"),
        (
            "%f %.2f %8.3f|%-8.1f|",
            &[Double(1.5), Double(-2.345), Double(1.0), Double(9.0)],
            "1.500000 -2.35    1.000|9.0     |",
        ),
        ("%e %.1E", &[Double(12345.678), Double(0.00012)], "1.234568e+04 1.2E-04"),
        (
            "%g %g %g %g",
            &[Double(0.0001), Double(1e-5), Double(1e6), Double(123456.0)],
            "0.0001 1e-05 1e+06 123456",
        ),
        (
            "%s and %10s and %.2s",
            &[Text("one"), Text("two"), Text("three")],
            "one and        two and th",
        ),
        ("%c%c", &[Int(104), Int(105)], "hi"),
        ("%*d", &[Int(4), Int(7)], "   7"),
        ("%.3d", &[Int(7)], "007"),
        ("%f %f", &[Double(f64::NAN), Double(f64::NEG_INFINITY)], "nan -inf"),
        ("ends with %", &[], "ends with "),
    ];
    for (format, values, expected) in cases {
        assert_eq!(formatted(format, values), *expected, "{format}");
    }
}

#[test]
fn kernel_that_prints_runs() {
    let bench = Bench::new(
        ".version 7.0\n.target sm_70\n.address_size 64\n\
         .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
         .global .b8 empty[1];\n.entry k() { .reg .b64 t; .param .b64 a; .param .b64 b;\n\
         .param .b32 r; mov.u64 t, empty; cvta.global.u64 t, t; st.param.b64 [a], t;\n\
         st.param.b64 [b], 0; call (r), vprintf, (a, b); ret; }",
    );
    bench.launch("k", [1, 1, 1], [1, 1, 1], &[]).unwrap();
}
