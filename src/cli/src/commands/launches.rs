//! Whether two runs of a program launched the same at the places that matter.
//!
//! Measuring changes timing, and a program may do something else then. The launches of the kernels
//! in question are compared by call site, over all processes and threads. Their order among threads is
//! no property of a program, so only their numbers count.

use crate::error::Error;
use std::collections::BTreeMap;
use std::path::Path;
use streamsan_model::{Action, CallStack, Entities, StackId, TraceItem};
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
            }
            _ => {}
        }
    }
    let mut launches = Launches::new();
    for ((kernel, stack), count) in found {
        let site = CallStack::of(&entities, stack).map(|stack| stack.site());
        *launches.entry((kernel, site.unwrap_or_default())).or_default() += count;
    }
    Ok(launches)
}

/// The first difference, in words.
pub(super) fn difference(first: &Launches, second: &Launches) -> Option<String> {
    let keys = first.keys().chain(second.keys());
    let count = |launches: &Launches, key| launches.get(key).copied().unwrap_or(0);
    let key = keys.into_iter().find(|key| count(first, key) != count(second, key))?;
    let (name, site) = key;
    let place = match site.is_empty() {
        true => String::new(),
        // The innermost of its frames.
        false => format!(" in {}", printable(site.split('\u{1e}').next().unwrap_or_default())),
    };
    let (before, after) = (count(first, key), count(second, key));
    let word = if before == 1 { "launch" } else { "launches" };
    Some(format!("{}{place}: {before} {word}, then {after}", kernel(name)))
}

#[cfg(test)]
mod tests {
    use super::{Launches, difference};

    fn launches(all: &[(&str, &str, u64)]) -> Launches {
        let key = |kernel: &str, site: &str| (kernel.to_owned(), site.to_owned());
        all.iter().map(|(kernel, site, count)| (key(kernel, site), *count)).collect()
    }

    #[test]
    fn differences_are_found_on_either_side() {
        let first = launches(&[("_Z4fillPf", "main", 3), ("sum", "", 1)]);
        assert_eq!(difference(&first, &first), None);
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
            assert_eq!(difference(&first, &second).as_deref(), Some(told));
        }
    }
}
