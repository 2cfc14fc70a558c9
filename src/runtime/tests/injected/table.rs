//! Every hook is called, and its record compared field by field; the driver must see the same
//! arguments as without us, and the program the same result and out values.

use std::fmt::Write;

use streamsan_wire::{Api, BlobTag, ImageOrigin, Param, ParamKind, Scalar};

use crate::harness::{Event, Owned, bench, run};
use streamsan_testing::fake_driver as fake;

/// Where the program keeps what its arguments point to: known here, so that records can be
/// compared. 256 bytes a parameter, 16 parameters a function.
const AREA: u64 = 0x1_0000_0000;
const CONTEXT: u64 = 0xC0DE_0000_C0DE;

/// The driver's answer in the second round.
const FAILURE: i32 = 719;

fn place(api: Api, index: usize) -> u64 {
    AREA + (api as u64) * 4096 + index as u64 * 256
}

/// The argument that the test passes, widened to a word.
fn argument(api: Api, index: usize, param: &Param) -> u64 {
    if let Some(counted) = counted(api, index) {
        return counted;
    }
    let seed = 0x91A2_B3C4_D5E6_0000 | (api as u64) << 4 | index as u64;
    match param.kind {
        ParamKind::Extra => 0,
        ParamKind::Function => function(api, 0),
        ParamKind::Value => match param.scalar {
            Scalar::U8 => seed & 0xff,
            Scalar::U16 => seed & 0xffff,
            Scalar::U32 => seed & 0xffff_ffff,
            Scalar::I32 => i64::from(seed as i32) as u64,
            Scalar::U64 | Scalar::Pointer | Scalar::Bytes64 => seed,
        },
        _ => place(api, index),
    }
}

/// The function that a launch names, the `member`th of a launch on several devices.
fn function(api: Api, member: u64) -> u64 {
    0x000F_0000_0003 | (api as u64) << 16 | member << 4
}

/// How many elements parameter `index` counts, if it counts those of another.
fn counted(api: Api, index: usize) -> Option<u64> {
    let elements = api.signature().params.iter().filter_map(|param| match param.kind {
        ParamKind::InArray { element, count } if usize::from(count) == index => Some(element),
        ParamKind::InBytes { count } if usize::from(count) == index => Some(1),
        ParamKind::Launches { count } if usize::from(count) == index => Some(56),
        ParamKind::PerDimension { element, .. } if index == ParamKind::RANK => {
            Some(u16::from(element))
        }
        _ => None,
    });
    // As many as fit behind a parameter, two at most.
    elements.max().map(|longest| if longest > 128 { 1 } else { 2 })
}

/// `sizeof(CUDA_LAUNCH_PARAMS)`, and where the parameters of its kernel lie behind two of them.
const LAUNCH: usize = 56;
const LAUNCHES: u64 = 2;

fn member_params(api: Api, index: usize, member: u64) -> u64 {
    place(api, index) + LAUNCHES * LAUNCH as u64 + 48 * member
}

/// Byte `at` of what parameter `index` points to.
fn pattern(api: Api, index: usize, at: usize) -> u8 {
    (api as usize * 7 + index * 31 + at * 3) as u8 | 1
}

fn text_of(api: Api, index: usize) -> String {
    format!("name {index} of {}", api.name())
}

/// The three parameters of every launched kernel: layout (0, 8), (8, 4), (16, 8).
const KERNEL_PARAMS: [u64; 3] = [0x1122_3344_5566_7788, 0x99AA_BBCC, 0xDDEE_FF00_1234_5678];

fn packed_kernel_params() -> Vec<u8> {
    let mut packed = Vec::new();
    packed.extend(KERNEL_PARAMS[0].to_le_bytes());
    packed.extend((KERNEL_PARAMS[1] as u32).to_le_bytes());
    packed.extend([0; 4]);
    packed.extend(KERNEL_PARAMS[2].to_le_bytes());
    packed
}

