//! NVIDIA's own disassembler, if the user has it.
//!
//! `nvdisasm` is given instructions as they stand in memory and prints them one by one. It takes
//! long to start, so it is given many at once. It is run with a time limit. Nothing here knows what
//! its output means.

use crate::toolkit::{NotExecutable, Places, Tool};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use streamsan_directories::Directory;
use xxhash_rust::xxh3::Xxh3;

/// Names the file of `nvdisasm`.
pub const VARIABLE: &str = "STREAMSAN_NVDISASM";
/// The package that brings it.
pub const PACKAGE: &str = "nvidia-cuda-nvdisasm";
const PROGRAM: &str = "nvdisasm";
/// Without what is worked out over the instructions around; they are in no order here.
const ARGUMENTS: [&str; 2] = ["--print-raw", "--no-dataflow"];
/// Bytes of an instruction.
const INSTRUCTION: usize = 16;
/// `NOP`, which stands in for what is refused.
const NOP: [u8; INSTRUCTION] = [0x18, 0x79, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0x0f, 0];
/// How often it is run without the instructions that it has refused before.
const ATTEMPTS: usize = 4;
/// The longest output that is read, in bytes.
const MAX_OUTPUT: u64 = 512 << 20;
/// How often a running program is looked at, at most.
const SLOWEST_POLL: Duration = Duration::from_millis(20);

/// Why instructions are not printed.
#[derive(Debug, thiserror::Error)]
pub enum DisassemblyError {
    /// It does not know the architecture.
    #[error("this nvdisasm does not know {0}")]
    Architecture(String),
    /// A file or the program could not be used.
    #[error("{what}: {source}")]
    Io {
        /// The command that was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The program failed.
    #[error("nvdisasm failed ({status}): {message}")]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// The first line that it wrote to standard error.
        message: String,
    },
    /// Whatever is left out, it refuses more.
    #[error("nvdisasm refuses more than {0} instructions")]
    Refused(usize),
    /// It ran too long and was stopped.
    #[error("nvdisasm was stopped after {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It printed more than is read.
    #[error("nvdisasm printed {0} bytes, which is too much")]
    TooLong(u64),
}

/// A disassembler that was found.
#[derive(Clone, Debug)]
pub struct Disassembler {
    tool: Tool,
    scratch: Directory,
    timeout: Duration,
}

impl Disassembler {
    /// Looks for `nvdisasm`; nothing is executed.
    ///
    /// # Errors
    /// When the environment names a file that cannot be executed.
    pub fn locate(places: &Places) -> Result<Option<Tool>, NotExecutable> {
        places.find(PROGRAM, VARIABLE)
    }

    /// `scratch` is for its input and output. `timeout` is for one run.
    #[must_use]
    pub fn new(tool: Tool, scratch: Directory, timeout: Duration) -> Self {
        Self { tool, scratch, timeout }
    }

    /// A number for the program, told by its size and age. `None` where it is gone.
    pub(crate) fn identity(&self) -> Option<u64> {
        let file = fs::metadata(&self.tool.path).ok()?;
        let mut hash = Xxh3::new();
        for number in [file.size(), file.mtime() as u64, file.mtime_nsec() as u64] {
            hash.update(&number.to_le_bytes());
        }
        Some(hash.digest())
    }

    /// Prints instructions of 16 bytes each, as code of an architecture by the name that the
    /// program has for it (`SM90a`).
    ///
    /// # Errors
    /// When the program cannot be run, does not know the architecture, fails or takes too long.
    pub fn print(&self, architecture: &str, code: &[u8]) -> Result<Printed, DisassemblyError> {
        let mut code = code.to_vec();
        let mut refused = BTreeSet::new();
        for _ in 0..ATTEMPTS {
            let (status, text, said) = self.run(architecture, &code)?;
            if status.success() && !text.is_empty() {
                return Ok(Printed { text, refused });
            }
            if said.contains("for option 'binary'") {
                return Err(DisassemblyError::Architecture(architecture.to_owned()));
            }
            let before = refused.len();
            refused.extend(addresses(&said).map(|address| address / INSTRUCTION));
            if refused.len() == before {
                let message = said.lines().next().unwrap_or("it says nothing").to_owned();
                return Err(DisassemblyError::Failed { status, message });
            }
            for at in &refused {
                if let Some(bytes) = code.get_mut(at * INSTRUCTION..(at + 1) * INSTRUCTION) {
                    bytes.copy_from_slice(&NOP);
                }
            }
        }
        Err(DisassemblyError::Refused(refused.len()))
    }

