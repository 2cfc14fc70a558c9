//! The fuzz targets under libFuzzer: `STREAMSAN_FUZZ_TARGET` names the one that runs. With
//! `STREAMSAN_FUZZ_SEEDS` its seeds are written into that directory, and nothing runs; with
//! `STREAMSAN_FUZZ_LIST` the names and longest inputs of all targets are printed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::OnceLock;
use streamsan_fuzz::{TARGETS, Target, target};

static CHOSEN: OnceLock<Target> = OnceLock::new();

fn choose() {
    if std::env::var_os("STREAMSAN_FUZZ_LIST").is_some() {
        TARGETS.iter().for_each(|target| println!("{} {}", target.name, target.longest));
        std::process::exit(0);
    }
    let name = std::env::var("STREAMSAN_FUZZ_TARGET").unwrap_or_default();
    let Some(chosen) = target(&name) else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("STREAMSAN_FUZZ_TARGET names no target; there are {}", names.join(", "));
        std::process::exit(2);
    };
    if let Some(folder) = std::env::var_os("STREAMSAN_FUZZ_SEEDS") {
        for (number, seed) in (chosen.seeds)().iter().enumerate() {
            let path = Path::new(&folder).join(format!("seed-{number}"));
            std::fs::write(path, seed).expect("seeds can be written");
        }
        std::process::exit(0);
    }
    let _ = CHOSEN.set(*chosen);
}

fuzz_target!(init: choose(), |input: &[u8]| {
    if let Some(target) = CHOSEN.get() {
        (target.run)(input);
    }
});