/// `variables`: the driver has told of variables of modules.
fn expected_blobs(api: Api, variables: bool) -> Vec<(u32, Vec<u8>)> {
    let mut blobs = Vec::new();
    let bytes = |index, len: usize| (0..len).map(|at| pattern(api, index, at)).collect::<Vec<_>>();
    for (index, param) in api.signature().params.iter().enumerate() {
        let tag = index as u32;
        match param.kind {
            ParamKind::InStruct(len) => blobs.push((tag, bytes(index, usize::from(len)))),
            ParamKind::InOut(len) => blobs.push((tag, bytes(index, usize::from(len)))),
            ParamKind::PerDimension { element, less } => {
                let count = counted(api, ParamKind::RANK).unwrap() - u64::from(less);
                blobs.push((tag, bytes(index, usize::from(element) * count as usize)));
            }
            ParamKind::InArray { element, count } => {
                let count = counted(api, usize::from(count)).unwrap();
                blobs.push((tag, bytes(index, usize::from(element) * count as usize)));
            }
            ParamKind::InBytes { count } if variables => {
                let count = counted(api, usize::from(count)).unwrap();
                blobs.push((tag, bytes(index, count as usize)));
            }
            ParamKind::Launches { .. } => {
                let mut list = bytes(index, LAUNCHES as usize * LAUNCH);
                for member in 0..LAUNCHES {
                    let at = member as usize * LAUNCH;
                    list[at..at + 8].copy_from_slice(&function(api, member).to_le_bytes());
                    let params = member_params(api, index, member).to_le_bytes();
                    list[at + 48..at + 56].copy_from_slice(&params);
                }
                blobs.push((tag, list));
                for member in 0..LAUNCHES as u32 {
                    blobs.push((BlobTag::MEMBER_PARAMS + member, packed_kernel_params()));
                }
            }
            ParamKind::InString => blobs.push((tag, text_of(api, index).into_bytes())),
            ParamKind::LaunchConfig => {
                let mut config = bytes(index, 56);
                // The two attributes lie behind the configuration.
                config[40..48].copy_from_slice(&(place(api, index) + 64).to_le_bytes());
                config[48..52].copy_from_slice(&2u32.to_le_bytes());
                blobs.push((tag, config));
                let attributes = (0..144).map(|at| pattern(api, index, at + 64)).collect();
                blobs.push((BlobTag::LAUNCH_ATTRIBUTES, attributes));
            }
            _ => {}
        }
    }
    if api.signature().params.iter().any(|p| p.kind == ParamKind::KernelParams) {
        blobs.push((BlobTag::KERNEL_PARAMS, packed_kernel_params()));
    }
    blobs
}

/// The C statements that prepare, make and check one call.
fn call(api: Api, fails: bool) -> String {
    let signature = api.signature();
    let mut text = String::new();
    let mut args = Vec::new();
    let mut compared = Vec::new();
    for (index, param) in signature.params.iter().enumerate() {
        let at = place(api, index);
        let word = argument(api, index, param);
        match param.kind {
            ParamKind::InStruct(_)
            | ParamKind::LaunchConfig
            | ParamKind::PerDimension { .. }
            | ParamKind::InOut(_)
            | ParamKind::InBytes { .. }
            | ParamKind::InArray { .. } => {
                writeln!(text, "  fill({at}ull, {}, {index});", api as u16).unwrap();
            }
            ParamKind::InString => {
                writeln!(text, "  strcpy((char *){at}ull, \"{}\");", text_of(api, index)).unwrap();
            }
            ParamKind::KernelParams => {
                for (i, value) in KERNEL_PARAMS.iter().enumerate() {
                    let value_at = at + 64 + 8 * i as u64;
                    writeln!(text, "  *(u64 *){value_at}ull = {value}ull;").unwrap();
                    writeln!(text, "  ((u64 *){at}ull)[{i}] = {value_at}ull;").unwrap();
                }
            }
            ParamKind::Launches { .. } => {
                writeln!(text, "  fill({at}ull, {}, {index});", api as u16).unwrap();
                for member in 0..LAUNCHES {
                    let (params, function) =
                        (member_params(api, index, member), function(api, member));
                    let entry = at + member * LAUNCH as u64;
                    writeln!(text, "  *(u64 *){entry}ull = {function}ull;").unwrap();
                    writeln!(text, "  *(u64 *)({entry}ull + 48) = {params}ull;").unwrap();
                    for (i, value) in KERNEL_PARAMS.iter().enumerate() {
                        let value_at = params + 24 + 8 * i as u64;
                        writeln!(text, "  *(u64 *){value_at}ull = {value}ull;").unwrap();
                        writeln!(text, "  ((u64 *){params}ull)[{i}] = {value_at}ull;").unwrap();
                    }
                }
            }
            ParamKind::Out(_)
            | ParamKind::OutStream
            | ParamKind::OutContext
            | ParamKind::OutAddress
            | ParamKind::OutShareable
            | ParamKind::OutImported => {
                writeln!(text, "  *(u64 *){at}ull = 0x7777777777777777ull;").unwrap();
            }
            _ => {}
        }
        if param.kind == ParamKind::LaunchConfig {
            writeln!(text, "  *(u64 *)({at}ull + 40) = {at}ull + 64;").unwrap();
            writeln!(text, "  *(unsigned *)({at}ull + 48) = 2;").unwrap();
        }
        args.push(match param.kind {
            ParamKind::HostFunction => "host_function".to_owned(),
            ParamKind::StreamCallback => "stream_callback".to_owned(),
            _ if param.scalar == Scalar::Bytes64 => format!("*(struct bytes64 *){word}ull"),
            _ => format!("({}){word}ull", fake::c_type(param)),
        });
        if param.scalar == Scalar::Bytes64 {
            let (number, value) = (api as u16, format!("fold(*(struct bytes64 *){word}ull)"));
            compared.push(format!("  check({number}, {index}, fake_args[{index}], {value});"));
        } else if !matches!(
            param.kind,
            ParamKind::HostFunction | ParamKind::StreamCallback | ParamKind::UserData
        ) {
            compared
                .push(format!("  check({}, {index}, fake_args[{index}], {word}ull);", api as u16));
        }
    }
    let result = if fails { FAILURE } else { 0 };
    writeln!(text, "  fake_number = ~0ull; errno = 4711; ran = 0;").unwrap();
    writeln!(text, "  result = {}({});", signature.name, args.join(", ")).unwrap();
    writeln!(text, "  check({}, 100, result, {result});", api as u16).unwrap();
    writeln!(text, "  check({0}, 101, fake_number, {0});", api as u16).unwrap();
    writeln!(text, "  check({}, 102, errno, 4711);", api as u16).unwrap();
    for line in compared {
        writeln!(text, "{line}").unwrap();
    }
    for (index, param) in signature.params.iter().enumerate() {
        let at = place(api, index);
        let number = api as u16;
        let out = fake::out_value(api, index);
        let untouched = 0x7777_7777_7777_7777u64;
        let expected = match param.kind {
            ParamKind::Out(4) | ParamKind::OutShareable if !fails => untouched & !0xffff_ffff | out,
            ParamKind::Out(_)
            | ParamKind::OutStream
            | ParamKind::OutContext
            | ParamKind::OutAddress
            | ParamKind::OutShareable
            | ParamKind::OutImported => {
                if fails {
                    untouched
                } else {
                    out
                }
            }
            ParamKind::InOut(_) if fails => {
                u64::from_le_bytes(std::array::from_fn(|at| pattern(api, index, at)))
            }
            ParamKind::InOut(_) => out,
            ParamKind::UserData if !fails => {
                writeln!(text, "  check({number}, 103, ran, {at}ull);").unwrap();
                continue;
            }
            _ => continue,
        };
        writeln!(text, "  check({number}, {index}, *(u64 *){at}ull, {expected}ull);").unwrap();
    }
    text
}

