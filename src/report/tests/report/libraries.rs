//! Lints whose calls all lie inside libraries: counted in a line, listed with an option, and kept by
//! the forms for programs.

use crate::stacks::{assert_valid, with_report};
use std::path::Path;
use streamsan_model::Threshold;
use streamsan_report::{Report, TextOptions};

/// A wait for an event that was never recorded, by a call with this stack.
fn wait(frames: &str) -> String {
    format!("stack w {frames}\nwait s1 e1 stack=w\n")
}

/// A call in the legacy stream and one in a non-blocking stream, with these stacks.
fn beside(legacy: &str, other: &str) -> String {
    format!(
        "stack a {other}\nstack b {legacy}\nalloc A 8\nalloc B 8\nmemset s1 A stack=a\n\
         memset legacy B stack=b\n"
    )
}

/// The libraries of all lints of a trace.
fn libraries(trace: &str) -> Vec<Option<String>> {
    with_report(trace, |report, _| report.lints().iter().map(|g| g.library.clone()).collect())
}

const USER: &str = "py:step@/proj/train.py:12 py:<module>@/proj/train.py:30 \
                    /usr/bin/python3.12+8:Py_RunMain /lib/x86_64-linux-gnu/libc.so.6+9";
const TORCH: &str = "/v/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so";
const NCCL: &str = "/v/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2";
const XLA: &str = "/v/lib/python3.12/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so";
const CUDART: &str = "/v/lib/python3.12/site-packages/nvidia/cu13/lib/libcudart.so.13";
const FFT: &str = "/v/lib/python3.12/site-packages/nvidia/cu13/lib/libcufft.so.12";

#[test]
fn event_calls_of_a_self_contained_library_are_its_own() {
    for (frames, expected) in [
        // Below a line of the program, through other libraries.
        (format!("{NCCL}+64 {NCCL}+80:ncclAllReduce {TORCH}+9:c10d::allreduce {USER}"), "NCCL"),
        (format!("{CUDART}+1:cudaStreamWaitEvent {NCCL}+64 {TORCH}+9 {USER}"), "NCCL"),
        (format!("{NCCL}+64 /proj/app+9:main@/proj/main.cc:4"), "NCCL"),
        // The file's name tells, wherever it lies.
        (
            "/home/me/nccl/build/lib/libnccl.so.2.27.3+64:x /proj/app+9:main@/proj/m.cc:4".into(),
            "NCCL",
        ),
        // On a thread of a library nothing is the program's.
        (
            format!("{TORCH}+64:at::cuda::CUDAEvent::block /lib/x86_64-linux-gnu/libc.so.6+4"),
            "libtorch_cuda.so",
        ),
        (format!("{TORCH}+64 {NCCL}+9 /lib/x86_64-linux-gnu/libc.so.6+4:clone"), "NCCL"),
        (
            format!("{TORCH}+64 py:run@/usr/lib/python3.12/threading.py:9 /usr/bin/python3.12+8"),
            "libtorch_cuda.so",
        ),
    ] {
        assert_eq!(libraries(&wait(&frames)), [Some(expected.to_owned())], "{frames}");
    }
}

#[test]
fn calls_that_may_be_the_programs_are_listed() {
    for frames in [
        // PyTorch hands on what the program asks for.
        format!("{CUDART}+1:cudaStreamWaitEvent {TORCH}+9:wait {USER}"),
        // The program is called back by a library.
        format!("/proj/plugin.so+9:enqueue@/proj/plugin.cc:8 {NCCL}+64 {USER}"),
        format!("/proj/stripped.so+9 {NCCL}+64 {USER}"),
        // An unknown library that somebody built.
        "/opt/work/libsolver.so+9:solve /lib/x86_64-linux-gnu/libc.so.6+4:clone".to_owned(),
        // Code that was made at run time.
        format!("{TORCH}+64 +4096 /lib/x86_64-linux-gnu/libc.so.6+4:clone"),
        // The frames further out were not recorded.
        format!("{TORCH}+64:at::cuda::CUDAEvent::block truncated"),
        // The interpreter ran Python functions that were not recorded.
        format!("{TORCH}+64 /usr/bin/python3.12+8:Py_RunMain /lib/x86_64-linux-gnu/libc.so.6+9"),
    ] {
        assert_eq!(libraries(&wait(&frames)), [None], "{frames}");
    }
    // Without stacks nothing is known.
    assert_eq!(libraries("wait s1 e1\n"), [None]);
}

