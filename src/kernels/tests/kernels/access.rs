//! The corpus of kernels: `access/*.ptx`, each with what is concluded from it in the `.expected`
//! file beside it. `BLESS=1` writes these files; read the difference before a commit.
//!
//! A line `// modes: read write` in front of a kernel is written by hand and never blessed: the
//! true mode of each pointer word, in order, tables as `read+table`. That the ranges are right is
//! checked against runs of the same files, by the tests of the interpreter.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::conclusions;
use proptest::prelude::*;
use streamsan_kernels::access::{Base, KernelAccess, Launch, Waited, analyse, instantiate};
use streamsan_kernels::ptx;

fn corpus() -> Vec<PathBuf> {
    conclusions::files("tests/access", "ptx")
}

fn modes(kernel: &KernelAccess) -> String {
    let words = kernel.pointers.iter().map(|word| {
        let table = if word.table { "+table" } else { "" };
        format!("{}{table}", word.mode.description())
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn conclusions_are_the_expected_ones() {
    conclusions::check(&corpus(), |text| analyse(&ptx::parse(text).expect("PTX")));
}

#[test]
fn modes_are_the_ones_written_by_hand() {
    let (mut kernels, mut wrong) = (0, Vec::new());
    for path in corpus() {
        let text = std::fs::read_to_string(&path).expect("a file of the corpus");
        let mut written: Vec<&str> = Vec::new();
        let mut entries = 0;
        for line in text.lines() {
            if let Some(modes) = line.strip_prefix("// modes:") {
                written.push(modes.trim());
            }
            entries += usize::from(line.contains(".entry"));
        }
        let found = analyse(&ptx::parse(&text).expect("PTX"));
        assert_eq!((written.len(), entries), (found.len(), found.len()), "{}", path.display());
        for (kernel, written) in found.iter().zip(written) {
            kernels += 1;
            if modes(kernel) != written {
                wrong.push(format!("{}: {} and not {written}", kernel.name, modes(kernel)));
            }
        }
    }
    assert!(wrong.is_empty(), "wrong modes:\n{}", wrong.join("\n"));
    assert!(kernels >= 60, "only {kernels} kernels");
}

/// The effects through each of the parameters, from before the wait on, and where the kernel
/// triggers.
fn waited(kernel: &KernelAccess) -> String {
    let mut words = String::new();
    for at in 0..kernel.pointers.len() as u32 {
        let own = kernel.accesses.iter().filter(|access| access.base == Base::Pointer(at));
        words.push_str(match own.map(|access| access.waited).min() {
            Some(Waited::Yes) => "yes ",
            Some(Waited::Perhaps) => "perhaps ",
            Some(Waited::No) | None => "no ",
        });
    }
    words + kernel.trigger.description()
}

#[test]
fn what_comes_behind_the_wait_is_written_by_hand() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/access");
    let text = std::fs::read_to_string(folder.join("grid_control.ptx")).expect("the corpus");
    let written = text.lines().filter_map(|line| line.strip_prefix("// waited: "));
    let found = analyse(&ptx::parse(&text).expect("PTX"));
    let found: Vec<_> = found.iter().map(|kernel| (&kernel.name, waited(kernel))).collect();
    let expected = found.iter().map(|(name, _)| *name).zip(written.map(str::to_owned));
    assert_eq!(found, expected.collect::<Vec<_>>());
}

/// A branch whose target is not known may go to every label; in which order these are looked at must
/// not depend on the process.
#[test]
fn a_branch_to_anywhere_is_the_same_each_time() {
    let mut text = String::from(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry anywhere(.param .u64 a)\n{\n\
         .reg .b32 %r<2>;\n.reg .b64 %d<3>;\nld.param.u64 %d0, [a];\nmov.u32 %r0, %tid.x;\n\
         bra NOWHERE;\n",
    );
    for label in 0..12 {
        let _ = writeln!(text, "L{label}:\nadd.s64 %d0, %d0, {};", 4 << label);
        let _ = writeln!(text, "st.global.u32 [%d0], %r0;");
        if label % 3 == 0 {
            text.push_str("bra NOWHERE;\n");
        }
    }
    text.push_str("ret;\n}\n");
    let module = ptx::parse(&text).expect("PTX");
    let first = analyse(&module);
    assert!(first.iter().any(|kernel| !kernel.accesses.is_empty()));
    for _ in 0..20 {
        assert_eq!(analyse(&module), first);
    }
}

#[test]
fn conclusions_can_be_kept() {
    for path in corpus() {
        let text = std::fs::read_to_string(&path).expect("a file of the corpus");
        for kernel in analyse(&ptx::parse(&text).expect("PTX")) {
            let kept = serde_json::to_string(&kernel).expect("written");
            let back: KernelAccess = serde_json::from_str(&kept).expect("read");
            assert_eq!(back, kernel);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn shuffled_and_mangled_kernels_never_panic(
        file in any::<prop::sample::Index>(),
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..6), 1..12),
        word in any::<u32>(),
    ) {
        let files = corpus();
        let text = std::fs::read_to_string(&files[file.index(files.len())]).expect("a file");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (first, second, kind) in edits {
            let (a, b) = (first.index(lines.len()), second.index(lines.len()));
            match kind {
                0 => lines.swap(a, b),
                1 => { lines.remove(a); }
                2 => lines[a] = lines[b].clone(),
                3 => lines[a] = lines[a].replace("u32", "s64").replace("%rd", "%r"),
                4 => lines[a] = lines[a].replace(['1', '4'], "9223372036854775807"),
                _ => lines[a] = lines[a].replace(['1', '4'], "77"),
            }
        }
        if let Ok(module) = ptx::parse(&lines.join("\n")) {
            for kernel in analyse(&module) {
                let params = word.to_le_bytes().repeat(kernel.params_size.min(4096) as usize / 4);
                let launch = Launch { grid: [word | 1, 3, 1], block: [32, 2, 2], params: &params };
                instantiate(&kernel, &launch);
            }
        }
    }
}

/// No driver takes these, but anybody can write them.
#[test]
fn instructions_without_operands_are_no_trouble() {
    for instruction in [
        "atom.global.add.u32",
        "red.global.add.u32",
        "ld.global.u32",
        "ld.param.u64",
        "ldu.global.u32",
        "st.global.u32",
        "cp.async.ca.shared.global",
        "cp.async.bulk.global.shared::cta.bulk_group",
        "tex.2d.v4.f32.s32",
        "tld4.r.2d.v4.f32.f32",
        "suld.b.2d.b32.trap",
        "sust.b.2d.b32.trap",
        "sured.b.add.2d.u32.trap",
        "wmma.load.a.sync.aligned.row.m16n16k16.f16",
        "wmma.store.d.sync.aligned.row.m16n16k16.f32",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
        "mov.u32",
        "mov.b64",
        "add.u32",
        "mad.lo.u32",
        "setp.lt.u32",
        "selp.u32",
        "cvt.u64.u32",
        "cvta.to.global.u64",
        "shfl.sync.idx.b32",
        "vote.sync.any.pred",
        "bra",
        "brx.idx",
        "call",
        "call.uni",
        "mapa.u64",
        "prefetch.global.L2",
        "mbarrier.init.shared.b64",
        "bfe.u32",
        "prmt.b32",
    ] {
        for operands in ["", " %r", " %r, %r"] {
            let text = format!(
                ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n\
                 {{\n.reg .b32 %r;\n{instruction}{operands};\nret;\n}}\n"
            );
            if let Ok(module) = ptx::parse(&text) {
                analyse(&module);
            }
        }
    }
}

/// No driver takes a guard that is no predicate either. It may hold or not, as one that is not
/// declared.
#[test]
fn a_guard_that_is_no_predicate_may_hold_or_not() {
    let concluded = |guard: &str| {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.func touch(.param .u64 q)\n{{\n\
             .reg .b64 %d;\nld.param.u64 %d, [q];\nst.global.u32 [%d+64], 1;\nret;\n}}\n\
             .visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<3>;\n.reg .b64 %d<2>;\n\
             ld.param.u64 %d0, [p];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, 0;\n\
             @{guard} bra BEHIND;\nst.global.u32 [%d0], 1;\nBEHIND:\n\
             @!{guard} st.global.u32 [%d0+16], 1;\n@{guard} mov.u32 %r1, 4;\n\
             {{\n.param .b64 a;\nst.param.b64 [a], %d0;\n@{guard} call touch, (a);\n}}\n\
             LOOP:\nadd.u32 %r1, %r1, 1;\n@{guard} griddepcontrol.wait;\n@{guard} bra LOOP;\n\
             @{guard} exit;\nst.global.u32 [%d0+32], %r1;\nret;\n}}\n"
        );
        analyse(&ptx::parse(&text).expect("PTX"))
    };
    let expected = concluded("%undeclared");
    assert_eq!(expected[0].accesses.len(), 4, "{expected:?}");
    for guard in ["%r0", "%r1", "%r2", "%d0"] {
        assert_eq!(concluded(guard), expected, "{guard}");
    }
}