fn program_text() -> String {
    let mut text = String::from(
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdint.h>\n#include <stdio.h>\n\
         #include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\ntypedef uint64_t u64;\n\
         extern u64 fake_number, fake_args[16];\nextern int fake_result;\n",
    );
    text += &fake::declarations();
    text += "static u64 ran;\n\
        static void host_function(void *data) { ran = (u64)data; }\n\
        static void stream_callback(void *s, int r, void *data) { ran = r ? 0 : (u64)data; }\n\
        static void fill(u64 at, int api, int index) {\n\
          for (int i = 0; i < 256; i++)\n\
            ((unsigned char *)at)[i] = (api * 7 + index * 31 + i * 3) | 1;\n\
        }\n\
        static void check(int api, int what, u64 got, u64 wanted) {\n\
          if (got == wanted) return;\n\
          printf(\"function %d, %d: %llx, not %llx\\n\", api, what, got, wanted);\n\
          exit(1);\n\
        }\n";
    for api in Api::ALL {
        for fails in [false, true] {
            write!(
                text,
                "static void call_{}_{fails}(void) {{\n  int result;\n{}}}\n",
                api.name(),
                call(*api, fails)
            )
            .unwrap();
        }
    }
    let size = Api::COUNT * 4096;
    write!(
        text,
        "int main(void) {{\n  if (mmap((void *){AREA}ull, {size}, 3, MAP_PRIVATE | MAP_ANONYMOUS \
         | MAP_FIXED_NOREPLACE, -1, 0) != (void *){AREA}ull) return 2;\n"
    )
    .unwrap();
    for (fails, result) in [(false, 0), (true, FAILURE)] {
        writeln!(text, "  fake_result = {result};").unwrap();
        for api in Api::ALL {
            writeln!(text, "  call_{}_{fails}();", api.name()).unwrap();
        }
    }
    text += "  puts(\"all as expected\");\n  return 0;\n}\n";
    text
}

#[test]
fn every_hook_records_its_call_and_changes_nothing() {
    let program = fake::program(bench(), "table", &program_text(), &["-l:libcuda.so.1"]);
    let recorded = run(&program, &[]);
    assert_eq!(recorded.stdout, "all as expected\n");
    assert!(recorded.status.success());
    assert_eq!(recorded.processes.len(), 1);
    assert_eq!(recorded.processes[0].dropped, 0);

    // The records read back of graphs have tests of their own.
    let graph = |event: &&Event| matches!(event.record, Owned::Graph(_));
    let mut events = recorded.events.iter().filter(|event| !graph(event)).peekable();
    for fails in [false, true] {
        for api in Api::ALL.iter().copied() {
            compare_call(api, fails, &mut events);
        }
    }
    assert!(events.next().is_none());
    for api in Api::ALL {
        assert_eq!(recorded.calls(api.name()), 2, "{}", api.name());
    }
}

