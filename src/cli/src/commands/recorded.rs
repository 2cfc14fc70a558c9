//! How a program was run, as its trace remembers it: directory, options, and the variables that decide
//! what CUDA does.

use crate::launch::RecordedEnvironment;
use crate::options::{HostAccesses, RunOptions, SimPolicy, Stacks, TorchAllocator};
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::path::PathBuf;
use streamsan_store::Meta;

/// Beginnings of the names of variables that are kept.
const KEPT: [&str; 4] = ["CUDA_", "NCCL_", "PYTORCH_", "TRITON_"];
/// Says nothing of the program.
const NOT_KEPT: &str = "CUDA_INJECTION64_PATH";
/// Keys of `meta`.
const VARIABLE: &str = "environment.";
const DIRECTORY: &str = "directory";
const STACKS: &str = "option.stacks";
const HOST_ACCESSES: &str = "option.host-accesses";
const TORCH_ALLOCATOR: &str = "option.torch-allocator";
const SIM: &str = "option.sim";

fn is_kept(name: &str) -> bool {
    name != NOT_KEPT && KEPT.iter().any(|prefix| name.starts_with(prefix))
}

/// The variables of this process that decide what CUDA does. What is no text is left out.
fn variables() -> BTreeMap<String, String> {
    let all = std::env::vars_os();
    let text =
        all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    text.filter(|(name, _)| is_kept(name)).collect()
}

/// The facts about this run that a trace remembers.
pub(super) fn remembered(options: &RunOptions) -> BTreeMap<String, String> {
    let named = |value: Option<clap::builder::PossibleValue>| {
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    };
    let variables = variables().into_iter();
    let mut rows: BTreeMap<String, String> =
        variables.map(|(name, value)| (format!("{VARIABLE}{name}"), value)).collect();
    let directory = std::env::current_dir().ok();
    let directory = directory.and_then(|directory| directory.into_os_string().into_string().ok());
    let optional = [
        (DIRECTORY, directory),
        (TORCH_ALLOCATOR, options.torch_allocator.map(|TorchAllocator::Async| "async".to_owned())),
        (SIM, options.sim.as_ref().map(ToString::to_string)),
    ];
    for (key, value) in optional {
        rows.extend(value.map(|value| (key.to_owned(), value)));
    }
    rows.insert(STACKS.to_owned(), named(options.stacks.to_possible_value()));
    rows.insert(HOST_ACCESSES.to_owned(), named(options.host_accesses.to_possible_value()));
    rows
}

/// How a program was run.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) directory: Option<PathBuf>,
    pub(super) stacks: Stacks,
    pub(super) host_accesses: HostAccesses,
    pub(super) torch_allocator: Option<TorchAllocator>,
    pub(super) sim: Option<SimPolicy>,
    variables: BTreeMap<String, String>,
}

impl Recorded {
    /// From a trace's facts. A trace that remembers nothing of it was recorded by the defaults, as far
    /// as anybody knows.
    pub(super) fn of(meta: &Meta) -> Self {
        let extra = |key: &str| meta.extra.get(key);
        let variables = meta.extra.iter().filter_map(|(key, value)| {
            let name = key.strip_prefix(VARIABLE).filter(|name| is_kept(name))?;
            Some((name.to_owned(), value.clone()))
        });
        let sim =
            extra(SIM).map(String::as_str).or_else(|| meta.driver.strip_prefix("simulated, "));
        Self {
            directory: extra(DIRECTORY).map(PathBuf::from),
            stacks: extra(STACKS).and_then(|v| Stacks::from_str(v, false).ok()).unwrap_or_default(),
            host_accesses: extra(HOST_ACCESSES)
                .and_then(|value| HostAccesses::from_str(value, false).ok())
                // The default of the versions that did not remember it.
                .unwrap_or(HostAccesses::Off),
            torch_allocator: extra(TORCH_ALLOCATOR).and_then(|value| value.parse().ok()),
            sim: sim.and_then(|policy| policy.parse().ok()),
            variables: variables.collect(),
        }
    }

    /// The variables that the environment of this process lacks or has too many of, by that of the
    /// recording.
    pub(super) fn environment(&self) -> RecordedEnvironment {
        differences(&self.variables, &variables())
    }
}

fn differences(
    recorded: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> RecordedEnvironment {
    let set = recorded.iter().filter(|(name, value)| now.get(*name) != Some(value));
    let unset = now.keys().filter(|name| !recorded.contains_key(*name));
    RecordedEnvironment {
        set: set.map(|(name, value)| (name.clone(), value.clone())).collect(),
        unset: unset.cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    fn meta(rows: &[(&str, &str)], driver: &str) -> Meta {
        let rows = rows.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Meta {
            tool_version: String::new(),
            started_at: DateTime::UNIX_EPOCH,
            command: Vec::new(),
            host: String::new(),
            driver: driver.to_owned(),
            extra: rows.collect(),
        }
    }

    #[test]
    fn a_trace_gives_back_how_its_program_was_run() {
        let rows = [
            ("directory", "/job"),
            ("option.stacks", "native"),
            ("option.host-accesses", "fence"),
            ("option.torch-allocator", "async"),
            ("option.sim", "starve:3"),
            ("environment.NCCL_DEBUG", "INFO"),
            ("environment.LD_PRELOAD", "/evil.so"),
        ];
        let recorded = Recorded::of(&meta(&rows, ""));
        assert_eq!(recorded.directory, Some(PathBuf::from("/job")));
        assert_eq!(recorded.stacks, Stacks::Native);
        assert_eq!(recorded.host_accesses, HostAccesses::Fence);
        assert_eq!(recorded.torch_allocator, Some(TorchAllocator::Async));
        assert_eq!(recorded.sim, Some(SimPolicy::Starve(3)));
        assert_eq!(recorded.variables.keys().collect::<Vec<_>>(), ["NCCL_DEBUG"]);
    }

    #[test]
    fn an_older_trace_tells_its_driver_only() {
        let recorded = Recorded::of(&meta(&[], "simulated, lazy"));
        assert_eq!(recorded.sim, Some(SimPolicy::Lazy));
        assert_eq!((recorded.directory, recorded.stacks), (None, Stacks::Auto));
        assert_eq!(recorded.host_accesses, HostAccesses::Off);
        assert_eq!(Recorded::of(&meta(&[], "NVRM version: 580")).sim, None);
    }

    #[test]
    fn differing_variables_are_named() {
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            pairs.collect::<BTreeMap<String, String>>()
        };
        let recorded = map(&[("CUDA_A", "1"), ("CUDA_B", "1"), ("CUDA_C", "1")]);
        let now = map(&[("CUDA_A", "1"), ("CUDA_B", "2"), ("CUDA_D", "1")]);
        let found = differences(&recorded, &now);
        let set = [("CUDA_B", "1"), ("CUDA_C", "1")];
        assert_eq!(found.set, set.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(found.unset, ["CUDA_D"]);
    }
}
