//! The code that is called before each access of a measured kernel, assembled for the GPUs that NVIDIA's
//! assembler here knows.
//!
//! The command carries its PTX, made of our own source (`src/measure/device`). `ptxas` is the user's:
//! of the CUDA Toolkit, or of a Python package (NVIDIA's, or Triton's, which comes with PyTorch). It
//! runs here and not in the program under test, which might wait for a child that it has not
//! started. What it made is kept under a hash of the text and of the assembler.
//!
//! Invariant: a file under the name of an architecture is whole.

use super::own_directory::choose;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use streamsan_directories::{Directory, Refused};
use streamsan_kernels::toolkit::{Places, Tool};

/// Names the file of `ptxas`.
pub(crate) const PTXAS_VARIABLE: &str = "STREAMSAN_PTXAS";

const PTX: &str = include_str!("../../../measure/device/patches.ptx");
const PTX_NAME: &str = "patches.ptx";

/// Architectures of the CUDA 12 and 13 toolkits from sm_75 on (CUDA Compiler Driver NVCC, "GPU Feature
/// List"). An assembler that does not know one makes nothing for it.
const ARCHITECTURES: [u32; 12] = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];

/// How long the assembler may take for one architecture; it takes a tenth of a second.
const LONGEST: Duration = Duration::from_secs(60);

/// The folder of the assembled patches; makes them where they are not there.
///
/// # Errors
/// One paragraph for the user, where no assembler is found or it makes nothing.
pub(crate) fn patches(program: Option<&Path>) -> Result<PathBuf, String> {
    let found = Places::of_this_process(program).find("ptxas", PTXAS_VARIABLE);
    let tool = found.map_err(|error| error.to_string())?.ok_or_else(|| {
        format!(
            "measuring needs NVIDIA's assembler ptxas, which no place here has: install the CUDA \
             Toolkit or the Python package nvidia-cuda-nvcc (PyTorch brings one along with Triton), \
             or name its file in {PTXAS_VARIABLE}"
        )
    })?;
    let name = format!("patches-{:016x}", identity(&tool));
    let mut failed = None;
    let chosen = choose(|ours| {
        let directory = ours.subdirectory(&name)?;
        match assemble(&directory, &tool) {
            Ok(()) => {}
            Err(Failed::Directory(refused)) => return Err(refused),
            Err(Failed::Assembler(said)) => failed = Some(said),
        }
        Ok(directory.path().to_owned())
    });
    match (chosen, failed) {
        (_, Some(said)) => Err(format!(
            "measuring needs its code assembled, and {} made nothing of it: {said}; name another \
             ptxas (of CUDA 12 or 13) in {PTXAS_VARIABLE}",
            tool.path.display()
        )),
        (Err(refused), None) => Err(format!(
            "the code for measuring cannot be kept anywhere ({refused}); point XDG_CACHE_HOME to a \
             directory of yours"
        )),
        (Ok(chosen), None) => Ok(chosen.made),
    }
}

#[derive(Debug)]
enum Failed {
    Directory(Refused),
    Assembler(String),
}