fn compare_call<'a>(
    api: Api,
    fails: bool,
    events: &mut std::iter::Peekable<impl Iterator<Item = &'a Event>>,
) {
    let signature = api.signature();
    let name = signature.name;
    // The handles of all launches differ; the unloads between the rounds end their epoch.
    for function in functions(api) {
        let event = events.next().expect("a Kernel record");
        let Owned::Kernel { function: named, name: kernel, params } = &event.record else {
            panic!("{name} was launched without a Kernel record: {event:?}");
        };
        assert_eq!(*named, function, "{name}");
        assert_eq!(*kernel, format!("function_{function:x}"));
        assert_eq!(*params, Some(vec![(0, 8), (8, 4), (16, 8)]));
    }

    let begin = events.next().expect("a BEGIN");
    let Owned::Begin { api: began, depth, context, args, blobs } = &begin.record else {
        panic!("{name}: {begin:?}");
    };
    assert_eq!((*began, *depth, *context), (api, 0, CONTEXT));
    assert_eq!(args.len(), signature.params.len(), "{name}");
    for (index, param) in signature.params.iter().enumerate() {
        match param.kind {
            // The program's own function, not our wrapper: an address inside the program.
            ParamKind::HostFunction | ParamKind::StreamCallback => assert_ne!(args[index], 0),
            // A structure by value: the address of the hook's own copy.
            _ if param.scalar == Scalar::Bytes64 => assert_ne!(args[index], 0),
            _ => assert_eq!(args[index], argument(api, index, param), "{name} {}", param.name),
        }
    }
    // In the second round the driver has told of a variable, as large as all memory.
    let variables = fails;
    assert_eq!(*blobs, expected_blobs(api, variables), "{name}");

    let wraps = signature.params.iter().any(|p| p.kind == ParamKind::UserData);
    if wraps && !fails {
        let op = begin.g;
        let run = events.next().expect("the function's run");
        assert_eq!(run.record, Owned::HostFunctionBegin { op }, "{name}");
        assert_eq!(events.next().expect("its end").record, Owned::HostFunctionEnd { op });
    }

    let loads = ["cuModuleLoad", "cuLibraryLoad"].iter().any(|load| name.starts_with(load));
    if loads && !fails {
        // There is no image behind the argument, and no such file.
        let (op, path) = (begin.g, String::new());
        let lost = Owned::Image { op, origin: ImageOrigin::Lost, size: 0, path };
        assert_eq!(events.next().expect("what was loaded").record, lost, "{name}");
    }

    let end = events.next().expect("an END");
    let mut outs = Vec::new();
    let mut appended = None;
    if !fails {
        for (index, param) in signature.params.iter().enumerate() {
            let value = fake::out_value(api, index);
            match param.kind {
                ParamKind::Out(bytes) | ParamKind::InOut(bytes) => {
                    outs.extend((0..u64::from(bytes).div_ceil(8)).map(|word| value + word));
                }
                ParamKind::OutStream => {
                    outs.push(value);
                    appended = Some(value ^ 0x5555);
                }
                ParamKind::OutContext => {
                    outs.push(value);
                    let device = signature.index_of("dev").expect("its device");
                    appended = Some(argument(api, device, &signature.params[device]) & 1);
                }
                // The handles are no open files.
                ParamKind::OutShareable | ParamKind::OutImported => {
                    outs.push(value);
                    appended = Some(0);
                }
                ParamKind::OutAddress => {
                    outs.push(value);
                    // The driver's answer is 64 KiB from the page's begin on.
                    appended = Some(0x10000 - value % 4096);
                }
                _ => {}
            }
        }
        outs.extend(appended);
    }
    let result = if fails { FAILURE } else { 0 };
    assert_eq!(end.record, Owned::End { begin: begin.g, api, result, outs }, "{name}");
    assert_eq!((end.process, end.thread, end.tid), (begin.process, begin.thread, begin.tid));
    assert!(end.t_ns >= begin.t_ns && begin.t_ns > 0);
}

/// The functions that a call launches.
fn functions(api: Api) -> Vec<u64> {
    let kinds = api.signature().params.iter().map(|param| param.kind);
    kinds
        .flat_map(|kind| match kind {
            ParamKind::Function => vec![function(api, 0)],
            ParamKind::Launches { .. } => (0..LAUNCHES).map(|m| function(api, m)).collect(),
            _ => Vec::new(),
        })
        .collect()
}
