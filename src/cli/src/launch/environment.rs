//! The environment that the program finds.

use super::{Libraries, torch};
use crate::options::{SimPolicy, TorchAllocator};
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Names the library that NVTX's header loads into programs that use it.
const NVTX_INJECTION: &str = "NVTX_INJECTION64_PATH";

/// Read by AddressSanitizer's runtime.
const ASAN_OPTIONS: &str = "ASAN_OPTIONS";

/// The parts of the host's side that are watched by libraries of their own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watched {
    /// How host threads synchronise.
    pub(crate) threads: bool,
    /// Host threads' accesses to memory that the device uses.
    pub(crate) accesses: bool,
}

/// Variables to set for the program under test.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    variables: Vec<(&'static str, OsString)>,
    replayed: RecordedEnvironment,
}

/// Variables that a program is to find as another run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedEnvironment {
    /// Those that were set.
    pub(crate) set: Vec<(String, String)>,
    /// Those that were not set and are now.
    pub(crate) unset: Vec<String>,
}

impl Environment {
    /// The runtime goes before libraries that are preloaded already; the simulated driver before
    /// every other directory. NVTX loads the runtime too, unless the program's user has another
    /// library for it. AddressSanitizer's shared runtime is told not to ask for the first place:
    /// what it interposes, the runtime does not, so the order of the two decides nothing.
    pub(crate) fn new(
        libraries: &Libraries,
        run_directory: &Path,
        policy: Option<&SimPolicy>,
        watched: Watched,
    ) -> Self {
        Self::over(libraries, run_directory, policy, watched, |name| env::var_os(name))
    }

    fn over(
        libraries: &Libraries,
        run_directory: &Path,
        policy: Option<&SimPolicy>,
        watched: Watched,
        existing: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let given = |name: &str| existing(name).filter(|value| !value.is_empty());
        let mut preloaded: Vec<&Path> = vec![&libraries.runtime];
        if watched.threads {
            preloaded.push(&libraries.host_threads);
        }
        if watched.accesses {
            preloaded.push(&libraries.host_accesses);
        }
        let mut variables = vec![
            (streamsan_wire::RUN_DIR_VARIABLE, run_directory.into()),
            ("LD_PRELOAD", list(&preloaded, existing("LD_PRELOAD"))),
            // The user's options come behind ours and win.
            (ASAN_OPTIONS, list(&[Path::new("verify_asan_link_order=0")], existing(ASAN_OPTIONS))),
        ];
        if given(NVTX_INJECTION).is_none() {
            variables.push((NVTX_INJECTION, libraries.runtime.clone().into()));
        }
        variables.extend(driver(libraries, policy, existing));
        Self { variables, replayed: RecordedEnvironment::default() }
    }

    /// The variables of a program that is not recorded: the simulated driver, where that is asked
    /// for.
    pub(crate) fn without_runtime(libraries: &Libraries, policy: Option<&SimPolicy>) -> Self {
        let variables = driver(libraries, policy, |name| env::var_os(name));
        Self { variables, replayed: RecordedEnvironment::default() }
    }

    /// Makes PyTorch take its memory from this allocator.
    ///
    /// # Errors
    /// One paragraph for the user, if the environment asks for another one.
    pub(crate) fn set_torch_allocator(&mut self, allocator: TorchAllocator) -> Result<(), String> {
        let variables = torch::variables(allocator, |name| env::var(name).ok())?;
        self.variables.extend(variables.map(|(name, value)| (name, value.into())));
        Ok(())
    }

