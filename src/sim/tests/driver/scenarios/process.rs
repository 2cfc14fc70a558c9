//! Contexts, processes, and how functions are found.

use std::ffi::{CStr, c_void};
use std::thread;

use super::cell;
use crate::raw::*;

pub(super) fn find(name: &str) -> Option<fn()> {
    Some(match name {
        "context_stack" => context_stack,
        "two_contexts_do_not_wait_for_each_other" => two_contexts,
        "primary_context_survives_in_name" => primary_context,
        "a_forked_child_is_refused" => forked_child,
        "proc_addresses_are_the_exported_ones" => proc_addresses,
        "export_tables_are_not_found" => export_tables,
        "status_texts" => status_texts,
        _ => return None,
    })
}

fn context_stack() {
    ok("cuInit", &[0]);
    let current = || make("cuCtxGetCurrent", &[]);
    assert_eq!(current(), 0);
    let a = make("cuCtxCreate_v2", &[0, 0]);
    let b = make("cuCtxCreate_v2", &[0, 0]);
    assert_eq!(current(), b);
    assert_eq!(make("cuCtxPopCurrent_v2", &[]), b);
    assert_eq!(current(), a);
    ok("cuCtxPushCurrent_v2", &[b]);
    ok("cuCtxSetCurrent", &[a]);
    assert_eq!(current(), a, "set replaces the top");
    ok("cuCtxSetCurrent", &[0]);
    assert_eq!(current(), a, "zero pops");
    let elsewhere = thread::spawn(move || {
        let before = make("cuCtxGetCurrent", &[]);
        ok("cuCtxPushCurrent_v2", &[b]);
        (before, make("cuCtxGetCurrent", &[]))
    });
    assert_eq!(elsewhere.join().unwrap(), (0, b));
    let mut ids = [0u64; 2];
    for (id, context) in ids.iter_mut().zip([a, b]) {
        ok("cuCtxGetId", &[context, id as *mut u64 as u64]);
    }
    assert_ne!(ids[0], ids[1]);
    ok("cuCtxDestroy_v2", &[a]);
    assert_eq!(current(), 0, "destroying the current context pops it");
    ok("cuCtxPushCurrent_v2", &[b]);
    ok("cuCtxDestroy_v2", &[b]);
    assert_ne!(cu("cuCtxSetCurrent", &[b + 8]), 0);
    println!("ok");
}

fn two_contexts() {
    ok("cuInit", &[0]);
    let a = make("cuCtxCreate_v2", &[0, 0]);
    let (word, result) = cell();
    fill(word, 1, 0);
    make("cuCtxCreate_v2", &[0, 0]);
    // The legacy stream of another context, and its synchronisation, know nothing of the first.
    fetch(result, word, 0);
    ok("cuCtxSynchronize", &[]);
    let early = read(result);
    ok("cuCtxSetCurrent", &[a]);
    fetch(result, word, 0);
    ok("cuCtxSynchronize", &[]);
    println!("{early} {}", read(result));
}

fn primary_context() {
    start();
    let context = make("cuCtxGetCurrent", &[]);
    assert_eq!(make("cuDevicePrimaryCtxRetain", &[0]), context);
    let word = device(4);
    ok("cuDevicePrimaryCtxRelease_v2", &[0]);
    ok("cuMemsetD32_v2", &[word, 1, 1]);
    ok("cuDevicePrimaryCtxRelease_v2", &[0]);
    assert_eq!(cu("cuMemsetD32_v2", &[word, 1, 1]), 709);
    assert_eq!(cu("cuDevicePrimaryCtxRelease_v2", &[0]), 201);
    assert_eq!(make("cuDevicePrimaryCtxRetain", &[0]), context);
    assert_eq!(cu("cuMemsetD32_v2", &[word, 1, 1]), 1, "its memory is gone");
    ok("cuMemsetD32_v2", &[device(4), 1, 1]);
    ok("cuDevicePrimaryCtxReset_v2", &[0]);
    assert_eq!(cu("cuCtxSynchronize", &[]), 709);
    assert_eq!(make("cuDevicePrimaryCtxRetain", &[0]), context);
    ok("cuCtxSynchronize", &[]);
    println!("ok");
}

fn forked_child() {
    start();
    fill(device(4), 1, stream(0));
    // SAFETY: the child calls the driver, which is what is under test, and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let both = [cu("cuInit", &[0]), cu("cuCtxSynchronize", &[])];
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit((both[0] * 16 + both[1]) as i32) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    unsafe { libc::waitpid(child, &mut status, 0) };
    let both = libc::WEXITSTATUS(status);
    println!("{} {} {}", both / 16, both % 16, cu("cuCtxSynchronize", &[]));
}

fn proc_addresses() {
    let bases = include_str!("../../../src/exports/versions.rs").lines();
    let bases = bases.filter_map(|line| line.trim().strip_prefix("(\"")?.split('"').next());
    let mut found = Vec::new();
    for base in bases {
        let name = std::ffi::CString::new(base).unwrap();
        for flags in [0, 2] {
            let (mut function, mut status) = (0u64, 9u32);
            let out = [&raw mut function as u64, &raw mut status as u64];
            let code =
                cu("cuGetProcAddress_v2", &[name.as_ptr() as u64, out[0], 12_080, flags, out[1]]);
            assert_eq!(code == 0, function != 0, "{base}");
            assert_eq!(code == 0, status == 0, "{base}");
            if code == 0 {
                found.push((exported_name(function), function));
            }
        }
    }
    found.sort();
    found.dedup();
    assert!(found.len() > 500, "{}", found.len());
    for (name, function) in &found {
        assert_eq!(address(name), *function, "{name}");
    }
    let mut addresses: Vec<u64> = found.iter().map(|(_, function)| *function).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), found.len(), "no two names share an address");
    println!("ok");
}

/// The name of the symbol that starts at an address.
fn exported_name(function: u64) -> String {
    // SAFETY: plain data, valid when zeroed, filled by the call.
    let name = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        assert_ne!(libc::dladdr(function as *const c_void, &mut info), 0);
        assert_eq!(info.dli_saddr as u64, function);
        CStr::from_ptr(info.dli_sname)
    };
    name.to_str().unwrap().to_owned()
}

fn export_tables() {
    let id = [0u8; 16];
    let mut codes = Vec::new();
    for _ in 0..2 {
        let mut table = 1u64;
        codes.push(cu("cuGetExportTable", &[&raw mut table as u64, id.as_ptr() as u64]));
        assert_eq!(table, 0);
    }
    println!("{} {}", codes[0], codes[1]);
}

fn status_texts() {
    let name = |code: u64| {
        let text = make_second("cuGetErrorName", code);
        // SAFETY: a terminated text of the driver.
        unsafe { CStr::from_ptr(text as *const libc::c_char) }.to_str().unwrap().to_owned()
    };
    let mut nothing = 1u64;
    let unknown = cu("cuGetErrorName", &[123_456, &raw mut nothing as u64]);
    assert_eq!(nothing, 0);
    println!("{} {} {unknown}", name(1), name(0));
}

fn make_second(function: &str, argument: u64) -> u64 {
    let mut made = 0u64;
    ok(function, &[argument, &raw mut made as u64]);
    made
}
