//! Races known in libraries: the pairs that the shipped list knows, the pairs that it must never
//! hide, and their wording in reports.

use crate::stacks::{assert_valid, source_line, with_report_by};
use std::path::Path;
use streamsan_model::{Operation, Threshold};
use streamsan_report::{
    Baseline, Disposition, Gate, KnownUpstream, Report, Story, Suppressions, TextOptions,
};

/// The report of a text trace, with a list of known races.
fn with_report<T>(
    trace: &str,
    upstream: Option<&KnownUpstream>,
    look: impl FnOnce(Report<'_>, &[Operation]) -> T,
) -> T {
    with_report_by(trace, Threshold::Possible, (upstream, None), look)
}

/// The entries that know the findings of a trace, in the order of the report; none for open ones.
fn known(trace: &str, list: &KnownUpstream) -> Vec<Option<String>> {
    with_report(trace, Some(list), |report, _| {
        let entry = |d: &Disposition| d.upstream().map(|upstream| upstream.entry.clone());
        report.groups().iter().map(|group| entry(&group.disposition)).collect()
    })
}

const SITE: &str = "/v/lib/python3.12/site-packages";
const USER: &str = "py:step@/proj/train.py:12 py:<module>@/proj/train.py:30 \
                    /usr/bin/python3.12+8:Py_RunMain";

/// Where the interpreter begins, in a stack without Python's functions.
const NATIVE_ONLY: &str = "/usr/bin/python3.12+8:Py_RunMain";

/// A pair as it was seen on a GPU.
#[derive(Clone, Debug)]
struct Fixture {
    entry: &'static str,
    /// Lines before both calls.
    before: String,
    /// The frames of each call, innermost first and without those of the user, and the call.
    sides: [(Vec<String>, String); 2],
}

impl Fixture {
    /// The text trace; a side whose frames are empty has no stack.
    fn trace(&self) -> String {
        let mut trace = self.before.clone();
        for (name, (frames, _)) in ["first", "second"].iter().zip(&self.sides) {
            let user = match frames.last() {
                None => continue,
                Some(last) if last == NATIVE_ONLY => "",
                Some(_) => USER,
            };
            trace += &format!("stack {name} {} {user}\n", frames.join(" "));
        }
        for (name, (frames, call)) in ["first", "second"].iter().zip(&self.sides) {
            let stack = if frames.is_empty() { String::new() } else { format!(" stack={name}") };
            trace += &format!("{call}{stack}\n");
        }
        trace
    }
}

/// Frames of images below the directory of installed packages.
fn frames(list: &[&str]) -> Vec<String> {
    list.iter().map(|frame| format!("{SITE}/{frame}")).collect()
}

/// PyTorch fills the generator's state, called by these functions.
fn fill(from: &str, above: &str, stream: &str) -> (Vec<String>, String) {
    let from = format!("torch/lib/libtorch_cuda.so+4:at::CUDAGeneratorState::{from}");
    let above = format!("torch/lib/libtorch_cuda.so+5:at::cuda::CUDAGraph::{above}");
    let frames = frames(&[
        "torch/lib/../../nvidia/cu13/lib/libcudart.so.13+1:cudaLaunchKernel",
        "torch/lib/libtorch_cuda.so+2:at::native::fill_kernel_cuda",
        "torch/lib/libtorch_cpu.so+3:at::_ops::fill__Scalar::call",
        &from,
        &above,
    ]);
    (frames, format!("launch {stream} {FILL} w:M"))
}

const FILL: &str = "_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_11FillFunctorIlEE\
                    St5arrayIPcLm1EEEEviT0_T1_";
const DROPOUT: &str = "_ZN2at6native43_GLOBAL__N__50f1b6c4_10_Dropout_cu_0e96ed3824\
                       fused_dropout_kernel_vecIffjLi1ELi4EbEEvNS_4cuda6detail10TensorInfoIKT_\
                       T1_EENS5_IS6_S8_EENS5_IT4_S8_EES8_T0_NS_15PhiloxCudaStateE";
const FFT: &str = "_Z10vector_fftILj64E3EPTIJLj8EEELj8ELj16EL9padding_t14EL9twiddle_t0EL20\
                   loadstore_modifier_t2EL8layout_t0Ejf21HostConfigPlaceholderEv18\
                   kernel_arguments_tIT7_E";

/// One for each pair of the shipped list.
fn fixtures() -> Vec<Fixture> {
    let plan = frames(&[
        "nvidia/cu13/lib/libcufft.so.12+1",
        "nvidia/cu13/lib/libcufft.so.12+2:cufftXtMakePlanMany",
        "jax_plugins/xla_cuda13/xla_cuda_plugin.so+3:xla::gpu::RunFft",
    ]);
    let exec = frames(&[
        "nvidia/cu13/lib/libcufft.so.12+4",
        "nvidia/cu13/lib/libcufft.so.12+5:cufftXtExec",
        "jax_plugins/xla_cuda13/xla_cuda_plugin.so+6:xla::gpu::RunFft",
    ]);
    let replay = frames(&[
        "torch/lib/../../nvidia/cu13/lib/libcudart.so.13+7:cudaGraphLaunch",
        "torch/lib/libtorch_cuda.so+8:at::cuda::CUDAGraph::replay",
    ]);
    let graph = format!("alloc M 512\ngraph G\nnode G n launch {DROPOUT} =r:M\ninstantiate G X\n");
    vec![
        Fixture {
            entry: "cufft-plan-table",
            before: "global lut_sp 8 api=cuModuleGetGlobal_v2\n".to_owned(),
            sides: [
                (plan, "copy_sync dst:lut_sp src:H[0..8] api=cuMemcpyHtoD_v2".to_owned()),
                (exec, format!("launch s1 {FFT} =r:lut_sp")),
            ],
        },
        Fixture {
            entry: "pytorch-graph-generator",
            before: "alloc M 512\n".to_owned(),
            sides: [
                fill("capture_prologue", "capture_begin", "s1"),
                fill("replay_prologue", "replay", "s2"),
            ],
        },
        Fixture {
            entry: "pytorch-graph-generator",
            before: graph,
            sides: [
                fill("capture_prologue", "capture_begin", "s1"),
                (replay, "launch_graph X s2".to_owned()),
            ],
        },
    ]
}

#[test]
fn each_shipped_pair_is_known() {
    let list = KnownUpstream::shipped();
    for fixture in fixtures() {
        let found = known(&fixture.trace(), list);
        assert_eq!(found, [Some(fixture.entry.to_owned())], "{}", fixture.trace());
    }
    // Without the functions of Python, which stand further out, it is no less known.
    for mut fixture in fixtures() {
        for (frames, _) in &mut fixture.sides {
            frames.push(NATIVE_ONLY.to_owned());
        }
        assert_eq!(known(&fixture.trace(), list), [Some(fixture.entry.to_owned())]);
    }
    // An entry must name the version in which its race was seen.
    let pairs = KnownUpstream::shipped_text().lines().filter(|l| l.starts_with("pair:")).count();
    assert_eq!(pairs, fixtures().len());
    for entry in list.entries() {
        assert!(fixtures().iter().any(|fixture| fixture.entry == entry.name), "{}", entry.name);
        assert!(entry.reason.len() > 80 && !entry.seen.is_empty(), "{}", entry.name);
    }
}

/// Variants that make a side the program's, another library's or nobody's.
fn others(fixture: &Fixture, side: usize) -> Vec<(String, Fixture)> {
    let (frames, call) = &fixture.sides[side];
    let runtime = frames.iter().take_while(|frame| frame.contains("libcudart")).count();
    let own = frames[runtime].split('+').next().unwrap_or_default();
    let behind_runtime = |inserted: &[&str]| {
        let mut changed = frames[..runtime].to_vec();
        changed.extend(inserted.iter().map(|&frame| frame.to_owned()));
        changed.extend_from_slice(&frames[runtime..]);
        changed
    };
    let without_names = frames.iter().map(|frame| match frame.split_once(':') {
        Some((place, _)) => format!("{place}:other"),
        None => frame.clone(),
    });
    let nameless = format!("{own}+99");
    let renamed = |from: &str, to: &str| {
        frames.iter().map(|frame| frame.replace(from, to)).collect::<Vec<_>>()
    };
    let mut changed = vec![
        ("no stack", Vec::new()),
        ("the program's function", behind_runtime(&["/proj/app+9:go@/proj/a.cu:5"])),
        ("a function of a stripped program", behind_runtime(&["/proj/app+9"])),
        ("code made at run time", behind_runtime(&["+4096"])),
        ("the program's script", behind_runtime(&["py:go@/proj/go.py:3"])),
        ("a package's function", behind_runtime(&["py:go@/usr/lib/python3.12/ctypes/x.py:3"])),
        ("another library", behind_runtime(&["/usr/lib/libother.so.12+9:go"])),
        // The library calls the program back, which makes the call by the library.
        (
            "the program between the library's frames",
            behind_runtime(&[&nameless, "/proj/app+9:callback@/proj/a.cu:5"]),
        ),
        // Python functions that were not recorded may be the program's.
        ("an interpreter whose functions are unknown", {
            let mut changed = behind_runtime(&[&nameless, "/usr/bin/python3.12+8:Py_Call"]);
            changed.push(NATIVE_ONLY.to_owned());
            changed
        }),
        ("other functions of the library", without_names.collect()),
        ("a copy of the library by another name", renamed(own, "/proj/libs/libmine.so")),
    ];
    if own.ends_with(".so.12") {
        changed.push(("an older version", renamed("libcufft.so.12", "libcufft.so.11.9")));
        changed.push(("a newer version", renamed("libcufft.so.12", "libcufft.so.13")));
        changed.push(("no version", renamed("libcufft.so.12", "libcufft.so")));
    }
    let mut all: Vec<(String, Fixture)> = changed
        .into_iter()
        .map(|(what, frames)| {
            let mut fixture = fixture.clone();
            fixture.sides[side].0 = frames;
            (what.to_owned(), fixture)
        })
        .collect();
    // A kernel of the program, whoever launches it; also in a graph of the program.
    let mut with_kernel = fixture.clone();
    for kernel in [FILL, FFT] {
        with_kernel.sides[side].1 = with_kernel.sides[side].1.replace(kernel, "users_kernel");
    }
    if call.starts_with("launch_graph") {
        with_kernel.before = with_kernel.before.replace(DROPOUT, "users_kernel");
    }
    if call.starts_with("launch") {
        all.push(("the program's kernel".to_owned(), with_kernel));
    }
    all
}

/// The essential property: no entry matches a pair with a side that the program or another library
/// makes.
#[test]
fn a_pair_with_a_side_of_somebody_else_is_never_hidden() {
    let mut tried = 0;
    for fixture in fixtures() {
        for side in [0, 1] {
            for (what, other) in others(&fixture, side) {
                let found = known(&other.trace(), KnownUpstream::shipped());
                assert_eq!(found, [None], "{}, side {side}, {what}: {other:#?}", fixture.entry);
                tried += 1;
            }
        }
    }
    assert!(tried > 60, "{tried}");
}

/// The same for a list whose patterns accept everything: patterns do not decide whose a call is.
#[test]
fn patterns_do_not_decide_whose_a_call_is() {
    let everything = "[all]\nlibrary: x\nfile: libcufft.so* libtorch_cuda.so\nversions: any\n\
                      classes: *\npair: * & *\nreason: x\nreport: none known\nseen: 2026-11-22, x\n";
    let list = KnownUpstream::parse(everything).unwrap();
    for fixture in fixtures() {
        let is_graph = fixture.before.contains("graph G");
        let expected = (!is_graph).then(|| "all".to_owned());
        assert_eq!(known(&fixture.trace(), &list), [expected], "{fixture:#?}");
        for side in [0, 1] {
            for (what, other) in others(&fixture, side) {
                let by_names =
                    ["other functions", "version", "the program between", "kernel", "unknown"];
                if !by_names.iter().any(|name| what.contains(name)) {
                    assert_eq!(known(&other.trace(), &list), [None], "{what}: {other:#?}");
                }
            }
        }
    }
}

/// A mistake of the program that folds with a race known upstream counts.
#[test]
fn an_occurrence_of_the_programs_own_is_not_hidden_by_others() {
    let torch = &fixtures()[1];
    let own = frames(&["torch/lib/libtorch_cuda.so+2:at::native::fill_kernel_cuda"]).join(" ");
    let own = format!(
        "stack own {own} {USER}\nalloc N 512\nlaunch s3 {FILL} w:N stack=own\n\
         launch s4 {FILL} w:N stack=own\n"
    );
    for trace in [torch.trace() + &own, own + &torch.trace()] {
        with_report(&trace, Some(KnownUpstream::shipped()), |report, _| {
            let [group] = report.groups() else { panic!("one mistake: {trace}") };
            assert_eq!((group.count, group.fails), (2, true));
            assert_eq!(group.disposition, Disposition::Open);
            let stack = group.finding.first.stack;
            assert_eq!(stack, group.finding.second.stack, "the program's own pair stands for it");
        });
    }
}

fn text(report: &Report<'_>, list: bool) -> String {
    report.render_text(&TextOptions { list_known_upstream: list, ..TextOptions::default() })
}

#[test]
fn known_races_are_one_line_and_fail_nothing() {
    let fixture = &fixtures()[1];
    with_report(&fixture.trace(), Some(KnownUpstream::shipped()), |report, operations| {
        let counted = text(&report, false);
        assert_eq!(
            counted,
            "known upstream: 1 race in PyTorch, seen once; --list-known-upstream lists them\n\
             \nverdict: CLEAN - no races, 1 known upstream\n"
        );
        let listed = text(&report, true);
        assert!(listed.starts_with("known upstream: write-after-write on 512 bytes"), "{listed}");
        assert!(
            listed.contains("\n  PyTorch, pytorch-graph-generator: Where a capture"),
            "{listed}"
        );
        assert!(listed.ends_with("\nverdict: CLEAN - no races, 1 known upstream\n"), "{listed}");
        // The finding is shown in full on request.
        let group = &report.groups()[0];
        let mut story = Story::new(&report, group);
        operations.iter().for_each(|operation| story.operation(operation));
        let told = story.render(&TextOptions::default(), &mut source_line);
        assert!(told.contains("  = known upstream in PyTorch, pytorch-graph"), "{told}");
    });
    with_report(&fixture.trace(), None, |report, _| {
        assert_eq!(report.verdict().description(), "RACY");
        assert!(!text(&report, false).contains("upstream"));
    });
}

#[test]
fn forms_for_programs_say_what_the_list_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report-schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    with_report(&fixtures()[1].trace(), Some(KnownUpstream::shipped()), |report, _| {
        let json = report.render_json();
        assert_valid(&schema, "upstream", &json);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let finding = &json["findings"][0];
        assert_eq!(finding["disposition"], "known-upstream");
        assert_eq!((&finding["fails"], &json["verdict"]), (&false.into(), &"CLEAN".into()));
        assert_eq!(finding["upstream"]["entry"], "pytorch-graph-generator");
        assert_eq!(finding["upstream"]["library"], "PyTorch");
        let link = "https://github.com/pytorch/pytorch/pull/176753";
        assert_eq!(finding["upstream"]["report"], link);
        let sarif: serde_json::Value = serde_json::from_str(&report.render_sarif("1.2.3")).unwrap();
        let result = &sarif["runs"][0]["results"][0];
        assert_ne!(result["level"], "error");
        let suppression = &result["suppressions"][0];
        assert_eq!(suppression["status"], "accepted");
        assert!(suppression["justification"].as_str().unwrap().contains("Where a capture begins"));
        assert_eq!(suppression["properties"]["knownUpstream"], "pytorch-graph-generator");
        assert_eq!(suppression["properties"]["report"], link);
        let junit = report.render_junit();
        assert!(junit.contains("<skipped message=\"known upstream in PyTorch"), "{junit}");
        let github = report.render_github();
        let told = "::notice title=streamsan::known upstream: 1 race in PyTorch, seen once\n";
        assert!(github.contains(told) && !github.contains("::error"), "{github}");
        let summary = report.render_github_summary();
        assert!(summary.contains("| known upstream |"), "{summary}");
    });
}

