//! The time in records: processor ticks where they are dependable, which halves its cost.
//!
//! Producers write times in the unit that the control file names; the consumer turns ticks into
//! nanoseconds of `CLOCK_MONOTONIC` by pairs of both clocks that it takes itself over an ever
//! longer baseline.

use crate::control::ClockSource;
use crate::machine::{CLOCK_SOURCE, ticks};

/// The time for a record, in the unit of `source`.
#[inline]
pub fn read_clock(source: ClockSource) -> u64 {
    match source {
        ClockSource::Monotonic => monotonic_ns(),
        ClockSource::Ticks => ticks(),
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid clock and a writable time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether the kernel itself keeps time by the processor's ticks: then they run at one rate, on
/// all processors alike.
pub(crate) fn dependable_source() -> ClockSource {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match std::fs::read_to_string(path) {
        Ok(name) if name.trim() == CLOCK_SOURCE => ClockSource::Ticks,
        _ => ClockSource::Monotonic,
    }
}

/// Turns the times of records into nanoseconds.
#[derive(Debug)]
pub(crate) struct Calibration {
    source: ClockSource,
    first: (u64, u64),
    baseline_ns: u64,
    ns_per_tick: f64,
}

/// A first baseline: an error of some 20 ns in each pair makes 10 parts in a million.
const FIRST_BASELINE_NS: u64 = 2_000_000;

/// No need of a longer one: the error is below one part in a billion.
const LAST_BASELINE_NS: u64 = 60_000_000_000;

impl Calibration {
    /// Calibrates for some milliseconds.
    pub(crate) fn new(source: ClockSource) -> Self {
        let mut calibration = Self { source, first: pair(), baseline_ns: 0, ns_per_tick: 1.0 };
        if source == ClockSource::Ticks {
            std::thread::sleep(std::time::Duration::from_nanos(FIRST_BASELINE_NS));
            calibration.refine();
        }
        calibration
    }

    /// Takes a new pair once the baseline is twice as long.
    pub(crate) fn refine(&mut self) {
        if self.source != ClockSource::Ticks || self.baseline_ns >= LAST_BASELINE_NS {
            return;
        }
        let (ticks, ns) = pair();
        let baseline_ns = ns - self.first.1;
        if ticks > self.first.0 && baseline_ns >= 2 * self.baseline_ns {
            self.baseline_ns = baseline_ns;
            self.ns_per_tick = baseline_ns as f64 / (ticks - self.first.0) as f64;
        }
    }

    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) fn nanoseconds(&self, time: u64) -> u64 {
        match self.source {
            ClockSource::Monotonic => time,
            ClockSource::Ticks => {
                let ticks = time.wrapping_sub(self.first.0) as i64;
                self.first.1.saturating_add_signed((ticks as f64 * self.ns_per_tick) as i64)
            }
        }
    }
}

/// Both clocks at one moment: the closest of a few attempts.
fn pair() -> (u64, u64) {
    (0..8)
        .map(|_| {
            let before = ticks();
            let ns = monotonic_ns();
            let after = ticks();
            (after.wrapping_sub(before), (before + (after.wrapping_sub(before)) / 2, ns))
        })
        .min_by_key(|(width, _)| *width)
        .map(|(_, pair)| pair)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_monotonic_time() {
        let mut calibration = Calibration::new(dependable_source());
        for _ in 0..20 {
            let before = monotonic_ns();
            let time = calibration.nanoseconds(read_clock(calibration.source));
            let after = monotonic_ns();
            // Far coarser than the clocks: a wrong unit or a wrong origin is off by more.
            assert!(time + 1_000_000 > before && time < after + 1_000_000);
            std::thread::sleep(std::time::Duration::from_millis(1));
            calibration.refine();
        }
    }
}
