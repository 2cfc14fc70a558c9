//! Checks of the machine or the container: system, C library, memory, tools.

use super::{Diagnosis, bad, good, note};
use crate::launch::SANITIZER_VARIABLE;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use streamsan_kernels::disassembler::{Disassembler, PACKAGE, VARIABLE};
use streamsan_kernels::toolkit::Places;
use streamsan_wire::RingOptions;

/// The oldest C library that a release is linked for (.ci/release).
const OLDEST_GLIBC: (u32, u32) = (2, 17);
/// Host threads that make driver calls in a program with many of them.
const MANY_THREADS: u64 = 64;
/// Recording, analysing and storing beside a program.
const ENOUGH_MEMORY: u64 = 1 << 30;

pub(super) fn platform() -> Diagnosis {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    if crate::launch::records_here() {
        good("platform", format!("{os} on {arch}"))
    } else {
        let text = "programs can be recorded on Linux with glibc on x86-64 and aarch64 only";
        bad("platform", format!("{os} on {arch}: {text}"))
    }
}

pub(super) fn glibc() -> Diagnosis {
    let (major, minor) = OLDEST_GLIBC;
    match glibc_version() {
        Some((ours, text)) if ours >= OLDEST_GLIBC => good("glibc", format!("glibc {text}")),
        Some((_, text)) => bad(
            "glibc",
            format!(
                "glibc {text} is too old for the runtime; use a system or container image with \
             {major}.{minor} or later"
            ),
        ),
        None => note("glibc", "the version of glibc cannot be told"),
    }
}

/// The C library tells its version in a text inside its file; asking it by a call needs code that
/// this command does without.
fn glibc_version() -> Option<((u32, u32), String)> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let file = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| Path::new(path).file_name().is_some_and(is_glibc))?;
    let bytes = fs::read(file).ok()?;
    let marker = b"GNU C Library";
    let at = bytes.windows(marker.len()).position(|window| window == marker)?;
    let text = bytes[at..].split(|&b| b == b'\n' || b == 0).next()?;
    parse_glibc_version(&String::from_utf8_lossy(text))
}

/// `libc.so.6` is a link to `libc-2.31.so` before glibc 2.34.
fn is_glibc(name: &OsStr) -> bool {
    name == "libc.so.6" || name.to_str().is_some_and(|name| name.starts_with("libc-2."))
}

fn parse_glibc_version(banner: &str) -> Option<((u32, u32), String)> {
    let version = banner.rsplit_once("version ")?.1.trim_end_matches('.');
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let version_numbers = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((version_numbers, version.to_owned()))
}

/// Nothing is run: what is at the path may be a wrapper that takes its time.
pub(super) fn disassembler(program: Option<&Path>) -> Diagnosis {
    match Disassembler::locate(&Places::of_this_process(program)) {
        Ok(Some(tool)) => {
            let (origin, path) = (tool.origin.description(), tool.path.display());
            good("nvdisasm", format!("nvdisasm was found {origin}: {path}"))
        }
        Ok(None) => note(
            "nvdisasm",
            format!(
                "no nvdisasm was found, which machine code without PTX is read with; install the CUDA \
             Toolkit or the Python package {PACKAGE}, or name its file in {VARIABLE}"
            ),
        ),
        Err(error) => note("nvdisasm", error.to_string()),
    }
}

/// Nothing is loaded: the driver decides at the start of a program whether it lets anybody measure.
pub(super) fn sanitizer(program: Option<&Path>) -> Diagnosis {
    match Places::of_this_process(program).find_sanitizer(SANITIZER_VARIABLE) {
        Ok(Some(tool)) => {
            let (origin, path) = (tool.origin.description(), tool.path.display());
            good("sanitizer", format!("NVIDIA's Compute Sanitizer API was found {origin}: {path}"))
        }
        Ok(None) => note(
            "sanitizer",
            format!(
                "NVIDIA's Compute Sanitizer API was not found, which `run --settle` and `run \
                 --measure` need on a GPU; install the Python package nvidia-cuda-sanitizer-api or \
                 the CUDA Toolkit, in version 13.3 or later, or name its libsanitizer-public.so in {SANITIZER_VARIABLE}"
            ),
        ),
        Err(error) => note("sanitizer", error.to_string()),
    }
}

