//! The entry points of the driver that were used.

use super::resolve::Resolver;
use streamsan_model::{HostAccesses, IncompleteReason, Unwatched};
use streamsan_store::{Coverage, EntryPoint, Treatment};
use streamsan_wire::{
    Effect, LeftAlone, NotFenced, ProcessInfo, RunDirectory, Unwatched as Stopped, effect_of,
    find_entry,
};

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
            host_accesses: run.has_fences().then(|| fenced(processes)),
            ..Coverage::default()
        },
        reasons,
    )
}

/// The fence counts of all processes together.
fn fenced(processes: &[ProcessInfo]) -> HostAccesses {
    let of = |process: &ProcessInfo| {
        let fences = &process.fences;
        let not_fenced =
            NotFenced::ALL.map(|why| (why.description(), fences.not_fenced[why as usize]));
        let left_alone = LeftAlone::ALL.map(|why| (why.description(), fences.alone[why as usize]));
        HostAccesses {
            operations: fences.qualified,
            fenced: fences.fenced,
            in_part: fences.partly,
            not_fenced: counted(&not_fenced),
            left_alone: counted(&left_alone),
            unwatched: fences.stopped.map(|reason| match reason {
                Stopped::NoLibrary => Unwatched::NoLibrary,
                Stopped::OwnHandler => Unwatched::OwnHandler,
                Stopped::DriverTouches => Unwatched::DriverTouches,
                Stopped::Refused => Unwatched::Refused,
            }),
        }
    };
    processes.iter().map(of).reduce(HostAccesses::joined).unwrap_or_default()
}

fn counted(reasons: &[(&str, u64)]) -> Vec<(String, u64)> {
    let counted = reasons.iter().filter(|(_, count)| *count > 0);
    counted.map(|(reason, count)| ((*reason).to_owned(), *count)).collect()
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
