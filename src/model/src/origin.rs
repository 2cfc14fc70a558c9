//! The origin of a stack's frame, told by the place of its source or its image.

use crate::SourceFrame;
use crate::library::is_self_contained;

/// Whom a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The program.
    Program,
    /// A library, the interpreter or the toolchain.
    Library,
}

impl Origin {
    /// The word of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Library => "library",
        }
    }
}

/// Whether an image is the driver, real or simulated, or a library that streamsan loads into a
/// program.
pub(crate) fn is_below_the_call(image: &str) -> bool {
    let name = file_name(image);
    name.starts_with("libcuda.so") || name.starts_with("libstreamsan")
}

/// The origin of a function; a function without a source file counts as a library's.
pub(crate) fn origin(image: Option<&str>, source: &SourceFrame) -> Origin {
    let own = match (image, source.file.as_deref()) {
        (None, Some(file)) => !file.starts_with("<frozen") && !is_python_library(file),
        (Some(image), Some(file)) => !is_system_image(image) && !is_system_source(file),
        (_, None) => false,
    };
    if own { Origin::Program } else { Origin::Library }
}

/// Whether a path lies among installed packages or in Python's own library.
fn is_python_library(path: &str) -> bool {
    path.contains("/site-packages/") || path.contains("/dist-packages/") || {
        let mut parts = path.split('/').rev().skip(1);
        parts.any(|part| {
            part.strip_prefix("python3").is_some_and(|rest| {
                rest.strip_prefix('.').is_some_and(|minor| {
                    !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit())
                })
            })
        }) && path.contains("/lib")
    }
}

/// Directories of the system, of toolchains, and of sources that toolchains fetch.
const SYSTEM_SOURCES: [&str; 9] = [
    "/usr/include/",
    "/usr/lib/",
    "/usr/lib64/",
    "/usr/src/",
    "/usr/local/include/",
    "/usr/local/cuda",
    "/rustc/",
    "/opt/rh/",
    "/opt/nvidia/",
];
/// Parts of paths that are such directories wherever they stand.
const TOOLCHAIN_SOURCES: [&str; 8] = [
    "/.cargo/registry/",
    "/.cargo/git/",
    "/registry/src/",
    "/.rustup/toolchains/",
    "/include/c++/",
    "/site-packages/",
    "/dist-packages/",
    "/sysdeps/",
];

fn is_system_source(file: &str) -> bool {
    SYSTEM_SOURCES.iter().any(|directory| file.starts_with(directory))
        || TOOLCHAIN_SOURCES.iter().any(|directory| file.contains(directory))
        // Files that nvcc writes for launches; mostly gone, and named differently in each build.
        || file.ends_with(".cudafe1.stub.c")
}

/// Directories of libraries that hold no program of the user's.
const SYSTEM_IMAGES: [&str; 8] = [
    "/lib/",
    "/lib64/",
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
    "/usr/local/cuda",
    "/opt/nvidia/",
    "[",
];

/// Whether an image belongs to the system, to CUDA or to Python.
pub(crate) fn is_system_image(image: &str) -> bool {
    let name = file_name(image);
    image.is_empty()
        || SYSTEM_IMAGES.iter().any(|directory| image.starts_with(directory))
        || is_python_library(image)
        || name.starts_with("libpython")
        || name == "python"
        || name.starts_with("python3")
        || is_self_contained(image)
        || ["libcudart", "libstdc++", "libc.so", "libcuda"]
            .iter()
            .any(|library| name.starts_with(library))
}

/// Whether compilers, NVIDIA's static runtime or bindings to the driver put the function into the
/// program's own image.
pub(crate) fn is_of_the_toolchain(function: &str) -> bool {
    const STARTS: [&str; 16] = [
        "_start",
        "__libc_",
        "__cuda",
        "__device_stub_",
        "__wrapper__device_stub_",
        "libcudart_static_",
        "cudart::",
        "cudarc::",
        "<cudarc::",
        "std::",
        "<std::",
        "core::",
        "<core::",
        "alloc::",
        "<alloc::",
        "__rust_",
    ];
    let is_runtime_call = function
        .strip_prefix("cuda")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    is_runtime_call || STARTS.iter().any(|start| function.starts_with(start))
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