#[test]
fn what_the_user_says_comes_first_and_the_baseline_last() {
    let list = Some(KnownUpstream::shipped());
    let trace = fixtures()[1].trace();
    let gate = |suppressions: &str, baseline: Option<Baseline>| Gate {
        suppressions: Some(Suppressions::parse(suppressions).unwrap()),
        baseline,
        today: "2026-06-15".parse().unwrap(),
    };
    // A baseline of a run without the list.
    let baseline = with_report(&trace, None, |report, _| Baseline::of(&report).render());
    with_report(&trace, list, |mut report, _| {
        report.hold_against(&gate("race[*]: * & * reason=mine", None));
        assert!(report.groups()[0].disposition.is_suppressed());
        assert!(report.unused().is_empty());
        report.hold_against(&gate("", Some(Baseline::parse(&baseline).unwrap())));
        assert!(report.unused().is_empty(), "{:?}", report.unused());
    });
    with_report(&trace, list, |mut report, _| {
        report.hold_against(&gate("", Some(Baseline::parse(&baseline).unwrap())));
        assert!(report.groups()[0].disposition.upstream().is_some());
        assert!(!report.groups()[0].fails);
        assert_eq!(Baseline::of(&report).render().lines().count(), 1, "nothing but its head");
        assert_eq!(report.verdict().description(), "CLEAN");
    });
}

