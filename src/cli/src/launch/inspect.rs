//! Looks at the program's file for what would keep the runtime from being loaded into it.
//!
//! The verdict does not hang on this: a program that never says hello is INCOMPLETE anyway. It is
//! here so that the user learns why before a long run, not after it.

use super::machine::PROCESSOR;
use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why the loader will not preload the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// No dynamic loader is involved.
    Static,
    /// The loader ignores preloads outside the system's directories when privileges change.
    Privileged,
    /// The same for a file with capabilities.
    Capabilities,
    /// 32-bit, or of another architecture.
    OtherArchitecture,
    /// Linked against another C library.
    OtherLibc,
}

impl Obstacle {
    /// The obstacle, and what to do about it.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Static => {
                "it is statically linked, so nothing can be loaded into it; link it dynamically \
                 (the CUDA runtime itself may stay static)"
            }
            Self::Privileged => {
                "it is setuid or setgid, and the loader keeps other libraries out of such \
                 programs; run a copy without these bits"
            }
            Self::Capabilities => {
                "it has capabilities of its own, and the loader keeps other libraries out of such \
                 programs; run a copy without them (cp drops them), with the privileges some \
                 other way"
            }
            Self::OtherArchitecture if cfg!(target_arch = "aarch64") => {
                "it is not a program for aarch64, and streamsan's runtime is; build it for aarch64"
            }
            Self::OtherArchitecture => {
                "it is not a 64-bit x86 program, and streamsan's runtime is; build it for x86-64"
            }
            Self::OtherLibc => {
                "it is linked against another C library than glibc, with which neither NVIDIA's \
                 driver nor streamsan's runtime works; build it for a -gnu target"
            }
        }
    }
}

/// The obstacle to recording `program`, followed through its interpreters if it is a script. `None`
/// when nothing is seen, or when the file cannot be read.
pub(crate) fn inspect(program: &Path) -> Option<Obstacle> {
    let mut file = program.to_owned();
    // Linux follows a chain of at most four interpreters.
    for _ in 0..4 {
        if is_privileged(&file) {
            return Some(Obstacle::Privileged);
        }
        if has_capabilities(&file) {
            return Some(Obstacle::Capabilities);
        }
        let head = head(&file).ok()?;
        match interpreter(&head) {
            Some(next) => file = next,
            None => return inspect_elf(&fs::read(&file).ok()?),
        }
    }
    None
}

fn head(file: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(file)?.take(256).read_to_end(&mut head)?;
    Ok(head)
}

fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|&b| b == b'\n').next()?;
    let mut words = line.split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let path = Path::new(std::ffi::OsStr::from_bytes(words.next()?));
    if path.file_name()? != "env" {
        return Some(path.to_owned());
    }
    let name = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
    super::find(std::ffi::OsStr::from_bytes(name)).ok()
}

fn is_privileged(file: &Path) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    (metadata.mode() & 0o4000 != 0 && metadata.uid() != user)
        || (metadata.mode() & 0o2010 == 0o2010 && metadata.gid() != group)
}

/// The kernel gives the capabilities of an interpreter's file, never a script's. For root they
/// change nothing, so that the loader does as with any program.
fn has_capabilities(file: &Path) -> bool {
    let mut value = [0u8; 64];
    let is_root = rustix::process::geteuid().is_root();
    !is_root && rustix::fs::getxattr(file, "security.capability", &mut value[..]).is_ok()
}

/// The libraries that a program's file names; `None` for scripts and whatever else is no ELF file.
pub(crate) fn needed(program: &Path) -> Option<Vec<String>> {
    let data = fs::read(program).ok()?;
    let header = elf::FileHeader64::<object::Endianness>::parse(&*data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &*data).ok()?;
    let Some((dynamic, link)) = sections.dynamic(endian, &*data).ok()? else {
        return Some(Vec::new());
    };
    let strings = sections.strings(endian, &*data, link).ok()?;
    let names = dynamic.iter().filter(|entry| entry.tag(endian) == elf::DT_NEEDED);
    let names = names.filter_map(|entry| entry.string(endian, strings).ok());
    Some(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

fn inspect_elf(data: &[u8]) -> Option<Obstacle> {
    if !data.starts_with(&elf::ELFMAG) {
        return None;
    }
    if data.get(4) != Some(&elf::ELFCLASS64.0) {
        return Some(Obstacle::OtherArchitecture);
    }
    let header = elf::FileHeader64::<object::Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    if header.e_machine(endian) != PROCESSOR {
        return Some(Obstacle::OtherArchitecture);
    }
    let segments = header.program_headers(endian, data).ok()?;
    let loader = segments.iter().find_map(|s| s.interpreter(endian, data).ok().flatten());
    match loader {
        None => Some(Obstacle::Static),
        Some(loader) if loader.windows(7).any(|w| w == b"ld-musl") => Some(Obstacle::OtherLibc),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// An ELF header with one segment of the given type.
    fn elf(class: u8, machine: u16, segment: u32, content: &[u8]) -> Vec<u8> {
        let mut file = vec![0u8; 64 + 56];
        file[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
        file[16..18].copy_from_slice(&3u16.to_le_bytes());
        file[18..20].copy_from_slice(&machine.to_le_bytes());
        file[20..24].copy_from_slice(&1u32.to_le_bytes());
        file[32..40].copy_from_slice(&64u64.to_le_bytes());
        file[52..54].copy_from_slice(&64u16.to_le_bytes());
        file[54..56].copy_from_slice(&56u16.to_le_bytes());
        file[56..58].copy_from_slice(&1u16.to_le_bytes());
        file[64..68].copy_from_slice(&segment.to_le_bytes());
        file[72..80].copy_from_slice(&120u64.to_le_bytes());
        file[96..104].copy_from_slice(&(content.len() as u64).to_le_bytes());
        file.extend_from_slice(content);
        file
    }

    #[test]
    fn programs_that_cannot_be_preloaded_are_named() {
        let glibc = b"/lib64/ld-linux-x86-64.so.2\0";
        let musl = b"/lib/ld-musl-x86_64.so.1\0";
        let this = PROCESSOR.0;
        let other = if PROCESSOR == elf::EM_X86_64 { elf::EM_AARCH64 } else { elf::EM_X86_64 }.0;
        for (file, obstacle) in [
            (elf(2, this, 3, glibc), None),
            (elf(2, this, 3, musl), Some(Obstacle::OtherLibc)),
            (elf(2, this, 1, b""), Some(Obstacle::Static)),
            (elf(1, 3, 3, glibc), Some(Obstacle::OtherArchitecture)),
            (elf(2, other, 3, glibc), Some(Obstacle::OtherArchitecture)),
            (b"not ELF".to_vec(), None),
            (b"\x7fELF\x02".to_vec(), None),
        ] {
            assert_eq!(inspect_elf(&file), obstacle);
        }
    }

    #[test]
    fn scripts_follow_their_interpreter() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let program = directory.path().join("static");
        fs::write(&program, elf(2, PROCESSOR.0, 1, b"")).expect("written");
        let script = directory.path().join("script");
        fs::write(&script, format!("#! {} -x\nmore\n", program.display())).expect("written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("mode set");
        assert_eq!(inspect(&script), Some(Obstacle::Static));
    }
}
