//! NVIDIA's own disassembler, if the user has it.
//!
//! `nvdisasm` reads the cubin from a file and prints the machine code of one kernel, and of the
//! functions beside it that kernels may call. It is run with a time limit and at most once for a
//! kernel: its output is kept in a cache directory under the hash of all it depends on. Nothing
//! here knows what the output means.

use crate::image::{Cubin, ImageError};
use crate::toolkit::{NotExecutable, Places, Tool};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::Xxh3;

/// Names the file of `nvdisasm`.
pub const VARIABLE: &str = "STREAMSAN_NVDISASM";
/// The package that brings it.
pub const PACKAGE: &str = "nvidia-cuda-nvdisasm";
const PROGRAM: &str = "nvdisasm";
/// Code sections only.
const ARGUMENTS: &[&str] = &["--print-code"];
/// Counts changes of how the cache is kept.
const CACHE_VERSION: u8 = 1;
/// The longest output that is read, in bytes.
const MAX_OUTPUT: u64 = 256 << 20;
/// How often a running program is looked at, at most.
const SLOWEST_POLL: Duration = Duration::from_millis(20);

/// Why there is no listing of a kernel.
#[derive(Debug, thiserror::Error)]
pub enum DisassemblyError {
    /// The cubin cannot be read.
    #[error("the machine code cannot be read: {0}")]
    Image(#[from] ImageError),
    /// The cubin has no such kernel.
    #[error("the machine code has no kernel {0}")]
    NoKernel(String),
    /// A file or the program could not be used.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The program refused the cubin.
    #[error("nvdisasm failed ({status}): {message}")]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// The first line that it wrote to standard error.
        message: String,
    },
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
    cache: PathBuf,
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

    /// `cache` is a directory of the user, made when it is needed. `timeout` is for one kernel.
    #[must_use]
    pub fn new(tool: Tool, cache: PathBuf, timeout: Duration) -> Self {
        Self { tool, cache, timeout }
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

    /// The listing of a kernel, by its mangled name, and of the functions that are beside it.
    ///
    /// # Errors
    /// When there is no such kernel, or the program cannot be run, fails or takes too long.
    pub fn listing(&self, cubin: &[u8], kernel: &str) -> Result<String, DisassemblyError> {
        let parsed = Cubin::parse(cubin)?;
        let found = parsed.kernels.iter().find(|k| k.name == kernel);
        let symbol = found.ok_or_else(|| DisassemblyError::NoKernel(kernel.to_owned()))?.symbol;
        let kept = self.cache.join(format!("{:032x}.sass", self.key(cubin, symbol)?));
        if let Some(listing) = read_kept(&kept) {
            return Ok(listing);
        }
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.cache)
            .map_err(failed("cannot make", &self.cache))?;
        let symbols: Vec<_> =
            [symbol].iter().chain(&parsed.functions).map(u32::to_string).collect();
        let listing = self.run(cubin, &symbols.join(","))?;
        keep(&kept, &listing).map_err(failed("cannot write", &kept))?;
        Ok(listing)
    }

    /// Hash of everything that the output depends on. The program is known by its size and age.
    fn key(&self, cubin: &[u8], symbol: u32) -> Result<u128, DisassemblyError> {
        let path = &self.tool.path;
        let file = fs::metadata(path).map_err(failed("cannot read", path))?;
        let mut hash = Xxh3::new();
        hash.update(&[CACHE_VERSION]);
        hash.update(ARGUMENTS.join(" ").as_bytes());
        for number in [file.size(), file.mtime() as u64, file.mtime_nsec() as u64, symbol.into()] {
            hash.update(&number.to_le_bytes());
        }
        hash.update(cubin);
        Ok(hash.digest128())
    }

    /// Output goes to files, so that no pipe fills up while nobody reads it.
    fn run(&self, cubin: &[u8], symbols: &str) -> Result<String, DisassemblyError> {
        let input = Scratch::new(&self.cache, "cubin")?;
        let output = Scratch::new(&self.cache, "out")?;
        let errors = Scratch::new(&self.cache, "err")?;
        fs::write(&input.0, cubin).map_err(failed("cannot write", &input.0))?;
        let child = Command::new(&self.tool.path)
            .args(ARGUMENTS)
            .args(["--cuda-function-index", symbols])
            .arg(&input.0)
            .stdin(Stdio::null())
            .stdout(output.create()?)
            .stderr(errors.create()?)
            // The program must not be recorded itself.
            .env_remove("LD_PRELOAD")
            .spawn()
            .map_err(failed("cannot run", &self.tool.path))?;
        let status = self.wait(child)?;
        let written = fs::metadata(&output.0).map_or(0, |file| file.len());
        if written > MAX_OUTPUT {
            return Err(DisassemblyError::TooLong(written));
        }
        let listing = fs::read(&output.0).map_err(failed("cannot read", &output.0))?;
        if !status.success() || listing.is_empty() {
            let mut message = Vec::new();
            let said = File::open(&errors.0).and_then(|f| f.take(4096).read_to_end(&mut message));
            said.map_err(failed("cannot read", &errors.0))?;
            let message = String::from_utf8_lossy(&message);
            let message = message.lines().next().unwrap_or("it says nothing").to_owned();
            return Err(DisassemblyError::Failed { status, message });
        }
        Ok(String::from_utf8_lossy(&listing).into_owned())
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

/// A listing that was kept. One that is damaged is as good as none.
fn read_kept(path: &Path) -> Option<String> {
    let packed = fs::read(path).ok()?;
    let (size, packed) = packed.split_first_chunk::<8>()?;
    let size = usize::try_from(u64::from_le_bytes(*size)).ok()?;
    if size as u64 > MAX_OUTPUT || size / 255 > packed.len() {
        return None;
    }
    let listing = lz4_flex::block::decompress(packed, size).ok()?;
    String::from_utf8(listing).ok().filter(|listing| listing.len() == size)
}

/// Written beside its place and moved there, so that nobody reads half of it.
fn keep(path: &Path, listing: &str) -> io::Result<()> {
    let written = path.with_extension(unique("new"));
    let packed = lz4_flex::block::compress(listing.as_bytes());
    let outcome = File::create_new(&written).and_then(|mut file| {
        file.write_all(&(listing.len() as u64).to_le_bytes())?;
        file.write_all(&packed)
    });
    let outcome = outcome.and_then(|()| fs::rename(&written, path));
    if outcome.is_err() {
        // Nothing more can be done about a file that is in the way.
        let _ = fs::remove_file(&written);
    }
    outcome
}

/// An extension that no other thread or process uses at the same time.
fn unique(kind: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}.{kind}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A file that is removed after use.
struct Scratch(PathBuf);

impl Scratch {
    fn new(folder: &Path, kind: &str) -> Result<Self, DisassemblyError> {
        let path = folder.join(format!("scratch-{}", unique(kind)));
        File::create_new(&path).map_err(failed("cannot make", &path))?;
        Ok(Self(path))
    }

    fn create(&self) -> Result<File, DisassemblyError> {
        File::create(&self.0).map_err(failed("cannot write", &self.0))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing can be done about a directory that is gone.
        let _ = fs::remove_file(&self.0);
    }
}