/// Each host thread that calls the driver has a ring, which is memory that the container pays for.
pub(super) fn memory() -> Vec<Diagnosis> {
    let ring = RingOptions::default().ring_bytes;
    let mut diagnoses = vec![shared_memory(ring)];
    diagnoses.extend(limit().map(|limit| {
        let text =
            format!("{} MiB of memory may be used here, the program's included", limit >> 20);
        if limit >= ENOUGH_MEMORY {
            return good("memory-limit", text);
        }
        let advice = "what records it needs some of it, too; give the container more with --memory";
        note("memory-limit", format!("{text}; {advice}"))
    }));
    diagnoses
}

fn shared_memory(ring: u64) -> Diagnosis {
    let check = "shared-memory";
    let Ok(stat) = rustix::fs::statvfs("/dev/shm") else {
        return note(check, "/dev/shm is missing, so records go through the temporary directory");
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let threads = free / ring;
    let text = format!(
        "{} MiB of shared memory are free in /dev/shm, for {threads} host threads that call the \
         driver",
        free >> 20
    );
    let advice = "give a container more with --shm-size=1g or --ipc=host";
    match threads {
        0 => bad(check, format!("{text}; {advice}")),
        few if few < MANY_THREADS => note(check, format!("{text}; {advice}")),
        _ => good(check, text),
    }
}

/// The limit of the container's memory, where there is one.
fn limit() -> Option<u64> {
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let text = files.iter().find_map(|file| fs::read_to_string(file).ok())?;
    // Without one the older file holds a number that no machine has.
    text.trim().parse().ok().filter(|limit| *limit < 1 << 60)
}

/// Version of NVIDIA's kernel module.
pub(super) fn kernel_module() -> Option<String> {
    module_version(&fs::read_to_string("/proc/driver/nvidia/version").ok()?)
}

/// The first line tells it among other words: `... Kernel Module  580.65.06  Release Build ...`.
fn module_version(text: &str) -> Option<String> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let mut words = text.lines().next()?.split_whitespace();
    let version = words.find(|word| word.contains('.') && word.split('.').all(is_number));
    version.map(str::to_owned)
}

/// Whether this is a container that Docker or Podman started.
pub(super) fn is_container() -> bool {
    ["/.dockerenv", "/run/.containerenv"].iter().any(|file| Path::new(file).exists())
}

pub(super) fn preloads() -> Option<Diagnosis> {
    let existing = std::env::var("LD_PRELOAD").ok().filter(|list| !list.is_empty())?;
    let text = format!("LD_PRELOAD is set ({existing}); the runtime is loaded before it");
    Some(note("preload", text))
}

#[cfg(test)]
mod tests {
    use super::{glibc_version, is_glibc, module_version, parse_glibc_version};

    #[test]
    fn kernel_module_tells_its_version() {
        for (line, version) in [
            (
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build",
                Some("580.65.06"),
            ),
            (
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12",
                Some("535.183.01"),
            ),
            ("", None),
            ("nothing. here", None),
        ] {
            assert_eq!(module_version(line).as_deref(), version, "{line}");
        }
    }

    #[test]
    fn version_is_read_from_the_banner() {
        for (banner, version) in [
            ("GNU C Library (Debian GLIBC 2.36-9+deb12u7) stable release version 2.36.", (2, 36)),
            ("GNU C Library (GNU libc) stable release version 2.28.", (2, 28)),
        ] {
            assert_eq!(parse_glibc_version(banner).map(|(v, _)| v), Some(version));
        }
        assert_eq!(parse_glibc_version("GNU C Library"), None);
    }

    #[test]
    fn the_library_is_known_by_its_file() {
        for (name, is) in [
            ("libc.so.6", true),
            ("libc-2.31.so", true),
            ("libc.musl-x86_64.so.1", false),
            ("libcuda.so.1", false),
        ] {
            assert_eq!(is_glibc(name.as_ref()), is, "{name}");
        }
    }

    #[test]
    fn the_library_of_this_process_tells_its_version() {
        assert!(glibc_version().is_some());
    }
}