/// A library that works in its caller's stream has not chosen that stream.
#[test]
fn the_stream_of_work_is_the_programs_choice_unless_it_gives_none() {
    let user = format!("{FFT}+64:cufftExecC2C {USER}");
    let thread = format!("{FFT}+64:cufftExecC2C /lib/x86_64-linux-gnu/libc.so.6+4:clone");
    let xla = format!("{FFT}+64:cufftMakePlan1d {XLA}+9:xla::gpu::RunFft {USER}");
    for (legacy, other, expected) in [
        (&user, &user, None),
        (&xla, &user, None),
        (&user, &xla, None),
        (&xla, &xla, Some("XLA")),
        (&thread, &xla, Some("cuFFT")),
        (&thread, &user, None),
    ] {
        let found = libraries(&beside(legacy, other));
        assert_eq!(found, [expected.map(str::to_owned)], "{legacy} beside {other}");
    }
}

/// Three waits inside NCCL below two lines of the program, and one of the program's own.
fn mixed() -> String {
    let inside = |name: &str, line: u32| {
        format!("stack {name} {NCCL}+64 {TORCH}+9 py:step@/proj/train.py:{line}\n")
    };
    format!(
        "{}{}stack c {TORCH}+9 py:step@/proj/train.py:14\nwait s1 e1 stack=a\nwait s1 e2 stack=b\n\
         wait s2 e1 stack=b\nwait s2 e3 stack=c\n",
        inside("a", 12),
        inside("b", 13)
    )
}

fn text(report: &Report<'_>, list: bool) -> String {
    report.render_text(&TextOptions { list_library_lints: list, ..TextOptions::default() })
}

#[test]
fn lints_inside_libraries_are_one_line_unless_asked_for() {
    with_report(&mixed(), |report, _| {
        let counted = text(&report, false);
        assert!(!counted.contains("train.py:12"), "{counted}");
        assert!(counted.contains("at train.py:14 in step\n"), "{counted}");
        assert!(
            counted.contains(
                "note: 1 lint of calls inside NCCL, seen 3 times; --list-library-lints lists them\n"
            ),
            "{counted}"
        );
        let verdict = "verdict: CLEAN - no races, 1 lint, 1 lint inside libraries\n";
        assert!(counted.ends_with(verdict), "{counted}");
        let listed = text(&report, true);
        assert!(listed.contains("at train.py:12 in step, inside NCCL\n"), "{listed}");
        assert!(!listed.contains("--list-library-lints"), "{listed}");
        assert!(listed.ends_with(verdict), "{listed}");
    });
}

#[test]
fn forms_for_programs_have_the_library() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report-schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    with_report(&mixed(), |report, _| {
        let text = report.render_json();
        assert_valid(&schema, "libraries", &text);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let lints = json["lints"].as_array().unwrap();
        let inside = lints.iter().filter(|lint| lint["library"] == "NCCL");
        assert_eq!(inside.map(|lint| lint["count"].clone()).collect::<Vec<_>>(), [3]);
        assert_eq!(lints.iter().filter(|lint| lint["library"].is_null()).count(), 1);
        assert!(report.render_sarif("1.2.3").contains("\"library\": \"NCCL\""));
        assert!(report.render_junit().contains("inside NCCL"));
        for form in [report.render_github(), report.render_github_summary()] {
            assert!(form.contains("1 lint of calls inside NCCL, seen 3 times"), "{form}");
            assert!(!form.contains("train.py:12"), "{form}");
            assert!(form.contains("14"), "{form}");
        }
    });
}

/// A lint that fails the build is reported, wherever its call lies.
#[test]
fn lints_that_fail_the_build_are_listed() {
    let with_threshold = |threshold, look: &dyn Fn(&Report<'_>)| {
        crate::stacks::with_report_at(&mixed(), threshold, |report, _| look(&report));
    };
    with_threshold(Threshold::Lint, &|report| {
        let text = text(report, false);
        assert!(text.contains("inside NCCL"), "{text}");
        assert!(!text.contains("--list-library-lints"), "{text}");
        assert!(report.render_github().contains("::error file=train.py,line=12"));
        assert_eq!(report.verdict().description(), "RACY");
    });
    with_threshold(Threshold::Latent, &|report| {
        assert_eq!(report.verdict().description(), "CLEAN");
    });
}

/// The program's lines are no part of the id: the library's calls are the same everywhere.
#[test]
fn the_id_has_the_library_and_no_line_of_the_program() {
    let id = |trace: &str| {
        with_report(trace, |report, _| report.lints()[0].lint.fingerprint.to_string())
    };
    let call = |library: &str, function: &str| {
        wait(&format!("{library}+64 {TORCH}+9 py:{function}@/proj/train.py:12"))
    };
    assert_eq!(id(&call(NCCL, "step")), id(&call(NCCL, "other")));
    assert_ne!(id(&call(NCCL, "step")), id(&call(FFT, "step")));
    assert_ne!(id(&call(TORCH, "step")), id(&call(TORCH, "other")));
}
