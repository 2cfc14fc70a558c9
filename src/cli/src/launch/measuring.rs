//! The needs of measuring beside the selection of kernels: on the simulated driver nothing, else
//! NVIDIA's Compute Sanitizer API, which is never shipped with streamsan.

use super::patches::patches;
use crate::options::SimPolicy;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use streamsan_kernels::toolkit::Places;
use streamsan_wire::MEASURE_PATCHES_VARIABLE;

/// Names the file of NVIDIA's library, or a directory with it.
pub(crate) use streamsan_wire::SANITIZER_VARIABLE;
/// Names a library that the driver loads when it starts. There is room for one.
const INJECTION: &str = "CUDA_INJECTION64_PATH";
/// Where the library is not found. The packages for CUDA 12 are older than what is needed.
const ABSENT: &str = "measuring needs NVIDIA's Compute Sanitizer API: pip install \
    nvidia-cuda-sanitizer-api (18 MB, version 13.3 or later), or set STREAMSAN_SANITIZER to its \
    libsanitizer-public.so";

/// The variables by which a program under test is measured. `ours` is the unpacked library that
/// measures on a GPU.
///
/// # Errors
/// One paragraph for the user, where nothing can be measured here.
pub(crate) fn measuring_library(
    sim: Option<&SimPolicy>,
    program: Option<&Path>,
    ours: &Path,
) -> Result<Vec<(&'static str, OsString)>, String> {
    let assembled = || patches(program);
    over(sim, &Places::of_this_process(program), ours, assembled, |name| env::var_os(name))
}

fn over(
    sim: Option<&SimPolicy>,
    places: &Places,
    ours: &Path,
    assembled: impl FnOnce() -> Result<PathBuf, String>,
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
        Ok(Some(tool)) => Ok(vec![
            (SANITIZER_VARIABLE, tool.path.into()),
            (MEASURE_PATCHES_VARIABLE, assembled()?.into()),
            (INJECTION, ours.into()),
        ]),
        Ok(None) => Err(ABSENT.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn told(
        sim: Option<&SimPolicy>,
        places: &Places,
        existing: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Vec<(&'static str, OsString)>, String> {
        over(sim, places, Path::new("/ours.so"), || Ok("/patches".into()), existing)
    }

    fn places(variables: &[(&str, &Path)]) -> Places {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        Places::new(variables.collect::<Vec<(OsString, OsString)>>(), None)
    }

    #[test]
    fn the_simulated_driver_needs_nothing() {
        let named = |_: &str| Some(OsString::from("/other.so"));
        assert_eq!(told(Some(&SimPolicy::Lazy), &Places::default(), named), Ok(Vec::new()));
    }

    #[test]
    fn without_the_library_the_package_is_named() {
        let told = told(None, &Places::default(), |_| None).expect_err("it is nowhere");
        assert!(told.contains("pip install nvidia-cuda-sanitizer-api"), "{told}");
    }

    #[test]
    fn another_injected_library_is_left_alone() {
        let named = |name: &str| (name == INJECTION).then(|| OsString::from("/other.so"));
        let told = told(None, &Places::default(), named).expect_err("the place is taken");
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
            (MEASURE_PATCHES_VARIABLE, OsString::from("/patches")),
            (INJECTION, OsString::from("/ours.so")),
        ]);
        for (variable, value) in [
            ("PYTHONPATH", folder.path()),
            (SANITIZER_VARIABLE, &in_package),
            (SANITIZER_VARIABLE, &file),
        ] {
            assert_eq!(told(None, &places(&[(variable, value)]), |_| None), found, "{variable}");
        }
        let without = over(
            None,
            &places(&[(SANITIZER_VARIABLE, &file)]),
            Path::new("/ours.so"),
            || Err("no assembler".to_owned()),
            |_| None,
        );
        assert_eq!(without, Err("no assembler".to_owned()));
        let wrong = places(&[(SANITIZER_VARIABLE, folder.path())]);
        assert!(told(None, &wrong, |_| None).is_err_and(|told| told.contains(SANITIZER_VARIABLE)));
    }
}
