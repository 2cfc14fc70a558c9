//! When a program that makes no driver call is to be granted progress.
//!
//! A program may spin on pinned memory or sleep until a host function wakes it. Neither calls the
//! driver, so nothing would ever run. Wall time alone cannot tell such a program from one that was
//! merely descheduled: spinning shows as processor time, sleeping as every thread asleep.

use std::time::Duration;

/// Processor time without a driver call after which a program counts as spinning.
const SPINNING: Duration = Duration::from_millis(100);
/// Consecutive samples with every thread asleep after which it counts as blocked.
const ASLEEP_SAMPLES: u32 = 10;

/// Time between two samples.
pub(crate) const SAMPLE: Duration = Duration::from_millis(5);

/// Watches one stretch of time without driver calls.
#[derive(Debug, Default)]
pub(crate) struct Idleness {
    calls: Option<u64>,
    cpu_at_last_call: Duration,
    asleep: u32,
    granted: bool,
}

impl Idleness {
    pub(crate) const SAMPLE: Duration = SAMPLE;

    /// Takes a sample and says whether one operation may run now: the number of driver calls so
    /// far, whether one is in progress, the processor time used so far, and a probe for whether
    /// the program's threads all sleep.
    pub(crate) fn sample(
        &mut self,
        calls: u64,
        in_call: bool,
        cpu: Duration,
        asleep: impl FnOnce() -> bool,
    ) -> bool {
        if in_call || self.calls != Some(calls) {
            *self = Idleness {
                calls: (!in_call).then_some(calls),
                cpu_at_last_call: cpu,
                asleep: 0,
                granted: false,
            };
            return false;
        }
        // Once the program is known to wait, it waits until it calls again.
        if !self.granted {
            self.asleep = if asleep() { self.asleep + 1 } else { 0 };
            let spun = cpu.saturating_sub(self.cpu_at_last_call);
            self.granted = self.asleep >= ASLEEP_SAMPLES || spun >= SPINNING;
        }
        self.granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_descheduled_program_is_not_idle() {
        let mut idle = Idleness::default();
        // Runnable, no call, but no processor time either: nothing is granted however long.
        assert!((0..1000).all(|_| !idle.sample(7, false, 5 * MS, || false)));
    }

    #[test]
    fn spinning_and_sleeping_are_granted_until_the_next_call() {
        let mut spin = Idleness::default();
        assert!(!spin.sample(7, false, Duration::ZERO, || false));
        assert!(!spin.sample(7, false, 50 * MS, || false));
        assert!(spin.sample(7, false, 150 * MS, || false));
        assert!(spin.sample(7, false, 151 * MS, || false));
        assert!(!spin.sample(8, false, 151 * MS, || false));
        assert!(!spin.sample(8, false, 152 * MS, || false));

        let mut sleep = Idleness::default();
        // The watchdog's question to the system: every thread of the program sleeps.
        let asleep = || true;
        let granted = (0..20).filter(|_| sleep.sample(1, false, MS, asleep)).count();
        assert!(granted > 0 && granted < 20);
    }

    #[test]
    fn a_call_in_progress_is_never_idle() {
        let mut idle = Idleness::default();
        // Even where every thread sleeps: the driver itself may be waiting.
        let asleep = || true;
        assert!((0..1000).all(|step| !idle.sample(7, true, step * MS, asleep)));
    }
}
