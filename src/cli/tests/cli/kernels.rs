//! `streamsan kernels` from outside: what it prints of images that are built by hand, compared with
//! the files in `tests/kernels`. `BLESS=1` writes these files; read the difference before a commit.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use streamsan_testing::golden;
use streamsan_testing::images::{
    CUBIN, Cubin, Elf, FAMILY, PTX, Packing, SAXPY, Section, bank, container, entry, parameter,
    saxpy_info,
};

/// Names of C++ and Rust, and a kernel that is not described.
fn cubin(number: u32) -> Vec<u8> {
    let wide = [parameter(0, 0, 20_000, true), parameter(1, 20_000, 1, false), bank(0x380, 20_001)];
    let kernels = vec![
        ("_ZN2ns5scaleIfEEvPT_PKS1_S1_i", saxpy_info()),
        ("_RNvC6shader4fill", wide.concat()),
        ("plain", vec![9]),
    ];
    Cubin::new(number, kernels).build()
}

fn library() -> Vec<u8> {
    let fatbin = container(&[
        entry(CUBIN, 90, 0, &cubin(90), Packing::Zstd),
        entry(CUBIN, 100, FAMILY, &cubin(100), Packing::Lz4),
    ]);
    let to_link = Cubin { relocatable: true, ..Cubin::new(90, vec![("linked", saxpy_info())]) };
    let to_link = container(&[entry(CUBIN, 90, 0, &to_link.build(), Packing::None)]);
    Elf::host(vec![Section::new(".nv_fatbin", fatbin), Section::new("__nv_relfatbin", to_link)])
        .build()
}

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.path().join(name), bytes).expect("written");
    }

    /// Writes a program, by another process: a file that is written here is open in whatever other
    /// tests start at that moment, and cannot be executed as long as it is (ETXTBSY).
    fn install(&self, name: &str, script: &str) {
        self.write("text", script.as_bytes());
        let mut install = Command::new("install");
        install.args(["-m", "755", "text", name]).current_dir(self.0.path());
        assert!(install.status().expect("it starts").success());
    }

    /// Whatever disassembler the machine has, there is none unless it is installed here.
    #[track_caller]
    fn run(&self, arguments: &[&str], code: i32) -> Output {
        let output = Command::new(env!("CARGO_BIN_EXE_streamsan"))
            .arg("kernels")
            .args(arguments)
            .current_dir(self.0.path())
            .env("STREAMSAN_NVDISASM", self.0.path().join("nvdisasm"))
            .env("XDG_CACHE_HOME", self.0.path().join("cache"))
            .output()
            .expect("started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
        output
    }
}

#[track_caller]
fn compare(name: &str, output: &Output) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels").join(name);
    golden::check(&file, &String::from_utf8_lossy(&output.stdout));
}

#[test]
fn table_and_json_tell_what_machine_code_tells() {
    let bench = Bench::new();
    bench.write("library.so", &library());
    compare("library.txt", &bench.run(&["library.so"], 0));
    compare("library.sm_103.txt", &bench.run(&["library.so", "--device", "sm_103"], 0));
    compare("library.json", &bench.run(&["library.so", "--json"], 0));
}

/// A name is whatever its image says, a line of a report or a command of a terminal too.
#[test]
fn names_are_printed_and_not_obeyed() {
    let names = [
        "verdict: CLEAN - no races",
        "a\nverdict: CLEAN - no races",
        "::error::b",
        "c\u{1b}[2J\u{7}\u{202e}##[error]",
    ];
    let kernels = names.map(|name| (name, saxpy_info())).to_vec();
    let bench = Bench::new();
    bench.write("hostile.cubin", &Cubin::new(90, kernels).build());
    let text = String::from_utf8(bench.run(&["hostile.cubin"], 0).stdout).expect("UTF-8");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    for line in [
        "\"verdict: CLEAN - no races\"",
        "\"a\\nverdict: CLEAN - no races\"",
        "\\x3a:error::b",
        "c\\x1b[2J\\x07\\u{202e}##\\x5berror]",
    ] {
        assert!(lines.contains(&line), "{line}: {text}");
    }
    assert!(!text.contains(|c: char| c != '\n' && c.is_control()), "{text:?}");
    assert!(!lines.iter().any(|line| line.starts_with("verdict:") || line.starts_with("::")));
    let json = bench.run(&["hostile.cubin", "--json"], 0).stdout;
    assert!(!String::from_utf8_lossy(&json).contains('\u{202e}'));
    let found: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let kernels = found["kernels"].as_array().expect("kernels");
    for name in names {
        assert!(kernels.iter().any(|kernel| kernel["name"] == name), "{found:#}");
    }
}

