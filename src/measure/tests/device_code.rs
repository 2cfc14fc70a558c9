//! The committed PTX is what the sources beside it give. Needs `nvcc`, looked for in the folders of
//! `STREAMSAN_TEST_TOOLS` and in `PATH`; without it the test fails where that variable is set, as in CI,
//! and else says that it was skipped. After a change of the sources, or of the compiler: `make.sh`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn nvcc() -> Option<PathBuf> {
    let lists = ["STREAMSAN_TEST_TOOLS", "PATH"].map(|name| env::var_os(name).unwrap_or_default());
    let mut folders = lists.iter().flat_map(|list| env::split_paths(list).collect::<Vec<_>>());
    folders.find_map(|folder| Some(folder.join("nvcc")).filter(|file| file.is_file()))
}

#[test]
fn committed_ptx_is_that_of_the_sources() {
    let Some(nvcc) = nvcc() else {
        assert!(env::var_os("STREAMSAN_TEST_TOOLS").is_none(), "no nvcc in STREAMSAN_TEST_TOOLS");
        eprintln!("skipped: no nvcc was found");
        return;
    };
    let device = Path::new(env!("CARGO_MANIFEST_DIR")).join("device");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("device_code");
    fs::create_dir_all(&made).expect("a directory");
    let status = Command::new("sh")
        .arg(device.join("make.sh"))
        .arg(&made)
        .env("NVCC", &nvcc)
        .status()
        .expect("sh runs");
    assert!(
        status.success(),
        "{} with {}: {status}",
        device.join("make.sh").display(),
        nvcc.display()
    );
    for name in ["patches.ptx", "drain.ptx"] {
        let read = |folder: &Path| fs::read_to_string(folder.join(name)).expect(name);
        assert!(
            read(&device) == read(&made),
            "{name} is not what make.sh makes with {}",
            nvcc.display()
        );
    }
}
