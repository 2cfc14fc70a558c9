//! Builds the libraries that the command carries: the runtime that is injected into programs, the
//! libraries beside it that watch host threads and host accesses, the one that measures what kernels
//! touch, the stub that instrumented programs link, and the simulated driver.
//!
//! They export other libraries' names, so none can be linked into the command: a nested build,
//! with a target directory of its own, makes the files that `src/launch/libraries.rs` embeds.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries' packages and everything of this workspace that goes into them: a room less here
/// is an old library in the command, a room more a needless build (docs/architecture.md).
const ROOMS: [&str; 12] = [
    "src/runtime",
    "src/host-threads",
    "src/host-accesses",
    "src/interpose",
    "src/measure",
    "src/tsan-stub",
    "src/sim",
    "src/interp",
    "src/ptx",
    "src/names",
    "src/wire",
    "src/directories",
];

/// The parts of a room that go into its library; its tests do not.
const PARTS: [&str; 4] = ["src", "device", "Cargo.toml", "build.rs"];

fn main() {
    let root = workspace_root();
    let parts = ROOMS.iter().flat_map(|room| PARTS.map(|part| root.join(room).join(part)));
    // A file that is not there would count as changed each time.
    for part in parts.filter(|part| part.exists()) {
        println!("cargo::rerun-if-changed={}", part.display());
    }
    for file in ["Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(file).display());
    }
    println!("cargo::rerun-if-changed=build.rs");

    let target_dir = PathBuf::from(variable("OUT_DIR")).join("embedded");
    let built = build(&root, &target_dir);
    for (name, library) in [
        ("RUNTIME", "libstreamsan_runtime.so"),
        ("HOST_THREADS", "libstreamsan_host_threads.so"),
        ("HOST_ACCESSES", "libstreamsan_host_accesses.so"),
        ("MEASURE", "libstreamsan_measure.so"),
        ("TSAN", "libstreamsan_tsan.so"),
        ("SIM", "libstreamsan_sim.so"),
    ] {
        let path = built.join(library);
        let bytes = std::fs::read(&path)
            .unwrap_or_else(|error| panic!("{} was not built: {error}", path.display()));
        println!("cargo::rustc-env=STREAMSAN_{name}_FILE={}", path.display());
        println!("cargo::rustc-env=STREAMSAN_{name}_HASH={:016x}", fnv1a(&bytes));
    }
}

fn workspace_root() -> PathBuf {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = manifest.ancestors().nth(2).map(Path::to_owned);
    root.unwrap_or_else(|| panic!("{} is not inside the workspace", manifest.display()))
}

/// Builds the libraries and gives their directory.
fn build(root: &Path, target_dir: &Path) -> PathBuf {
    let mut cargo = Command::new(variable("CARGO"));
    // `--locked` takes the versions of the outer build; nothing is fetched that it has not fetched.
    cargo
        .current_dir(root)
        .args(["build", "--release", "--locked", "--lib"])
        .args(["--package", "streamsan-runtime", "--package", "streamsan-sim"])
        .args(["--package", "streamsan-host-threads", "--package", "streamsan-host-accesses"])
        .args(["--package", "streamsan-measure", "--package", "streamsan-tsan-stub"])
        .arg("--target-dir")
        .arg(target_dir);
    // A build for another target, or with a linker of its own, which fixes the version of glibc that
    // a release needs (.ci/release), is one for the libraries too.
    let (host, target) = (variable("HOST"), variable("TARGET"));
    let linker = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
    println!("cargo::rerun-if-env-changed={linker}");
    let mut built = target_dir.to_owned();
    if host != target || env::var_os(&linker).is_some() {
        cargo.args(["--target", &target]);
        built.push(&target);
    }
    // Flags and wrappers of the outer build (coverage, clippy, sanitizers) must not reach code that
    // is loaded into other people's programs.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let belongs_to_the_outer_build = (text.starts_with("CARGO")
            && !["CARGO_HOME", "CARGO_MAKEFLAGS", &linker].contains(&&*text)
            && !text.starts_with("CARGO_NET_")
            && !text.starts_with("CARGO_HTTP_")
            && !text.starts_with("CARGO_REGISTR"))
            || text.starts_with("RUSTFLAGS")
            || text.starts_with("RUSTDOC")
            || text.ends_with("_WRAPPER")
            || text.starts_with("LLVM_PROFILE");
        if belongs_to_the_outer_build {
            cargo.env_remove(&name);
        }
    }
    // Of the outer build's flags only those that keep paths of the building machine out of messages. Set
    // but empty, the variable also overrules flags from configuration files.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let remaps = flags.split('\u{1f}').filter(|flag| flag.starts_with("--remap-path-prefix="));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", remaps.collect::<Vec<_>>().join("\u{1f}"));
    cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    cargo.env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
    match cargo.status() {
        Ok(status) if status.success() => built.join("release"),
        Ok(status) => panic!("building the embedded libraries failed ({status})"),
        Err(error) => panic!("cannot start cargo for the embedded libraries: {error}"),
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Names the unpacked files by content; integrity is checked by comparing whole files.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}
