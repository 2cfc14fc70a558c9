//! Finding the programs of the CUDA Toolkit that the user has, by looking at paths only: nothing is
//! executed.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where the programs of a wheel lie in a directory of Python packages: NVIDIA's own wheels of
/// CUDA 13 and of CUDA 12, and Triton, which brings some of them along.
const WHEELS: [&str; 2] = ["nvidia/*/bin", "triton/backends/nvidia/bin"];
/// Directories of Python packages below the prefix of an installation or environment.
const PACKAGES: [&str; 4] = [
    "lib/python3*/site-packages",
    "lib64/python3*/site-packages",
    "lib/python3*/dist-packages",
    "lib/python3/dist-packages",
];

/// NVIDIA's public Compute Sanitizer API.
const SANITIZER: &str = "libsanitizer-public.so";
/// Where it lies in a toolkit, and in a directory of Python packages (CUDA 13, CUDA 12).
const SANITIZER_IN_TOOLKIT: [&str; 2] = ["compute-sanitizer", "extras/Sanitizer"];
const SANITIZER_IN_WHEEL: [&str; 3] =
    ["nvidia/*/compute-sanitizer", "nvidia/*/lib", "nvidia/sanitizer_api"];

/// A program of the CUDA Toolkit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The file.
    pub path: PathBuf,
    /// How it was found.
    pub origin: Origin,
}

/// How a tool was found, in the order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user named it.
    Variable,
    /// It is in `PATH`.
    SearchPath,
    /// It is in an installed toolkit.
    Toolkit,
    /// A Python package brought it.
    Python,
}

impl Origin {
    /// In a sentence about the tool: "found in PATH".
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Variable => "named by the environment",
            Self::SearchPath => "in PATH",
            Self::Toolkit => "in an installed CUDA Toolkit",
            Self::Python => "in a Python package",
        }
    }
}

/// A variable names something that cannot be executed. Falling back would hide the mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} names {}, which is no executable file", path.display())]
pub struct NotExecutable {
    /// The variable.
    pub variable: String,
    /// Its value.
    pub path: PathBuf,
}

/// A variable names something that is not the library. Falling back would hide the mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} names {}, which is neither {SANITIZER} nor a directory with it", path.display())]
pub struct NoLibrary {
    /// The variable.
    pub variable: String,
    /// Its value.
    pub path: PathBuf,
}

/// The places that are looked at.
#[derive(Clone, Debug, Default)]
pub struct Places {
    variables: Vec<(OsString, OsString)>,
    /// Where toolkits are installed.
    toolkits: Vec<PathBuf>,
    /// Prefixes of Python installations and environments.
    prefixes: Vec<PathBuf>,
    /// Directories of Python packages.
    packages: Vec<PathBuf>,
}

