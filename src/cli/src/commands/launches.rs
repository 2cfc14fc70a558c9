//! Whether two runs of a program launched the same at the places that matter.
//!
//! Measuring changes timing, and a program may do something else then. The launches of the kernels
//! in question are compared by call site, over all processes and threads. Their order among threads is
//! no property of a program, so only their numbers count.
//!
//! Where a kernel decides a finding, the numbers must be the same: a launch that did not come may be
//! the one that races. Where a kernel only keeps the run incomplete, the same places suffice: an
//! autotuner launches a kernel as often as time allows, and the second run knows the bytes of all
//! of its own launches.

use crate::error::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use streamsan_model::{Action, CallStack, Entities, GraphId, NodeAction, StackId, TraceItem};
use streamsan_names::{kernel, printable};
use streamsan_report::Open;
use streamsan_store::Reader;

/// Numbers of launches by kernel and call site; a call without a stack has an empty one.
type Launches = BTreeMap<(String, String), u64>;

/// The launches in a trace of the kernels of what is open.
pub(super) fn launches(trace: &Path, open: &Open) -> Result<Launches, Error> {
    let reader = Reader::open(trace)?;
    let mut entities = Entities::default();
    // Frames have their lines at the end of a trace.
    let mut found: BTreeMap<(String, Option<StackId>), u64> = BTreeMap::new();
    let mut graphs: BTreeMap<(GraphId, Option<StackId>), u64> = BTreeMap::new();
    for item in reader.items() {
        match item? {
            TraceItem::Entity(entity) => entities.declare(entity),
            TraceItem::Operation(operation) if operation.status.is_success() => {
                if let Action::Launch { kernel, .. } = operation.action
                    && let Some(kernel) = entities.kernel(kernel)
                    && open.has_kernel(&kernel.name)
                {
                    *found.entry((kernel.name.clone(), operation.stack)).or_default() += 1;
                }
                if let Action::GraphLaunch { graph, .. } = operation.action {
                    *graphs.entry((graph, operation.stack)).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    for ((graph, stack), count) in graphs {
        for name in kernels_in(&entities, graph, open) {
            *found.entry((name, stack)).or_default() += count;
        }
    }
    let mut launches = Launches::new();
    for ((kernel, stack), count) in found {
        let site = CallStack::of(&entities, stack).map(|stack| stack.site());
        *launches.entry((kernel, site.unwrap_or_default())).or_default() += count;
    }
    Ok(launches)
}

/// The kernels of what is open in a graph and the graphs inside it, once for each node.
fn kernels_in(entities: &Entities, graph: GraphId, open: &Open) -> Vec<String> {
    let (mut left, mut seen, mut kernels) = (vec![graph], BTreeSet::new(), Vec::new());
    while let Some(graph) = left.pop().and_then(|id| entities.graph(id)) {
        if !seen.insert(graph.id) {
            continue;
        }
        for node in graph.nodes.iter().filter(|node| node.enabled) {
            match &node.action {
                NodeAction::Kernel { kernel, .. } => kernels.extend(
                    entities
                        .kernel(*kernel)
                        .filter(|kernel| open.has_kernel(&kernel.name))
                        .map(|kernel| kernel.name.clone()),
                ),
                NodeAction::Child { graph } => left.push(*graph),
                NodeAction::Conditional { bodies, .. } => left.extend(bodies),
                _ => {}
            }
        }
    }
    kernels
}

/// How two runs differ in their launches.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// The second run made other launches.
    Other(String),
    /// The second run launched the same kernels at the same places, and some of them more often or
    /// less often.
    OtherNumbers(String),
}

/// The first difference that matters most, in words. `is_exact` tells for which kernels the numbers
/// of launches must be the same.
pub(super) fn difference(
    first: &Launches,
    second: &Launches,
    is_exact: impl Fn(&str) -> bool,
) -> Option<Difference> {
    let count =
        |launches: &Launches, key: &(String, String)| launches.get(key).copied().unwrap_or(0);
    let keys = || first.keys().chain(second.keys());
    let is_other = |key: &&(String, String)| {
        let (before, after) = (count(first, key), count(second, key));
        before != after && (before == 0 || after == 0 || is_exact(&key.0))
    };
    if let Some(key) = keys().find(is_other) {
        return Some(Difference::Other(in_words(key, count(first, key), count(second, key))));
    }
    let key = keys().find(|key| count(first, key) != count(second, key))?;
    Some(Difference::OtherNumbers(in_words(key, count(first, key), count(second, key))))
}

/// `fill in main: 3 launches, then 2`.
fn in_words(key: &(String, String), before: u64, after: u64) -> String {
    let (name, site) = key;
    let place = match site.is_empty() {
        true => String::new(),
        // The innermost of its frames.
        false => format!(" in {}", printable(site.split('\u{1e}').next().unwrap_or_default())),
    };
    let word = if before == 1 { "launch" } else { "launches" };
    format!("{}{place}: {before} {word}, then {after}", kernel(name))
}

#[cfg(test)]
mod tests {
    use super::{Difference, Launches, difference};

    fn launches(all: &[(&str, &str, u64)]) -> Launches {
        let key = |kernel: &str, site: &str| (kernel.to_owned(), site.to_owned());
        all.iter().map(|(kernel, site, count)| (key(kernel, site), *count)).collect()
    }

    #[test]
    fn numbers_count_where_a_finding_rests_on_them() {
        let first = launches(&[("fill", "main", 3), ("sum", "", 1)]);
        let second = launches(&[("fill", "main", 2), ("sum", "", 1)]);
        let told = "fill in main: 3 launches, then 2".to_owned();
        let of = |exact: &str| difference(&first, &second, |kernel| kernel == exact);
        assert_eq!(of("fill"), Some(Difference::Other(told.clone())));
        assert_eq!(of("sum"), Some(Difference::OtherNumbers(told)));
        // A kernel that one of the runs does not launch there is another program.
        let without = launches(&[("sum", "", 1)]);
        let told = Difference::Other("fill in main: 3 launches, then 0".to_owned());
        assert_eq!(difference(&first, &without, |_| false), Some(told));
    }

    #[test]
    fn differences_are_found_on_either_side() {
        let first = launches(&[("_Z4fillPf", "main", 3), ("sum", "", 1)]);
        assert_eq!(difference(&first, &first, |_| true), None);
        for (second, told) in [
            (
                launches(&[("_Z4fillPf", "main", 2), ("sum", "", 1)]),
                "fill in main: 3 launches, then 2",
            ),
            (launches(&[("_Z4fillPf", "main", 3)]), "sum: 1 launch, then 0"),
            (
                launches(&[("_Z4fillPf", "main", 3), ("sum", "", 1), ("sum", "other", 4)]),
                "sum in other: 0 launches, then 4",
            ),
        ] {
            let told = Difference::Other(told.to_owned());
            assert_eq!(difference(&first, &second, |_| true), Some(told));
        }
    }
}
