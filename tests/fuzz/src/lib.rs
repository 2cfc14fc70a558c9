//! Fuzz targets: one for everything that reads what a stranger made.
//!
//! A target is a function of bytes that must return: a panic, an allocation beyond a bound and a
//! loop that does not end are what is looked for. The same functions run in two ways. `coverage/` is
//! a program for libFuzzer, which looks for inputs that reach new code (`run.sh` builds and runs
//! it); the test `seeds` runs them over their seeds and a fixed number of mutations, as every
//! change must pass.
//!
//! Seeds are made by this crate or lie in the repository as text. No file of NVIDIA's is among them.

mod analysis;
mod gate;
mod images;
pub mod mutate;
mod numbers;
mod ring;
mod scratch;
mod symbols;
mod text_trace;
mod trace_edits;
mod trace_file;

pub use trace_edits::STRICT_VARIABLE;

/// Something that reads what a stranger made.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, by which it is chosen.
    pub name: &'static str,
    /// Reads an input.
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Bytes of the longest input that is tried.
    pub longest: usize,
}

/// All targets.
pub const TARGETS: [Target; 13] = [
    Target {
        name: "trace_file",
        run: trace_file::run,
        seeds: trace_file::seeds,
        longest: trace_file::LONGEST,
    },
    Target {
        name: "trace_edits",
        run: trace_edits::run,
        seeds: trace_edits::seeds,
        longest: trace_edits::LONGEST,
    },
    Target { name: "text_trace", run: text_trace::run, seeds: text_trace::seeds, longest: 2048 },
    Target { name: "ptx", run: images::ptx, seeds: images::ptx_seeds, longest: 8192 },
    Target { name: "cubin", run: images::cubin, seeds: images::cubin_seeds, longest: 8192 },
    Target { name: "fat_binary", run: images::image, seeds: images::fat_seeds, longest: 8192 },
    Target { name: "packed", run: images::packed, seeds: images::packed_seeds, longest: 4096 },
    Target { name: "host_elf", run: images::image, seeds: images::host_seeds, longest: 8192 },
    Target { name: "symbols", run: symbols::file, seeds: symbols::file_seeds, longest: 8192 },
    Target { name: "dwarf", run: symbols::dwarf, seeds: symbols::dwarf_seeds, longest: 4096 },
    Target { name: "ring", run: ring::run, seeds: ring::seeds, longest: 8192 },
    Target {
        name: "suppressions",
        run: gate::suppressions,
        seeds: gate::suppression_seeds,
        longest: 2048,
    },
    Target { name: "baseline", run: gate::baseline, seeds: gate::baseline_seeds, longest: 2048 },
];

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