impl Places {
    /// Those of an environment. `program` is the program under test: a Python interpreter brings
    /// the packages of its own environment.
    #[must_use]
    pub fn new(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        program: Option<&Path>,
    ) -> Self {
        let mut places = Self { variables: variables.into_iter().collect(), ..Self::default() };
        places.toolkits = ["CUDA_HOME", "CUDA_PATH"]
            .iter()
            .filter_map(|name| places.path(name))
            .chain([PathBuf::from("/usr/local/cuda")])
            .chain(numbered(Path::new("/usr/local"), "cuda-"))
            .collect();
        let home = places.path("HOME").map(|home| home.join(".local"));
        places.prefixes = program
            .and_then(prefix)
            .into_iter()
            .chain(["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| places.path(name)))
            .chain(["python3", "python"].iter().filter_map(|name| {
                let python = places.search_path(name)?;
                prefix(&python)
            }))
            .chain(home)
            .chain(["/usr/local", "/usr"].map(PathBuf::from))
            .collect();
        places.packages = places.list("PYTHONPATH");
        places
    }

    /// Those of this process. A command that a Python package brought has the packages beside it that
    /// were installed with it (docs/install.md), whichever environment is active.
    #[must_use]
    pub fn of_this_process(program: Option<&Path>) -> Self {
        let mut places = Self::new(std::env::vars_os(), program);
        let own = std::env::current_exe().ok();
        places.prefixes.extend(own.as_deref().and_then(prefix_of_script));
        places
    }

    /// The first place that has a tool. `variable` may name its file.
    ///
    /// # Errors
    /// When the variable names no executable file.
    pub fn find(&self, name: &str, variable: &str) -> Result<Option<Tool>, NotExecutable> {
        if let Some(path) = self.variable(variable).map(PathBuf::from) {
            if is_executable(&path) {
                return Ok(Some(Tool { path, origin: Origin::Variable }));
            }
            return Err(NotExecutable { variable: variable.to_owned(), path });
        }
        let in_path = self.search_path(name).map(|path| (path, Origin::SearchPath));
        let in_toolkits =
            self.toolkits.iter().map(|root| (root.join("bin").join(name), Origin::Toolkit));
        let packages = self.prefixes.iter().flat_map(|prefix| below(prefix, &PACKAGES));
        let packages = self.packages.iter().cloned().chain(packages);
        let in_wheels = packages.flat_map(|packages| below(&packages, &WHEELS));
        let in_wheels = in_wheels.map(|folder| (folder.join(name), Origin::Python));
        let mut all = in_path.into_iter().chain(in_toolkits).chain(in_wheels);
        let found = all.find(|(path, _)| is_executable(path));
        Ok(found.map(|(path, origin)| Tool { path, origin }))
    }

    /// The first place that has NVIDIA's Compute Sanitizer library. `variable` may name its file, or a
    /// directory with it.
    ///
    /// # Errors
    /// When the variable names neither.
    pub fn find_sanitizer(&self, variable: &str) -> Result<Option<Tool>, NoLibrary> {
        if let Some(path) = self.variable(variable).map(PathBuf::from) {
            let file = if path.is_dir() { path.join(SANITIZER) } else { path.clone() };
            return match file.is_file() {
                true => Ok(Some(Tool { path: file, origin: Origin::Variable })),
                false => Err(NoLibrary { variable: variable.to_owned(), path }),
            };
        }
        let in_toolkits = self.toolkits.iter().flat_map(|root| below(root, &SANITIZER_IN_TOOLKIT));
        let in_toolkits = in_toolkits.map(|folder| (folder.join(SANITIZER), Origin::Toolkit));
        let packages = self.prefixes.iter().flat_map(|prefix| below(prefix, &PACKAGES));
        let packages = self.packages.iter().cloned().chain(packages);
        let in_wheels = packages.flat_map(|packages| below(&packages, &SANITIZER_IN_WHEEL));
        let in_wheels = in_wheels.map(|folder| (folder.join(SANITIZER), Origin::Python));
        // Wheels bring newer versions, which see more.
        let found = in_wheels.chain(in_toolkits).find(|(path, _)| path.is_file());
        Ok(found.map(|(path, origin)| Tool { path, origin }))
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        let set = self.variables.iter().find(|(variable, _)| variable == name);
        set.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// The value of a variable that is an absolute path.
    fn path(&self, name: &str) -> Option<PathBuf> {
        self.variable(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// The absolute paths in a variable.
    fn list(&self, name: &str) -> Vec<PathBuf> {
        let list = self.variable(name).into_iter().flat_map(std::env::split_paths);
        list.filter(|path| path.is_absolute()).collect()
    }

    fn search_path(&self, name: &str) -> Option<PathBuf> {
        self.list("PATH")
            .into_iter()
            .map(|folder| folder.join(name))
            .find(|path| is_executable(path))
    }
}

/// The prefix of the environment that an interpreter belongs to. A link is not followed: the
/// interpreter of a virtual environment is a link to the one it was made with.
fn prefix(program: &Path) -> Option<PathBuf> {
    let python = program.file_name()?.to_str()?.starts_with("python");
    prefix_of_script(program).filter(|_| python)
}

/// The prefix of the environment among whose scripts a command is.
fn prefix_of_script(command: &Path) -> Option<PathBuf> {
    let folder = command.parent().filter(|folder| folder.ends_with("bin"))?;
    folder.parent().filter(|prefix| prefix.is_absolute()).map(Path::to_owned)
}

/// Directories that match patterns of path components; `*` stands for any text.
fn below(root: &Path, patterns: &[&str]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for pattern in patterns {
        let mut found = vec![root.to_owned()];
        for component in pattern.split('/') {
            found = match component.split_once('*') {
                None => found.into_iter().map(|folder| folder.join(component)).collect(),
                Some((start, _)) => {
                    found.iter().flat_map(|folder| numbered(folder, start)).collect()
                }
            };
        }
        all.extend(found.into_iter().filter(|folder| folder.is_dir()));
    }
    all
}

/// Entries of a directory whose name begins with `start`, the highest version first.
fn numbered(folder: &Path, start: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(start)).collect();
    names.sort_by_cached_key(|name| Reverse((numbers(name), name.clone())));
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// The numbers in a text, in order.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