    /// Output goes to files, so that no pipe fills up while nobody reads it. Only the input is
    /// opened by its name, which nobody else can give to another file.
    fn run(
        &self,
        architecture: &str,
        code: &[u8],
    ) -> Result<(ExitStatus, String, String), DisassemblyError> {
        let mut input = Scratch::new(&self.scratch, "bin")?;
        let output = Scratch::new(&self.scratch, "out")?;
        let errors = Scratch::new(&self.scratch, "err")?;
        input.file.write_all(code).map_err(failed("cannot write", &input.path()))?;
        let child = Command::new(&self.tool.path)
            .args(["--binary", architecture])
            .args(ARGUMENTS)
            .arg(input.path())
            .stdin(Stdio::null())
            .stdout(output.shared()?)
            .stderr(errors.shared()?)
            // The program must not be recorded itself.
            .env_remove("LD_PRELOAD")
            // Ctrl-C is for the program under test: its kernels are to be read all the same.
            .process_group(0)
            .spawn()
            .map_err(failed("cannot run", &self.tool.path))?;
        let status = self.wait(child)?;
        Ok((status, output.read()?, errors.read()?))
    }

    fn wait(&self, mut child: Child) -> Result<ExitStatus, DisassemblyError> {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let ended = child.try_wait().map_err(failed("cannot wait for", &self.tool.path))?;
            if let Some(status) = ended {
                return Ok(status);
            }
            if begun.elapsed() >= self.timeout {
                // It may have ended by itself meanwhile.
                let _ = child.kill();
                child.wait().map_err(failed("cannot wait for", &self.tool.path))?;
                return Err(DisassemblyError::TimedOut(self.timeout));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(SLOWEST_POLL);
        }
    }
}

fn failed(what: &str, path: &Path) -> impl FnOnce(io::Error) -> DisassemblyError {
    let what = format!("{what} {}", path.display());
    move |source| DisassemblyError::Io { what, source }
}

/// The addresses in complaints: `... at address 0x00000040`.
fn addresses(said: &str) -> impl Iterator<Item = usize> {
    said.lines().filter_map(|line| {
        let (_, rest) = line.rsplit_once("at address 0x")?;
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        usize::from_str_radix(&rest[..end], 16).ok()
    })
}

/// The disassembler's output.
#[derive(Debug)]
pub struct Printed {
    text: String,
    refused: BTreeSet<usize>,
}

impl Printed {
    /// Each instruction that was understood: its number among those that were given, and its text
    /// with what ends it.
    pub fn instructions(&self) -> impl Iterator<Item = (usize, &str)> {
        let here = self.text.lines().filter_map(|line| {
            let (address, text) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
            let at = usize::from_str_radix(address, 16).ok()? / INSTRUCTION;
            Some((at, text.trim()))
        });
        here.filter(|(at, _)| !self.refused.contains(at))
    }
}

/// An extension that no other thread or process uses at the same time.
fn unique(kind: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}.{kind}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A file that is removed after use.
struct Scratch<'a> {
    folder: &'a Directory,
    name: String,
    file: File,
}

impl<'a> Scratch<'a> {
    fn new(folder: &'a Directory, kind: &str) -> Result<Self, DisassemblyError> {
        let name = format!("scratch-{}", unique(kind));
        let file = folder.create_file(&name);
        let file = file.map_err(failed("cannot make", &folder.path().join(&name)))?;
        Ok(Self { folder, name, file })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// For the program to write to.
    fn shared(&self) -> Result<File, DisassemblyError> {
        self.file.try_clone().map_err(failed("cannot write", &self.path()))
    }

    fn read(mut self) -> Result<String, DisassemblyError> {
        let written = self.file.metadata().map_or(0, |file| file.len());
        if written > MAX_OUTPUT {
            return Err(DisassemblyError::TooLong(written));
        }
        let mut bytes = Vec::with_capacity(written as usize);
        // Whoever wrote it has left the place at its end.
        let read = self.file.rewind();
        let read = read.and_then(|()| (&self.file).take(MAX_OUTPUT).read_to_end(&mut bytes));
        read.map_err(failed("cannot read", &self.path()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        self.folder.remove_file(&self.name);
    }
}
