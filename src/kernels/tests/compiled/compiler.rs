//! NVIDIA's compiler, where the machine has one, and the images that it makes of the corpus. They
//! are kept in the folder for scratch files of the build, under a hash of what they depend on.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use streamsan_kernels::image::{CodeKind, ComputeCapability, Image, Target, Variant};

use super::corpus::Source;
use super::tools;

/// The targets that the corpus is compiled for.
const TARGETS: [&str; 5] = ["75", "80", "90a", "100a", "120a"];

/// The compiler.
#[derive(Debug, Clone)]
pub(crate) struct Compiler {
    nvcc: PathBuf,
    /// Where images are kept.
    folder: PathBuf,
}

/// A source in the two forms of one target.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) target: Target,
    pub(crate) ptx: String,
    pub(crate) cubin: Vec<u8>,
}

impl Compiler {
    /// The compiler of this machine.
    pub(crate) fn find(scratch: &Path) -> Option<Self> {
        Some(Self { nvcc: tools::nvcc()?.path, folder: scratch.join("compiled") })
    }

    /// The source for every target that it is for, the oldest first.
    pub(crate) fn compile(&self, source: &Source) -> Result<Vec<Compiled>, String> {
        let mut all: Vec<Compiled> = Vec::new();
        if targets(source).next().is_none() {
            return Ok(all);
        }
        let image = self.fat_binary(source)?;
        let image = Image::read(&image).map_err(|error| error.to_string())?;
        for (number, variant) in targets(source) {
            let capability = ComputeCapability::from_number(number).expect("a capability");
            let target = Target { capability, variant };
            let code = |kind| {
                let of = image.entries().find(|e| e.kind == kind && e.target == Some(target));
                let entry = of.ok_or_else(|| format!("no {kind:?} for {target}"))?;
                entry.code().map(|code| code.into_owned()).map_err(|error| error.to_string())
            };
            let ptx = String::from_utf8(code(CodeKind::Ptx)?).map_err(|error| error.to_string())?;
            let ptx = ptx.trim_end_matches('\0').to_owned();
            all.push(Compiled { target, ptx, cubin: code(CodeKind::Cubin)? });
        }
        Ok(all)
    }

    fn fat_binary(&self, source: &Source) -> Result<Vec<u8>, String> {
        // Tests that run side by side want the same images.
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut arguments = vec!["-fatbin".to_owned(), "--threads=0".to_owned()];
        for (number, variant) in targets(source) {
            let target = format!("{number}{}", variant.suffix());
            let generate = format!("arch=compute_{target},code=[sm_{target},compute_{target}]");
            arguments.extend(["-gencode".to_owned(), generate]);
        }
        let mut hasher = DefaultHasher::new();
        let tool = fs::metadata(&self.nvcc).map_err(|error| error.to_string())?;
        (&self.nvcc, tool.len(), tool.modified().ok()).hash(&mut hasher);
        (&arguments, &source.text).hash(&mut hasher);
        let kept = self.folder.join(format!("{:016x}", hasher.finish()));
        if let Ok(bytes) = fs::read(&kept) {
            return Ok(bytes);
        }
        fs::create_dir_all(&self.folder).map_err(|error| error.to_string())?;
        let folder = tempfile::tempdir_in(&self.folder).map_err(|error| error.to_string())?;
        let made = folder.path().join("image");
        let output = Command::new(&self.nvcc)
            .args(&arguments)
            .arg("-o")
            .arg(&made)
            .arg(&source.path)
            .output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let bytes = fs::read(&made).map_err(|error| error.to_string())?;
        fs::rename(&made, &kept).map_err(|error| error.to_string())?;
        Ok(bytes)
    }
}

fn targets(source: &Source) -> impl Iterator<Item = (u32, Variant)> {
    let parts = |target: &str| match target.strip_suffix('a') {
        Some(number) => (number.parse().expect("a number"), Variant::Specific),
        None => (target.parse().expect("a number"), Variant::Portable),
    };
    let targets = tools::wanted(&TARGETS).into_iter().map(parts);
    targets.filter(|&(number, _)| number >= source.oldest)
}
