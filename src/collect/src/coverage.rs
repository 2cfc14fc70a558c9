//! The entry points of the driver that were used.

use super::resolve::Resolver;
use streamsan_model::IncompleteReason;
use streamsan_store::{Coverage, EntryPoint, Treatment};
use streamsan_wire::{Effect, RunDirectory, effect_of, find_entry};

/// Coverage of a run and the reasons that follow from it and from its processes.
pub(super) fn conclude(
    run: &RunDirectory,
    resolver: &Resolver,
    unreadable: u64,
) -> (Coverage, Vec<IncompleteReason>) {
    let mut reasons = resolver.gaps().reasons();
    let mut entry_points = Vec::new();
    for (name, calls) in run.coverage() {
        let treatment = treatment(&name);
        if treatment == Treatment::NotUnderstood {
            let api = name.clone();
            reasons.push(IncompleteReason::NotUnderstood { api, calls });
        }
        entry_points.push(EntryPoint { name, treatment, calls });
    }
    if run.unknown_overflow() > 0 {
        reasons.push(IncompleteReason::NotUnderstood {
            api: "(further unknown entry points)".to_owned(),
            calls: run.unknown_overflow(),
        });
    }
    let processes = run.processes();
    let lost: u64 = processes.iter().map(|p| p.dropped + u64::from(p.corrupted)).sum();
    let dropped = lost + u64::from(run.attach_failures()) + unreadable;
    if dropped > 0 {
        reasons.push(IncompleteReason::DroppedRecords(dropped));
    }
    if processes.is_empty() {
        reasons.push(IncompleteReason::NotAttached);
    }
    (
        Coverage {
            entry_points,
            dropped,
            kernels: resolver.gaps().kernels(),
            ..Coverage::default()
        },
        reasons,
    )
}

fn treatment(name: &str) -> Treatment {
    match find_entry(name).and_then(|entry| entry.api()) {
        Some(api) if Resolver::understands(api) => Treatment::Recorded,
        Some(_) => Treatment::NotUnderstood,
        None => match effect_of(name) {
            Effect::Inert => Treatment::Harmless,
            Effect::OrdersOrTouchesMemory | Effect::Unknown => Treatment::NotUnderstood,
        },
    }
}