#[test]
fn mistakes_in_a_list_are_told_with_their_line() {
    let entry = |change: &dyn Fn(&str) -> String| {
        let lines = [
            "[name]",
            "library: x",
            "file: libx.so*",
            "versions: 1..2",
            "classes: missing-wait stale-*",
            "pair: kernel:a & api:b",
            "      memory:c",
            "reason: x",
            "report: none known",
            "seen: 2026-11-22, x",
        ];
        KnownUpstream::parse(&lines.iter().map(|line| change(line) + "\n").collect::<String>())
    };
    let whole = entry(&|line| line.to_owned()).unwrap();
    assert_eq!(whole.entries().len(), 1);
    assert_eq!((&*whole.entries()[0].name, &whole.entries()[0].report), ("name", &None));
    for (line, wrong, at, told) in [
        ("[name]", "name", 1, "expected the name of an entry"),
        ("library: x", "library x", 2, "expected a field"),
        ("library: x", "author: x", 2, "expected a field"),
        ("library: x", "", 1, "says nothing of its library"),
        ("library: x", "library:", 1, "says nothing of its library"),
        ("file: libx.so*", "library: x", 3, "twice"),
        ("file: libx.so*", "", 1, "says nothing of its file"),
        ("versions: 1..2", "versions: 2..1", 4, "versions are"),
        ("versions: 1..2", "", 1, "says nothing of its versions"),
        ("classes: missing-wait stale-*", "classes: no-such", 5, "no class 'no-such'"),
        ("pair: kernel:a & api:b", "pair: kernel:a", 6, "two sides"),
        ("pair: kernel:a & api:b", "pair: kernels:a & *", 6, "not understood"),
        ("pair: kernel:a & api:b", "", 1, "says nothing of its pair"),
        ("reason: x", "", 1, "says nothing of its reason"),
        ("report: none known", "report: somewhere", 9, "https://"),
        ("report: none known", "", 1, "says nothing of its report"),
        ("seen: 2026-11-22, x", "seen: lately", 10, "begins with a day"),
        ("seen: 2026-11-22, x", "", 1, "says nothing of its seen"),
        ("seen: 2026-11-22, x", "seen: 2026-11-22, x\n[name]", 11, "two entries 'name'"),
    ] {
        let change = |text: &str| if text == line { wrong.to_owned() } else { text.to_owned() };
        let error = entry(&change).expect_err(wrong);
        assert!(error.message.contains(told), "{wrong}: {error}");
        assert_eq!(error.line, at, "{wrong}: {error}");
    }
    assert_eq!(KnownUpstream::parse("  goes on").unwrap_err().line, 1);
    assert_eq!(KnownUpstream::parse("[a]\n  goes on").unwrap_err().line, 2);
}
