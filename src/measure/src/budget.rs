//! The share of a run that measuring may take.
//!
//! A kernel that is bound by memory or by its instructions takes ten to fifty times as long while it
//! is measured. So the time that measured launches take on the GPU is held against the time that has
//! passed: half of it, after an allowance that lets short programs be measured wholly. Kernels that
//! cost next to nothing are measured always, whatever others cost. A launch that is left out counts
//! as not measured; nothing is left out in silence.
//!
//! Only kernels that have a twin can be left out, since each launch of a patched kernel costs alike.
//!
//! Deliberately absent: clocks, which the caller reads.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// GPU time that measured launches may take before the share counts.
const ALLOWANCE: Duration = Duration::from_secs(1);
/// GPU time up to which a kernel is measured whatever others have cost.
const CHEAP: Duration = Duration::from_millis(20);
/// The part of the time that has passed which measured launches may take: `passed / SHARE`.
const SHARE: u32 = 2;

#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    launches: u32,
    /// Launches whose time is known, and their time.
    timed: u32,
    time: Duration,
}

impl Spent {
    /// The time of all launches, those that have not ended yet by the mean of the others.
    fn estimate(&self) -> Duration {
        match self.timed {
            0 => Duration::ZERO,
            timed => self.time.mul_f64(f64::from(self.launches) / f64::from(timed)),
        }
    }
}

/// The GPU time that measuring has taken, by kernel.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    kernels: HashMap<Arc<str>, Spent>,
}

impl Budget {
    /// Whether a launch of the kernel is to be measured, when so much time has passed since the first
    /// one was. Counts it if so.
    pub(crate) fn takes(&mut self, kernel: &Arc<str>, passed: Duration) -> bool {
        let total: Duration = self.kernels.values().map(Spent::estimate).sum();
        let own = self.kernels.entry(Arc::clone(kernel)).or_default();
        let takes = own.estimate() <= CHEAP || total <= ALLOWANCE + passed / SHARE;
        own.launches += u32::from(takes);
        takes
    }

    /// A measured launch of the kernel has taken so long.
    pub(crate) fn took(&mut self, kernel: &Arc<str>, time: Duration) {
        let own = self.kernels.entry(Arc::clone(kernel)).or_default();
        own.timed += 1;
        own.time += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Launches of 30 ms each, one a step; a step takes 2 ms without measuring.
    #[test]
    fn a_long_run_takes_less_than_three_times_its_time() {
        let (bare, measured) = (Duration::from_millis(2), Duration::from_millis(30));
        let kernel: Arc<str> = "product".into();
        let mut budget = Budget::default();
        let mut passed = Duration::ZERO;
        let mut count = 0;
        for _ in 0..5000 {
            if budget.takes(&kernel, passed) {
                budget.took(&kernel, measured);
                passed += measured;
                count += 1;
            }
            passed += bare;
        }
        assert!(passed < 3 * 5000 * bare, "{passed:?}");
        assert!(count > 300, "{count}");
    }

    #[test]
    fn short_programs_and_cheap_kernels_are_measured_wholly() {
        let (costly, cheap): (Arc<str>, Arc<str>) = ("costly".into(), "cheap".into());
        let mut budget = Budget::default();
        for _ in 0..33 {
            assert!(budget.takes(&costly, Duration::ZERO));
            budget.took(&costly, Duration::from_millis(30));
        }
        assert!(budget.takes(&costly, Duration::ZERO), "the last one within the allowance");
        budget.took(&costly, Duration::from_millis(30));
        assert!(!budget.takes(&costly, Duration::ZERO));
        for _ in 0..100 {
            assert!(budget.takes(&cheap, Duration::ZERO));
            budget.took(&cheap, Duration::from_micros(100));
        }
    }

    #[test]
    fn launches_that_have_not_ended_count_by_the_mean() {
        let kernel: Arc<str> = "product".into();
        let mut budget = Budget::default();
        assert!(budget.takes(&kernel, Duration::ZERO));
        budget.took(&kernel, Duration::from_millis(100));
        let taken = (0..100).filter(|_| budget.takes(&kernel, Duration::ZERO)).count();
        assert_eq!(taken, 10, "a second of them, one more than is known");
    }
}
