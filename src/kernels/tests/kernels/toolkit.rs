//! Where the programs of the CUDA Toolkit are found, in made-up directories.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use streamsan_kernels::toolkit::{NotExecutable, Origin, Places};

// No real installation has a tool of this name.
const TOOL: &str = "streamsan-test-tool";

struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn install(&self, path: &str, mode: u32) -> PathBuf {
        let file = self.at(path);
        fs::create_dir_all(file.parent().expect("a parent")).expect("made");
        fs::write(&file, "").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("set");
        file
    }

    /// Variables whose values are below the machine's root.
    fn places(&self, variables: &[(&str, &str)], program: Option<&str>) -> Places {
        let variables = variables.iter().map(|(name, value)| {
            let list = value.split(':').map(|path| self.at(path));
            (OsString::from(name), std::env::join_paths(list).expect("a list"))
        });
        let program = program.map(|program| self.at(program));
        Places::new(variables, program.as_deref())
    }

    #[track_caller]
    fn expect(&self, places: &Places, path: &str, origin: Origin) {
        let found = places.find(TOOL, "TOOL").expect("well").expect("found");
        assert_eq!((found.path, found.origin), (self.at(path), origin));
    }
}

#[test]
fn every_place_is_looked_at() {
    for (file, variables, program, origin) in [
        ("x/other-name", &[("TOOL", "x/other-name")][..], None, Origin::Variable),
        ("b/streamsan-test-tool", &[("PATH", "a:b")], None, Origin::SearchPath),
        ("cuda/bin/streamsan-test-tool", &[("CUDA_HOME", "cuda")], None, Origin::Toolkit),
        (
            "env/lib/python3.11/site-packages/nvidia/cu13/bin/streamsan-test-tool",
            &[("VIRTUAL_ENV", "env")],
            None,
            Origin::Python,
        ),
        (
            "env/lib/python3.12/site-packages/triton/backends/nvidia/bin/streamsan-test-tool",
            &[],
            Some("env/bin/python3.12"),
            Origin::Python,
        ),
        (
            "home/.local/lib/python3.9/site-packages/nvidia/cuda_nvcc/bin/streamsan-test-tool",
            &[("HOME", "home")],
            None,
            Origin::Python,
        ),
        (
            "packages/nvidia/cu13/bin/streamsan-test-tool",
            &[("PYTHONPATH", "packages")],
            None,
            Origin::Python,
        ),
    ] {
        let machine = Machine::new();
        machine.install(file, 0o755);
        machine.expect(&machine.places(variables, program), file, origin);
        // A file that cannot be executed is none.
        machine.install(file, 0o644);
        let found = machine.places(variables, program).find(TOOL, "ANOTHER");
        assert_eq!(found, Ok(None), "{file}");
    }
}

#[test]
fn interpreter_of_the_search_path_tells_its_packages() {
    let machine = Machine::new();
    machine.install("py/bin/python3", 0o755);
    let file = "py/lib/python3.13/site-packages/nvidia/cu13/bin/streamsan-test-tool";
    machine.install(file, 0o755);
    machine.expect(&machine.places(&[("PATH", "bin:py/bin")], None), file, Origin::Python);
}

#[test]
fn nearer_places_come_first() {
    let machine = Machine::new();
    machine.install("env/lib/python3.9/site-packages/nvidia/cu9/bin/streamsan-test-tool", 0o755);
    let newer = "env/lib/python3.9/site-packages/nvidia/cu13/bin/streamsan-test-tool";
    machine.install(newer, 0o755);
    let variables = [("VIRTUAL_ENV", "env"), ("CUDA_HOME", "cuda"), ("PATH", "p"), ("TOOL", "t")];
    for (file, from, origin) in [
        (newer, 0..1, Origin::Python),
        ("cuda/bin/streamsan-test-tool", 0..2, Origin::Toolkit),
        ("p/streamsan-test-tool", 0..3, Origin::SearchPath),
        ("t", 0..4, Origin::Variable),
    ] {
        machine.install(file, 0o755);
        machine.expect(&machine.places(&variables[from], None), file, origin);
    }
}

#[test]
fn named_file_must_be_executable() {
    let machine = Machine::new();
    machine.install("p/streamsan-test-tool", 0o755);
    machine.install("plain", 0o644);
    for named in ["plain", "missing", "p"] {
        let places = machine.places(&[("PATH", "p"), ("TOOL", named)], None);
        let refused = NotExecutable { variable: "TOOL".to_owned(), path: machine.at(named) };
        assert_eq!(places.find(TOOL, "TOOL"), Err(refused));
    }
}

#[test]
fn relative_paths_and_other_programs_are_passed_over() {
    let relative = [("PATH", "."), ("CUDA_HOME", "cuda")].map(|(n, v)| (n.into(), v.into()));
    let places = Places::new(relative, Some(Path::new("bin/python3")));
    assert_eq!(places.find(TOOL, "TOOL"), Ok(None));
    let machine = Machine::new();
    machine.install("app/lib/python3.9/site-packages/nvidia/cu13/bin/streamsan-test-tool", 0o755);
    assert_eq!(machine.places(&[], Some("app/bin/train")).find(TOOL, "TOOL"), Ok(None));
}
