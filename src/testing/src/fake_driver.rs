//! The recording driver and the C declarations of the hook table, generated from it; and programs
//! in C that are built against it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use streamsan_wire::{Api, Param, ParamKind, Scalar};

/// Counted functions of the hand-written part that programs may look up.
const OTHERS: &[&str] = &[
    "cuInit",
    "cuDriverGetVersion",
    "cuCtxGetCurrent",
    "cuStreamGetId",
    "cuDeviceGetAttribute",
    "cuMemGetAddressRange_v2",
    "cuStreamIsCapturing",
    "cuStreamIsCapturing_ptsz",
    "cuFuncGetParamInfo",
    "cuKernelGetParamInfo",
    "cuFuncGetName",
    "cuKernelGetName",
    "cuFabricCpyBatchAsync",
    "cuParamSetf",
    "cuGetExportTable",
    "cuZebraStripe",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
];

/// The C type of a parameter.
pub fn c_type(param: &Param) -> &'static str {
    match (param.kind, param.scalar) {
        (ParamKind::HostFunction, _) => "void (*)(void *)",
        (ParamKind::StreamCallback, _) => "void (*)(void *, int, void *)",
        (_, Scalar::U8) => "unsigned char",
        (_, Scalar::U16) => "unsigned short",
        (_, Scalar::U32) => "unsigned",
        (_, Scalar::I32) => "int",
        (_, Scalar::U64) => "u64",
        (_, Scalar::Pointer) => "void *",
        (_, Scalar::Bytes64) => "struct bytes64",
    }
}

fn declarator(param: &Param, name: &str) -> String {
    match param.kind {
        ParamKind::HostFunction => format!("void (*{name})(void *)"),
        ParamKind::StreamCallback => format!("void (*{name})(void *, int, void *)"),
        _ => format!("{} {name}", c_type(param)),
    }
}

fn head(api: Api) -> String {
    let signature = api.signature();
    let params: Vec<_> = signature
        .params
        .iter()
        .enumerate()
        .map(|(i, param)| declarator(param, &format!("a{i}")))
        .collect();
    let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
    format!("int {}({params})", signature.name)
}

/// Declarations of all hooked functions.
pub fn declarations() -> String {
    let mut text = include_str!("fake_driver/bytes64.h").to_owned();
    for api in Api::ALL {
        writeln!(text, "{};", head(*api)).unwrap();
    }
    text
}

/// The value that the driver writes behind out parameter `index`.
pub fn out_value(api: Api, index: usize) -> u64 {
    let value = (api as u64) << 8 | index as u64;
    match api.signature().params[index].kind {
        ParamKind::Out(4) | ParamKind::OutShareable => 0xA000_0000 | value,
        _ => 0xA0A0_0000_0000 | value,
    }
}

fn functions() -> String {
    let mut text = String::new();
    for api in Api::ALL {
        let signature = api.signature();
        writeln!(text, "{} {{\n    fake_number = {};", head(*api), *api as u16).unwrap();
        let position = |kind| signature.params.iter().position(|p| p.kind == kind);
        let mut call = String::new();
        for (i, param) in signature.params.iter().enumerate() {
            let word = match param.scalar {
                Scalar::Bytes64 => format!("fold(a{i})"),
                Scalar::I32 => format!("(u64)(int64_t)a{i}"),
                _ => format!("(u64)a{i}"),
            };
            writeln!(text, "    fake_args[{i}] = {word};").unwrap();
            let out = out_value(*api, i);
            match param.kind {
                ParamKind::Out(4) | ParamKind::OutShareable => {
                    writeln!(call, "    if (fake_result == 0 && a{i}) *(uint32_t *)a{i} = {out}u;")
                }
                ParamKind::Out(bytes) | ParamKind::InOut(bytes) => {
                    let words = bytes / 8;
                    writeln!(call, "    if (fake_result == 0 && a{i})").unwrap();
                    writeln!(call, "        for (int w = 0; w < {words}; w++)").unwrap();
                    writeln!(call, "            ((u64 *)a{i})[w] = {out}ull + w;")
                }
                ParamKind::OutStream
                | ParamKind::OutContext
                | ParamKind::OutAddress
                | ParamKind::OutImported => {
                    writeln!(call, "    if (fake_result == 0 && a{i}) *(u64 *)a{i} = {out}ull;")
                }
                _ => Ok(()),
            }
            .unwrap();
        }
        text += &call;
        let data = position(ParamKind::UserData);
        if let (Some(function), Some(data)) = (position(ParamKind::HostFunction), data) {
            writeln!(text, "    if (fake_result == 0) call_now(a{function}, a{data});").unwrap();
        }
        if let (Some(function), Some(data)) = (position(ParamKind::StreamCallback), data) {
            writeln!(text, "    if (fake_result == 0) call_back_now(a0, a{function}, a{data});")
                .unwrap();
        }
        text += "    return fake_result;\n}\n";
    }
    text += "static const struct entry table[] = {\n";
    for name in Api::ALL.iter().map(|api| api.name()).chain(OTHERS.iter().copied()) {
        writeln!(text, "    {{\"{name}\", (void *){name}}},").unwrap();
    }
    text += "    {0, 0}};\n";
    text
}

