//! `streamsan doctor`: what would keep streamsan from working here, and what to do about it.

use super::output::print;
use super::probe::{Driver, probe};
use crate::error::Error;
use crate::launch::{Environment, Libraries, unpack};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use streamsan_kernels::disassembler::{Disassembler, PACKAGE, VARIABLE};
use streamsan_kernels::toolkit::Places;
use streamsan_model::ExitCode;
use streamsan_wire::{RingOptions, RunDirectory};

/// The oldest C library that the runtime is made for.
const OLDEST_GLIBC: (u32, u32) = (2, 28);
/// Rings of a program with many threads fit.
const ENOUGH_SHARED_MEMORY: u64 = 256 << 20;

/// How a check came out. Only `Bad` keeps streamsan from working.
enum Mark {
    Good,
    Note,
    Bad,
}

struct Diagnosis {
    mark: Mark,
    text: String,
}

fn good(text: impl Into<String>) -> Diagnosis {
    Diagnosis { mark: Mark::Good, text: text.into() }
}

fn note(text: impl Into<String>) -> Diagnosis {
    Diagnosis { mark: Mark::Note, text: text.into() }
}

fn bad(text: impl Into<String>) -> Diagnosis {
    Diagnosis { mark: Mark::Bad, text: text.into() }
}

pub(crate) fn doctor() -> Result<ExitCode, Error> {
    let this =
        std::env::current_exe().map_err(Error::run("cannot find the file of this command"))?;
    let mut diagnoses = vec![platform(), glibc()];
    match unpack() {
        Ok(libraries) => {
            let at = libraries.runtime.display();
            diagnoses.push(good(format!("the runtime is unpacked at {at}")));
            diagnoses.push(injection(&this, &libraries));
            diagnoses.push(simulator(&this, &libraries));
        }
        Err(error) => diagnoses.push(bad(format!(
            "the runtime cannot be unpacked ({error}); set XDG_CACHE_HOME to a directory of yours \
             whose path holds no space, colon, semicolon or dollar sign"
        ))),
    }
    diagnoses.push(driver(&this));
    diagnoses.push(disassembler());
    diagnoses.push(shared_memory());
    diagnoses.extend(preloads());

    let mut healthy = true;
    for Diagnosis { mark, text } in diagnoses {
        let word = match mark {
            Mark::Good => "ok   ",
            Mark::Note => "note ",
            Mark::Bad => "BAD  ",
        };
        healthy &= !matches!(mark, Mark::Bad);
        print(&format!("{word} {text}\n"));
    }
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FINDINGS })
}

fn platform() -> Diagnosis {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    if cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        good(format!("{os} on {arch}"))
    } else {
        bad(format!("{os} on {arch}: programs can be recorded on Linux on x86-64 with glibc only"))
    }
}

fn glibc() -> Diagnosis {
    let (major, minor) = OLDEST_GLIBC;
    match glibc_version() {
        Some((ours, text)) if ours >= OLDEST_GLIBC => good(format!("glibc {text}")),
        Some((_, text)) => bad(format!(
            "glibc {text} is too old for the runtime; use a system or container image with \
             {major}.{minor} or later"
        )),
        None => note("the version of glibc cannot be told".to_owned()),
    }
}

/// The C library tells its version in a text inside its file; asking it by a call needs code that
/// this command does without.
fn glibc_version() -> Option<((u32, u32), String)> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let file = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| Path::new(path).file_name().is_some_and(|name| name == "libc.so.6"))?;
    let bytes = fs::read(file).ok()?;
    let marker = b"GNU C Library";
    let at = bytes.windows(marker.len()).position(|window| window == marker)?;
    let text = bytes[at..].split(|&b| b == b'\n' || b == 0).next()?;
    parse_glibc_version(&String::from_utf8_lossy(text))
}

fn parse_glibc_version(banner: &str) -> Option<((u32, u32), String)> {
    let version = banner.rsplit_once("version ")?.1.trim_end_matches('.');
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let version_numbers = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((version_numbers, version.to_owned()))
}

/// Loads the runtime into a process and looks whether it says hello.
fn injection(this: &Path, libraries: &Libraries) -> Diagnosis {
    let attached = || -> std::io::Result<bool> {
        let mut run = RunDirectory::create(RingOptions::default())?;
        let environment = Environment::new(libraries, run.path(), None, false);
        Command::new(this)
            .arg("--version")
            .envs(environment.iter())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        run.drain(usize::MAX, &mut |_| {})?;
        Ok(!run.processes().is_empty())
    };
    match attached() {
        Ok(true) => good("the runtime loads into programs and reaches the collector"),
        Ok(false) => bad(format!(
            "the runtime does not load into programs; is {} on a file system mounted noexec, or is \
             LD_PRELOAD switched off here? Set XDG_CACHE_HOME to another place",
            libraries.runtime.display()
        )),
        Err(error) => bad(format!("the runtime cannot be tried: {error}")),
    }
}

fn simulator(this: &Path, libraries: &Libraries) -> Diagnosis {
    let path: &OsStr = libraries.sim_directory.as_os_str();
    match probe(this, &[("LD_LIBRARY_PATH", path)]) {
        Driver::Working { .. } => good("the simulated driver works (run --sim)"),
        Driver::Missing { reason } => bad(format!("the simulated driver does not work: {reason}")),
    }
}

fn driver(this: &Path) -> Diagnosis {
    match probe(this, &[]) {
        Driver::Working { description } => good(description),
        Driver::Missing { reason } => {
            let container = ["/.dockerenv", "/run/.containerenv"].iter();
            let hint = if container.clone().any(|file| Path::new(file).exists()) {
                "; a container gets a GPU when it is started with --gpus all (Docker) or \
                 --device nvidia.com/gpu=all (Podman)"
            } else if Path::new("/dev/nvidiactl").exists() {
                "; a device node is there, so look whether libcuda.so.1 of the same driver version \
                 is installed"
            } else {
                ""
            };
            note(format!("no GPU to run on: {reason}{hint}. Without one, use run --sim"))
        }
    }
}

/// Nothing is run: what is at the path may be a wrapper that takes its time.
fn disassembler() -> Diagnosis {
    match Disassembler::locate(&Places::of_this_process(None)) {
        Ok(Some(tool)) => {
            let (origin, path) = (tool.origin.description(), tool.path.display());
            good(format!("nvdisasm was found {origin}: {path}"))
        }
        Ok(None) => note(format!(
            "no nvdisasm was found, which machine code without PTX is read with; install the CUDA \
             Toolkit or the Python package {PACKAGE}, or name its file in {VARIABLE}"
        )),
        Err(error) => note(error.to_string()),
    }
}

fn shared_memory() -> Diagnosis {
    let Ok(stat) = rustix::fs::statvfs("/dev/shm") else {
        return note("/dev/shm is missing, so records go through the temporary directory");
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let text = format!("{} MiB of shared memory are free in /dev/shm", free >> 20);
    if free >= ENOUGH_SHARED_MEMORY {
        good(text)
    } else {
        note(format!(
            "{text}, which a program with many threads may use up; give a container more with \
             --shm-size=1g or --ipc=host"
        ))
    }
}

fn preloads() -> Option<Diagnosis> {
    let existing = std::env::var("LD_PRELOAD").ok().filter(|list| !list.is_empty())?;
    Some(note(format!("LD_PRELOAD is set ({existing}); the runtime is loaded before it")))
}

#[cfg(test)]
mod tests {
    use super::{glibc_version, parse_glibc_version};

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
    fn the_library_of_this_process_tells_its_version() {
        assert!(glibc_version().is_some());
    }
}