/// A number for the text and the assembler, which is told by its path, size and age.
fn identity(tool: &Tool) -> u64 {
    let file = fs::metadata(&tool.path).ok();
    let numbers = file.map_or([0; 3], |file| {
        [file.size(), file.mtime().cast_unsigned(), file.mtime_nsec().cast_unsigned()]
    });
    let path = tool.path.as_os_str().as_encoded_bytes();
    let bytes =
        PTX.bytes().chain(path.iter().copied()).chain(numbers.map(u64::to_le_bytes).concat());
    // FNV-1a, as the embedded libraries are named.
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn assemble(directory: &Directory, tool: &Tool) -> Result<(), Failed> {
    let path = directory.path();
    let file = |architecture: u32| path.join(format!("sm_{architecture}.cubin"));
    // The text is written last.
    let is_done =
        directory.read(PTX_NAME, PTX.len() as u64).is_ok_and(|text| text == PTX.as_bytes());
    if is_done && ARCHITECTURES.iter().any(|architecture| file(*architecture).is_file()) {
        return Ok(());
    }
    let own = format!("{}.ptx", std::process::id());
    directory.replace(&own, 0o600, &[PTX.as_bytes()]).map_err(io(&path.join(&own)))?;
    let children: Vec<_> = ARCHITECTURES
        .iter()
        .map(|architecture| {
            let made = format!("{}-sm_{architecture}.made", std::process::id());
            let child = Command::new(&tool.path)
                .args(["-astoolspatch", &format!("-arch=sm_{architecture}"), "-o", &made, &own])
                .current_dir(path)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                // The program must not be recorded itself.
                .env_remove("LD_PRELOAD")
                .process_group(0)
                .spawn();
            (*architecture, path.join(made), child)
        })
        .collect();
    let mut made = 0;
    let mut said = "it knows none of the architectures".to_owned();
    for (architecture, output, child) in children {
        match child.map_err(|error| error.to_string()).and_then(ended) {
            Ok(true) if fs::rename(&output, file(architecture)).is_ok() => made += 1,
            Ok(_) => {}
            Err(why) => said = why,
        }
        // A failed run may have left a file.
        let _gone = fs::remove_file(&output);
    }
    directory.remove_file(&own);
    if made == 0 {
        return Err(Failed::Assembler(said));
    }
    directory.replace(PTX_NAME, 0o600, &[PTX.as_bytes()]).map_err(io(&path.join(PTX_NAME)))
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Failed {
    let path = path.to_owned();
    move |source| Failed::Directory(Refused::Io { path, source })
}

/// Whether a run of the assembler has succeeded.
fn ended(mut child: Child) -> Result<bool, String> {
    let begun = Instant::now();
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => return Ok(status.success()),
            None if begun.elapsed() > LONGEST => {
                let _ = child.kill();
                child.wait().map_err(|error| error.to_string())?;
                return Err(format!("it did not end within {} s", LONGEST.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use streamsan_kernels::toolkit::Origin;

    /// A stand-in for the assembler: knows the architectures named in it, and counts its runs.
    fn tool(folder: &Path, knows: &str) -> Tool {
        let path = folder.join("ptxas");
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = -astoolspatch ] || exit 1\necho run >>'{}'\n\
             case \"$2\" in {knows}) cp \"$5\" \"$4\" ;; *) exit 255 ;; esac\n",
            folder.join("runs").display()
        );
        fs::write(&path, script).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        Tool { path, origin: Origin::SearchPath }
    }

    fn made(directory: &Directory) -> Vec<String> {
        let entries = fs::read_dir(directory.path()).expect("listed");
        let names = entries.map(|entry| entry.expect("read").file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn each_known_architecture_is_assembled_once() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let directory = Directory::open(root.path(), "cache").expect("a directory");
        let tool = tool(root.path(), "-arch=sm_80|-arch=sm_90");
        for _ in 0..2 {
            assemble(&directory, &tool).expect("assembled");
            assert_eq!(made(&directory), ["patches.ptx", "sm_80.cubin", "sm_90.cubin"]);
        }
        assert_eq!(fs::read_to_string(directory.path().join("sm_90.cubin")).expect("read"), PTX);
        let runs = fs::read_to_string(root.path().join("runs")).expect("counted");
        assert_eq!(runs.lines().count(), ARCHITECTURES.len());
    }

    #[test]
    fn an_assembler_that_knows_nothing_is_told_of() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let directory = Directory::open(root.path(), "cache").expect("a directory");
        let failed = assemble(&directory, &tool(root.path(), "none")).expect_err("nothing made");
        assert!(matches!(failed, Failed::Assembler(_)), "{failed:?}");
        assert_eq!(made(&directory), [""; 0]);
        let gone = Tool { path: root.path().join("gone"), origin: Origin::SearchPath };
        let failed = assemble(&directory, &gone).expect_err("nothing to run");
        assert!(
            matches!(&failed, Failed::Assembler(said) if said.contains("os error 2")),
            "{failed:?}"
        );
    }
}
