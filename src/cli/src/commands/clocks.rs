//! The clocks of traces: what a trace remembers of them, and how several traces are laid beside each
//! other by them.
//!
//! Times of calls are of the kernel's monotonic clock, which counts from the boot of a machine and is
//! the same in all of its processes. Traces of one boot are aligned by it exactly. Others are aligned
//! by the wall clock, of which a trace has one reading together with one of the monotonic clock: as
//! good as the clocks of the machines agree.
//!
//! Deliberately absent: any order between traces. Host times say when calls were made, not what waited
//! for what.

use std::collections::{BTreeMap, BTreeSet};
use streamsan_names::printable;
use streamsan_store::{Error, Meta, Reader};
use streamsan_wire::monotonic_ns;

/// Keys of `meta`.
const MONOTONIC: &str = "clock.monotonic_ns";
const BOOT: &str = "clock.boot";
const RANK: &str = "rank";
const LOCAL_RANK: &str = "local_rank";

/// Variables by which launchers tell a process its number in the job, and on its machine.
const RANKS: [&str; 4] = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];
const LOCAL_RANKS: [&str; 4] =
    ["LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"];

/// By how much the begins of recordings may differ from those of their calls, on clocks of one
/// machine that was not booted between them: programs that load for longer are rare.
const STARTUP_NS: i128 = 120_000_000_000;

/// What a trace remembers of the clocks and the job; to be asked where `Meta::started_at` is.
pub(super) fn remembered() -> BTreeMap<String, String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let number = |names: [&str; 4]| {
        let mut values = names.iter().filter_map(|name| std::env::var(name).ok());
        values.find_map(|value| value.trim().parse::<u32>().ok()).map(|rank| rank.to_string())
    };
    let facts = [
        (MONOTONIC, Some(monotonic_ns().to_string())),
        (BOOT, boot.map(|boot| boot.trim().to_owned())),
        (RANK, number(RANKS)),
        (LOCAL_RANK, number(LOCAL_RANKS)),
    ];
    facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// What a trace knows of its clocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clocks {
    host: String,
    boot: Option<String>,
    rank: Option<String>,
    local_rank: Option<String>,
    /// Where the times of the trace begin on the monotonic clock.
    base: Option<u64>,
    /// One reading of the wall clock, and of the monotonic clock at the same moment.
    wall: i128,
    monotonic: Option<u64>,
}

impl Clocks {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// The trace cannot be read.
    pub(super) fn of(reader: &Reader) -> Result<Self, Error> {
        Ok(Self::of_facts(&reader.meta()?, reader.clock_base()?))
    }

    fn of_facts(meta: &Meta, base: Option<u64>) -> Self {
        let fact = |key| meta.extra.get(key).filter(|value| !value.is_empty()).cloned();
        let wall = meta.started_at;
        let wall = i128::from(wall.timestamp()) * 1_000_000_000
            + i128::from(wall.timestamp_subsec_nanos());
        Self {
            host: meta.host.clone(),
            boot: fact(BOOT),
            rank: fact(RANK),
            local_rank: fact(LOCAL_RANK),
            base,
            wall,
            monotonic: fact(MONOTONIC).and_then(|value| value.parse().ok()),
        }
    }

    /// What tells the trace from others of a job.
    pub(super) fn about(&self) -> String {
        let rank = self.rank.as_ref().map(|rank| match &self.local_rank {
            Some(local) if local != rank => format!("rank {rank} (local {local})"),
            _ => format!("rank {rank}"),
        });
        let host = (!self.host.is_empty()).then(|| format!("on {}", self.host));
        let words: Vec<String> = rank.into_iter().chain(host).collect();
        printable(&words.join(" ")).into_owned()
    }

    /// Where the times of the trace begin on the wall clock.
    fn on_wall(&self) -> Option<i128> {
        let base = i128::from(self.base?);
        // Without a pair of readings, the first call was made as the recording began.
        let since = self.monotonic.map_or(0, |at| base - i128::from(at));
        Some(self.wall + since)
    }
}