    /// Has kernels measured: `selection` is the file that says which, `library` what the measuring
    /// library needs beside it.
    pub(crate) fn measure(
        &mut self,
        selection: &Path,
        library: impl IntoIterator<Item = (&'static str, OsString)>,
    ) {
        self.variables.push((streamsan_wire::MEASURE_VARIABLE, selection.into()));
        self.variables.extend(library);
    }

    /// Gives variables to the program as another run had them.
    pub(crate) fn replay(&mut self, recorded: &RecordedEnvironment) {
        self.replayed = recorded.clone();
    }

    /// The variables of another run, set before those of [`Environment::iter`].
    pub(crate) fn replayed(&self) -> &RecordedEnvironment {
        &self.replayed
    }

    /// The variables and their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &OsStr)> {
        self.variables.iter().map(|(name, value)| (*name, value.as_os_str()))
    }
}

/// Puts the simulated driver before every other one.
fn driver(
    libraries: &Libraries,
    policy: Option<&SimPolicy>,
    existing: impl Fn(&str) -> Option<OsString>,
) -> Vec<(&'static str, OsString)> {
    let Some(policy) = policy else { return Vec::new() };
    let path = list(&[&libraries.sim_directory], existing("LD_LIBRARY_PATH"));
    vec![("LD_LIBRARY_PATH", path), ("STREAMSAN_SIM_POLICY", policy.to_string().into())]
}

/// A list with colons before the list that is there.
fn list(first: &[&Path], given: Option<OsString>) -> OsString {
    let first = first.iter().map(|path| path.as_os_str().to_owned());
    let all: Vec<OsString> = first.chain(given.filter(|list| !list.is_empty())).collect();
    all.join(OsStr::new(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libraries() -> Libraries {
        Libraries {
            runtime: "/c/runtime.so".into(),
            host_threads: "/c/threads.so".into(),
            host_accesses: "/c/accesses.so".into(),
            measure: "/c/measure.so".into(),
            tsan_stub: "/c/tsan.so".into(),
            sim_directory: "/c/sim".into(),
            are_kept: true,
            _directory: None,
        }
    }

    fn set(
        policy: Option<&SimPolicy>,
        (threads, accesses): (bool, bool),
        existing: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<String> {
        let watched = Watched { threads, accesses };
        let environment =
            Environment::over(&libraries(), Path::new("/run/1"), policy, watched, existing);
        environment.iter().map(|(n, v)| format!("{n}={}", v.to_string_lossy())).collect()
    }

    #[test]
    fn existing_lists_are_kept_behind_ours() {
        let existing = |name: &str| (name == "LD_PRELOAD").then(|| OsString::from("/usr/lib/x.so"));
        assert_eq!(
            set(Some(&SimPolicy::Lazy), (false, false), existing),
            [
                "STREAMSAN_RUN_DIR=/run/1",
                "LD_PRELOAD=/c/runtime.so:/usr/lib/x.so",
                "ASAN_OPTIONS=verify_asan_link_order=0",
                "NVTX_INJECTION64_PATH=/c/runtime.so",
                "LD_LIBRARY_PATH=/c/sim",
                "STREAMSAN_SIM_POLICY=lazy",
            ]
        );
    }

    #[test]
    fn without_the_simulator_the_library_path_is_left_alone() {
        assert_eq!(set(None, (false, false), |_| None).len(), 4);
    }

    #[test]
    fn the_hosts_side_is_watched_only_where_that_is_asked_for() {
        let preloaded = |watched| set(None, watched, |_| None)[1].clone();
        assert_eq!(preloaded((true, false)), "LD_PRELOAD=/c/runtime.so:/c/threads.so");
        assert_eq!(preloaded((false, true)), "LD_PRELOAD=/c/runtime.so:/c/accesses.so");
        assert_eq!(
            preloaded((true, true)),
            "LD_PRELOAD=/c/runtime.so:/c/threads.so:/c/accesses.so"
        );
    }

    #[test]
    fn another_library_for_nvtx_stays() {
        let existing =
            |name: &str| (name == "NVTX_INJECTION64_PATH").then(|| OsString::from("/nsys.so"));
        assert!(!set(None, (false, false), existing).iter().any(|set| set.contains("NVTX")));
    }
}
