//! Every way by which programs reach the driver leads through the hooks, and nothing else does.

use std::process::Command;

use streamsan_wire::{Api, Effect, effect_of};

use crate::harness::{Options, Owned, bench, run, run_with, runtime};
use streamsan_testing::fake_driver as fake;

const LOOKUP: &str = include_str!("c/lookup.c");

fn compare(args: &[&str], name: &str) {
    let program = fake::program(bench(), name, LOOKUP, &[]);
    let recorded = run(&program, args);
    assert_eq!(recorded.stdout, "all as expected\n");
    assert!(recorded.status.success());
    let begins: Vec<_> = recorded
        .events
        .iter()
        .filter_map(|event| match &event.record {
            Owned::Begin { api, args, .. } => Some((*api, args[0])),
            _ => None,
        })
        .collect();
    let expected = [
        (Api::cuMemFree_v2, 1),
        (Api::cuMemFree_v2, 2),
        (Api::cuMemFree, 3),
        (Api::cuStreamSynchronize, 11),
        (Api::cuStreamSynchronize_ptsz, 12),
    ];
    assert_eq!(begins, expected);
    for (name, calls) in [
        ("cuGetProcAddress_v2", 9),
        ("cuGetProcAddress", 1),
        ("cuFabricCpyBatchAsync", 3),
        ("cuParamSetf", 1),
        ("cuGetExportTable", 1),
        ("cuZebraStripe", 2),
        ("cuMemFree_v2", 2),
        ("cuInit", 0),
    ] {
        assert_eq!(recorded.calls(name), calls, "{name}");
    }
}

#[test]
fn dlsym_dlvsym_and_get_proc_address_lead_to_the_hooks() {
    compare(&[], "lookup");
}

#[test]
fn a_driver_opened_with_deepbind_is_hooked() {
    compare(&["deepbind"], "lookup_deepbind");
}

#[test]
fn rtld_next_still_means_the_library_after_its_caller() {
    let next = "#define _GNU_SOURCE\n#include <dlfcn.h>\n\
        int foo(void) { return 100 + ((int (*)(void))dlsym(RTLD_NEXT, \"foo\"))(); }";
    fake::library(bench(), "libnext1.so", next);
    fake::library(bench(), "libnext2.so", "int foo(void) { return 7; }");
    let text = "#include <stdio.h>\nint foo(void);\nint main(void) { printf(\"%d\\n\", foo()); }";
    let link = ["-Wl,--no-as-needed", "-l:libnext1.so", "-l:libnext2.so"];
    let program = fake::program(bench(), "rtld_next", text, &link);
    assert_eq!(run(&program, &[]).stdout, "107\n");
}

#[test]
fn an_interposer_in_front_finds_the_hook_by_rtld_next() {
    let shim = "#define _GNU_SOURCE\n#include <dlfcn.h>\n\
        int cuMemFree_v2(unsigned long long p) {\n\
          return ((int (*)(unsigned long long))dlsym(RTLD_NEXT, \"cuMemFree_v2\"))(p + 1); }";
    fake::library(bench(), "libshim.so", shim);
    let text = "int cuMemFree_v2(unsigned long long);\nint main(void) { return cuMemFree_v2(4); }";
    let program = fake::program(bench(), "interposed", text, &["-l:libcuda.so.1"]);
    let shim = bench().join("libshim.so");
    let preload = format!("{}:{}", shim.display(), runtime().display());
    let recorded =
        run_with(&program, &[], &Options { preload: Some(preload), ..Options::default() });
    assert!(recorded.status.success());
    let Owned::Begin { api, args, .. } = &recorded.events[0].record else { panic!() };
    assert_eq!((*api, args[0]), (Api::cuMemFree_v2, 5));
}

#[test]
fn a_program_without_a_run_directory_gets_the_driver_itself() {
    let text = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\nint main(void) {\n\
        void *driver = dlopen(\"libcuda.so.1\", RTLD_NOW);\n\
        Dl_info info; dladdr(dlsym(driver, \"cuMemFree_v2\"), &info);\n\
        puts(info.dli_fname); return 0; }";
    let program = fake::program(bench(), "not_traced", text, &[]);
    let output = Command::new(&program)
        .env("LD_PRELOAD", runtime())
        .env("LD_LIBRARY_PATH", bench())
        .env("STREAMSAN_RUN_DIR", "/nonexistent")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("libcuda.so.1"));
}

#[test]
fn a_direct_call_without_a_driver_answers_not_found() {
    let text = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\nint main(void) {\n\
        int (*hooked)(long) = dlsym(RTLD_DEFAULT, \"cuMemFree_v2\");\n\
        int (*counted)(int) = dlsym(RTLD_DEFAULT, \"cuInit\");\n\
        printf(\"%d %d\\n\", hooked(1), counted(0)); return 0; }";
    let program = fake::program(bench(), "no_driver", text, &[]);
    let recorded = run(&program, &[]);
    assert_eq!(recorded.stdout, "500 500\n");
    assert_eq!(recorded.calls("cuInit"), 1);
}

#[test]
fn a_driver_in_another_namespace_is_hooked_when_it_is_looked_up_from_ours() {
    let text = "#define _GNU_SOURCE\n#include <dlfcn.h>\nint main(void) {\n\
        void *driver = dlmopen(LM_ID_NEWLM, \"libcuda.so.1\", RTLD_NOW);\n\
        int (*hooked)(long) = dlsym(driver, \"cuMemFree_v2\");\n\
        return hooked(9); }";
    let program = fake::program(bench(), "dlmopen", text, &[]);
    let recorded = run(&program, &[]);
    assert!(recorded.status.success());
    assert_eq!(recorded.count(Api::cuMemFree_v2), 1);
}

#[test]
fn two_copies_of_the_driver_each_get_their_own_calls() {
    let text = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n\
        int main(void) {\n\
        void *first = dlopen(\"libcuda.so.1\", RTLD_NOW);\n\
        void *second = dlmopen(LM_ID_NEWLM, \"libcuda.so.1\", RTLD_NOW);\n\
        ((int (*)(long))dlsym(first, \"cuMemFree_v2\"))(1);\n\
        ((int (*)(long))dlsym(second, \"cuMemFree_v2\"))(2);\n\
        printf(\"%llu %llu\\n\", *(unsigned long long *)dlsym(first, \"fake_args\"),\n\
               *(unsigned long long *)dlsym(second, \"fake_args\")); return 0; }";
    let program = fake::program(bench(), "two_drivers", text, &[]);
    let recorded = run(&program, &[]);
    assert_eq!(recorded.stdout, "1 2\n");
    // The second is not recorded, but counted under a name that spoils a clean verdict.
    assert_eq!(recorded.count(Api::cuMemFree_v2), 1);
    assert_eq!(recorded.calls("cuMemFree_v2"), 1);
    assert_eq!(recorded.calls("cuMemFree_v2 (second driver)"), 1);
    assert_eq!(effect_of("cuMemFree_v2 (second driver)"), Effect::Unknown);
}
