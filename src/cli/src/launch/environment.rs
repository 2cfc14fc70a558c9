//! What the program finds in its environment.

use super::Libraries;
use crate::options::SimPolicy;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Variables to set for the program under test.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    variables: Vec<(&'static str, OsString)>,
}

impl Environment {
    /// The runtime goes before libraries that are preloaded already; the simulated driver before
    /// every other directory.
    pub(crate) fn new(
        libraries: &Libraries,
        run_directory: &Path,
        policy: Option<&SimPolicy>,
    ) -> Self {
        Self::over(libraries, run_directory, policy, |name| env::var_os(name))
    }

    fn over(
        libraries: &Libraries,
        run_directory: &Path,
        policy: Option<&SimPolicy>,
        existing: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let before = |name: &'static str, first: &Path| {
            let rest = existing(name).filter(|rest| !rest.is_empty());
            let mut list = OsString::from(first);
            if let Some(rest) = rest {
                list.push(":");
                list.push(rest);
            }
            (name, list)
        };
        let mut variables = vec![
            (streamsan_wire::RUN_DIR_VARIABLE, run_directory.into()),
            before("LD_PRELOAD", &libraries.runtime),
        ];
        if let Some(policy) = policy {
            variables.push(before("LD_LIBRARY_PATH", &libraries.sim_directory));
            variables.push(("STREAMSAN_SIM_POLICY", policy.to_string().into()));
        }
        Self { variables }
    }

    /// The variables and their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &OsStr)> {
        self.variables.iter().map(|(name, value)| (*name, value.as_os_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_lists_are_kept_behind_ours() {
        let libraries =
            Libraries { runtime: "/c/runtime.so".into(), sim_directory: "/c/sim".into() };
        let existing = |name: &str| (name == "LD_PRELOAD").then(|| OsString::from("/usr/lib/x.so"));
        let environment =
            Environment::over(&libraries, Path::new("/run/1"), Some(&SimPolicy::Lazy), existing);
        let variables: Vec<_> =
            environment.iter().map(|(n, v)| format!("{n}={}", v.to_string_lossy())).collect();
        assert_eq!(
            variables,
            [
                "STREAMSAN_RUN_DIR=/run/1",
                "LD_PRELOAD=/c/runtime.so:/usr/lib/x.so",
                "LD_LIBRARY_PATH=/c/sim",
                "STREAMSAN_SIM_POLICY=lazy",
            ]
        );
    }

    #[test]
    fn without_the_simulator_the_library_path_is_left_alone() {
        let libraries =
            Libraries { runtime: "/c/runtime.so".into(), sim_directory: "/c/sim".into() };
        let environment = Environment::over(&libraries, Path::new("/run/1"), None, |_| None);
        assert_eq!(environment.iter().count(), 2);
    }
}