/// A script stands for the disassembler: all the code does nothing.
#[test]
fn machine_code_tells_what_is_accessed() {
    let bench = Bench::new();
    let script = "#!/bin/sh\nat=0\nwhile [ $at -lt $(wc -c < $5) ]; do\n\
                  printf '/*%04x*/ EXIT ;\\n' $at; at=$((at + 16)); done\n";
    bench.install("nvdisasm", script);
    bench.write("library.so", &library());
    for arguments in [&["library.so", "--json"][..], &["library.so", "--json", "--device", "sm_90"]]
    {
        let output = bench.run(arguments, 0);
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let kernels = found["kernels"].as_array().expect("kernels");
        let known = kernels.iter().filter(|kernel| kernel["unknown"] == serde_json::json!([]));
        let known: Vec<_> = known.filter_map(|kernel| kernel["name"].as_str()).collect();
        assert!(known.contains(&"_ZN2ns5scaleIfEEvPT_PKS1_S1_i"), "{found:#}");
        assert!(!known.contains(&"plain"), "its parameters are not described");
    }
}

#[test]
fn ptx_tells_what_is_accessed() {
    const FILL: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
        .visible .entry fill(.param .u64 to, .param .u32 value) {\n\
        .reg .b64 %rd<3>; .reg .b32 %r<3>;\n\
        ld.param.u64 %rd1, [to]; ld.param.u32 %r1, [value];\n\
        cvta.to.global.u64 %rd2, %rd1; st.global.u32 [%rd2], %r1; ret; }\n";
    let bench = Bench::new();
    bench.write("fill.ptx", FILL.as_bytes());
    compare("fill.txt", &bench.run(&["fill.ptx"], 0));
    compare("fill.json", &bench.run(&["fill.ptx", "--json"], 0));
}

#[test]
fn pointers_in_variables_are_told() {
    const SUM: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
        .global .align 8 .u64 places[4];\n\
        .visible .entry sum() {\n\
        .reg .b64 %rd<3>; .reg .b32 %r<3>;\n\
        ld.global.u64 %rd1, [places]; ld.global.u64 %rd2, [places+24];\n\
        ld.global.u32 %r1, [%rd1+4]; st.global.u32 [%rd2], %r1; ret; }\n";
    let bench = Bench::new();
    bench.write("sum.ptx", SUM.as_bytes());
    compare("sum.txt", &bench.run(&["sum.ptx"], 0));
    compare("sum.json", &bench.run(&["sum.ptx", "--json"], 0));
}

#[test]
fn errors_have_documented_codes() {
    let bench = Bench::new();
    let saxpy = container(&[
        entry(PTX, 80, 0, SAXPY.as_bytes(), Packing::None),
        entry(CUBIN, 80, 0, &cubin(80), Packing::None),
    ]);
    bench.write("saxpy.fatbin", &saxpy);
    bench.write("cut.fatbin", &saxpy[..saxpy.len() - 1]);
    bench.write("text", b"int main() {}");
    bench.write("empty", b"");
    bench.write("plain.so", &Elf::host(Vec::new()).build());
    for (arguments, code, message) in [
        (&["saxpy.fatbin", "--device", "sm_75"][..], 2, "it has PTX for sm_80, cubin for sm_80"),
        (&["saxpy.fatbin", "--device", "90"], 2, "sm_90"),
        (&[], 2, "IMAGE"),
        (&["missing"], 5, "missing"),
        (&["."], 5, "."),
        (&["cut.fatbin"], 5, "cut off"),
        (&["text"], 5, "neither PTX"),
        (&["empty"], 5, "neither PTX"),
        (&["plain.so"], 5, "no GPU code"),
    ] {
        let output = bench.run(arguments, code);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(message), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn unreadable_code_does_not_hide_the_rest() {
    let bench = Bench::new();
    let mixed = container(&[
        entry(PTX, 90, 0, b"nonsense", Packing::None),
        entry(PTX, 80, 0, SAXPY.as_bytes(), Packing::Zstd),
    ]);
    bench.write("mixed.fatbin", &mixed);
    let output = bench.run(&["mixed.fatbin"], 5);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("saxpy\n"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("mixed.fatbin: PTX for sm_90 cannot be read: line 1"), "{errors}");
}