/// Where each trace begins on a clock that all of them share, and which one that is; `None` for a
/// trace without times.
pub(super) fn align(traces: &[Clocks]) -> (Vec<Option<i64>>, String) {
    let timed: Vec<&Clocks> = traces.iter().filter(|clocks| clocks.base.is_some()).collect();
    let boots: BTreeSet<&Option<String>> = timed.iter().map(|clocks| &clocks.boot).collect();
    let hosts: BTreeSet<&str> = timed.iter().map(|clocks| clocks.host.as_str()).collect();
    let is_one_boot = match boots.iter().next() {
        Some(Some(_)) => boots.len() == 1,
        // Traces that do not remember the boot: of one host, unless their clocks tell otherwise.
        _ => hosts.len() == 1 && !hosts.contains("") && agree(&timed),
    };
    let begins = |at: &dyn Fn(&Clocks) -> Option<i128>| -> Vec<Option<i64>> {
        let first = timed.iter().filter_map(|clocks| at(clocks)).min().unwrap_or(0);
        let begin = |clocks: &Clocks| i64::try_from(at(clocks)? - first).ok();
        traces.iter().map(begin).collect()
    };
    if is_one_boot {
        let words = "by the monotonic clock of their machine".to_owned();
        return (begins(&|clocks| clocks.base.map(i128::from)), words);
    }
    let rough = timed.iter().any(|clocks| clocks.monotonic.is_none());
    let words = match (timed.is_empty(), rough) {
        (true, _) => "by their begins: they hold no host times".to_owned(),
        (false, false) => "by the wall clocks of their machines".to_owned(),
        (false, true) => "by when their recordings began, to a few seconds".to_owned(),
    };
    (begins(&Clocks::on_wall), words)
}

/// Whether the monotonic clocks of traces may be one: they differ as the begins of the recordings do.
fn agree(traces: &[&Clocks]) -> bool {
    let offsets = traces.iter().filter_map(|clocks| Some(clocks.wall - i128::from(clocks.base?)));
    let (least, most) = offsets.fold((i128::MAX, i128::MIN), |(least, most), offset| {
        (least.min(offset), most.max(offset))
    });
    most.saturating_sub(least) < STARTUP_NS
}

#[cfg(test)]
mod tests {
    use super::{Clocks, align};

    const SECOND: i128 = 1_000_000_000;

    fn clocks(host: &str, boot: Option<&str>, base: u64, wall: i128) -> Clocks {
        Clocks {
            host: host.to_owned(),
            boot: boot.map(str::to_owned),
            base: Some(base),
            wall,
            monotonic: boot.map(|_| base - 500),
            ..Clocks::default()
        }
    }

    #[test]
    fn traces_of_one_boot_share_its_clock() {
        // Host names differ between containers; wall clocks may be set in between.
        let traces = [
            clocks("a", Some("x"), 1_000, 0),
            clocks("b", Some("x"), 4_000, 900 * SECOND),
            Clocks::default(),
        ];
        let (begins, words) = align(&traces);
        assert_eq!(begins, [Some(0), Some(3_000), None]);
        assert!(words.contains("monotonic"), "{words}");
    }

    #[test]
    fn traces_of_several_machines_are_aligned_by_wall_clocks() {
        let traces = [
            clocks("a", Some("x"), 9_000_000, 7 * SECOND),
            clocks("b", Some("y"), 1_000, 7 * SECOND + 250),
        ];
        let (begins, words) = align(&traces);
        assert_eq!(begins, [Some(0), Some(250)]);
        assert!(words.contains("wall clocks"), "{words}");
    }

    #[test]
    fn traces_that_remember_no_boot_are_believed_with_care() {
        let second = 1_000_000_000_u64;
        let at = |base: u64, wall| clocks("a", None, base, wall);
        let (begins, words) = align(&[at(second, 100 * SECOND), at(3 * second, 101 * SECOND)]);
        assert_eq!(begins, [Some(0), Some(2_000_000_000)]);
        assert!(words.contains("monotonic"), "{words}");
        // The machine was booted between them.
        let (begins, words) = align(&[at(90_000 * second, 0), at(3 * second, 5_000 * SECOND)]);
        assert_eq!(begins, [Some(0), Some(5_000_000_000_000)]);
        assert!(words.contains("a few seconds"), "{words}");
    }

    #[test]
    fn ranks_and_hosts_tell_traces_apart() {
        let mut trace = clocks("node\u{1b}7", Some("x"), 1_000, 0);
        assert_eq!(trace.about(), "on node\\x1b7");
        trace.rank = Some("5".to_owned());
        trace.local_rank = Some("1".to_owned());
        assert_eq!(trace.about(), "rank 5 (local 1) on node\\x1b7");
    }
}