/// Builds `libcuda.so.1` (and `libcuda.so`) in `directory`.
///
/// # Panics
/// When the directory cannot be written or the compiler fails.
pub fn build(directory: &Path) {
    let source = directory.join("fake.c");
    let fixed = include_str!("fake_driver/driver.c");
    let structure = include_str!("fake_driver/bytes64.h");
    std::fs::write(&source, format!("{fixed}\n{structure}\n{}", functions())).unwrap();
    let library = directory.join("libcuda.so.1");
    // Versioned symbols, so that `dlvsym` has something to find.
    let versions = directory.join("fake.map");
    std::fs::write(&versions, "FAKE_1 { global: *; };").unwrap();
    gcc(&[
        "-shared",
        &format!("-Wl,--version-script={}", versions.display()),
        "-fPIC",
        "-Wl,-soname,libcuda.so.1",
        "-Wl,-Bsymbolic-functions",
        "-o",
        library.to_str().unwrap(),
        source.to_str().unwrap(),
    ]);
    std::os::unix::fs::symlink("libcuda.so.1", directory.join("libcuda.so")).unwrap();
}

/// Builds a shared library from C text.
///
/// # Panics
/// When the directory cannot be written or the compiler fails.
pub fn library(directory: &Path, name: &str, text: &str) {
    let source = directory.join(format!("{name}.c"));
    std::fs::write(&source, text).unwrap();
    let output = directory.join(name);
    gcc(&["-shared", "-fPIC", "-o", output.to_str().unwrap(), source.to_str().unwrap()]);
}

/// Builds a program from C text, linked against the driver in `directory` if `link` says so.
///
/// # Panics
/// When the directory cannot be written or the compiler fails.
pub fn program(directory: &Path, name: &str, text: &str, link: &[&str]) -> PathBuf {
    let source = directory.join(format!("{name}.c"));
    std::fs::write(&source, text).unwrap();
    let output = directory.join(name);
    let library_path = format!("-L{}", directory.display());
    let mut args =
        vec!["-o", output.to_str().unwrap(), source.to_str().unwrap(), "-pthread", &library_path];
    args.extend(link);
    args.push("-ldl");
    gcc(&args);
    output
}

/// Compiles a program's text without linking it.
///
/// # Panics
/// When the directory cannot be written or the compiler fails.
pub fn object(directory: &Path, name: &str, text: &str, output: &str, flags: &[&str]) {
    let source = directory.join(format!("{name}-object.c"));
    std::fs::write(&source, text).unwrap();
    let mut args = vec!["-c", "-o", output, source.to_str().unwrap()];
    args.extend(flags);
    gcc(&args);
}

fn gcc(args: &[&str]) {
    let output = Command::new("gcc")
        .args(["-std=gnu11", "-O1", "-w"])
        .args(args)
        .output()
        .expect("gcc is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
