//! What measuring needs beside the selection of kernels: on the simulated driver nothing, else
//! NVIDIA's Compute Sanitizer API, which is never shipped with streamsan.

use crate::options::SimPolicy;
use std::env;
use std::ffi::OsString;
use std::path::Path;
use streamsan_kernels::toolkit::Places;

/// Names the file of NVIDIA's library, or a directory with it.
pub(crate) const SANITIZER_VARIABLE: &str = "STREAMSAN_SANITIZER";
/// Names a library that the driver loads when it starts. There is room for one.
const INJECTION: &str = "CUDA_INJECTION64_PATH";
/// Where the library is not found.
const ABSENT: &str = "measuring needs NVIDIA's Compute Sanitizer API: pip install \
    nvidia-cuda-sanitizer-api (18 MB; with CUDA 12: nvidia-cuda-sanitizer-api-cu12), or set \
    STREAMSAN_SANITIZER to its libsanitizer-public.so";

/// Where the library that measures is not part of the command.
const NOT_BUILT: &str = "this build of streamsan measures on the simulated driver only (run --sim)";

/// The variables by which a program under test is measured. `ours` is the unpacked library that
/// measures on a GPU, `None` in a build without it.
///
/// # Errors
/// One paragraph for the user, where nothing can be measured here.
pub(crate) fn measuring_library(
    sim: Option<&SimPolicy>,
    program: Option<&Path>,
    ours: Option<&Path>,
) -> Result<Vec<(&'static str, OsString)>, String> {
    over(sim, &Places::of_this_process(program), ours, |name| env::var_os(name))
}

fn over(
    sim: Option<&SimPolicy>,
    places: &Places,
    ours: Option<&Path>,
    existing: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<(&'static str, OsString)>, String> {
    if sim.is_some() {
        // It knows what its kernels touch.
        return Ok(Vec::new());
    }
    if let Some(other) = existing(INJECTION).filter(|other| !other.is_empty()) {
        return Err(format!(
            "nothing can be measured, because {INJECTION} names another library ({}) and the driver \
             loads one only; unset it for the run that measures",
            other.to_string_lossy()
        ));
    }
    match places.find_sanitizer(SANITIZER_VARIABLE) {
        Ok(Some(tool)) => {
            let ours = ours.ok_or(NOT_BUILT)?;
            Ok(vec![(SANITIZER_VARIABLE, tool.path.into()), (INJECTION, ours.into())])
        }
        Ok(None) => Err(ABSENT.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// `Path::new` is no constant function in the oldest Rust that builds.
    fn ours() -> Option<&'static Path> {
        Some(Path::new("/ours.so"))
    }

    fn places(variables: &[(&str, &Path)]) -> Places {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        Places::new(variables.collect::<Vec<(OsString, OsString)>>(), None)
    }

    #[test]
    fn the_simulated_driver_needs_nothing() {
        let named = |_: &str| Some(OsString::from("/other.so"));
        assert_eq!(over(Some(&SimPolicy::Lazy), &Places::default(), None, named), Ok(Vec::new()));
    }

    #[test]
    fn without_the_library_the_package_is_named() {
        let told = over(None, &Places::default(), ours(), |_| None).expect_err("it is nowhere");
        assert!(told.contains("pip install nvidia-cuda-sanitizer-api"), "{told}");
    }

    #[test]
    fn another_injected_library_is_left_alone() {
        let named = |name: &str| (name == INJECTION).then(|| OsString::from("/other.so"));
        let told = over(None, &Places::default(), ours(), named).expect_err("the place is taken");
        assert!(told.contains("/other.so"), "{told}");
    }

    #[test]
    fn the_library_is_found_where_it_is_named_and_in_packages() {
        let folder = tempfile::tempdir().expect("a directory");
        let in_package = folder.path().join("nvidia/cu13/compute-sanitizer");
        fs::create_dir_all(&in_package).expect("a directory");
        let file = in_package.join("libsanitizer-public.so");
        fs::write(&file, "").expect("a file");
        let found = Ok(vec![
            (SANITIZER_VARIABLE, OsString::from(&file)),
            (INJECTION, OsString::from("/ours.so")),
        ]);
        for (variable, value) in [
            ("PYTHONPATH", folder.path()),
            (SANITIZER_VARIABLE, &in_package),
            (SANITIZER_VARIABLE, &file),
        ] {
            assert_eq!(
                over(None, &places(&[(variable, value)]), ours(), |_| None),
                found,
                "{variable}"
            );
        }
        let without = over(None, &places(&[(SANITIZER_VARIABLE, &file)]), None, |_| None);
        assert_eq!(without, Err(NOT_BUILT.to_owned()));
        let wrong = places(&[(SANITIZER_VARIABLE, folder.path())]);
        assert!(
            over(None, &wrong, ours(), |_| None)
                .is_err_and(|told| told.contains(SANITIZER_VARIABLE))
        );
    }
}
