//! Where calls come out of the merge, one after the other.

use crate::merge::Ready;
use std::time::{Duration, Instant};

/// How long the first launch of a kernel waits for the kernel's code, up to which share of the
/// fullest ring, and with how many others behind it.
const CODE_PATIENCE: Duration = Duration::from_millis(10);
const QUIET: f64 = 0.05;
const MOST_BEHIND: usize = 4096;

/// The other work that is pending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pressure {
    /// The share of the fullest ring that is in use, from 0 to 1.
    pub(crate) rings: f64,
    /// Calls that the merge holds.
    pub(crate) behind: usize,
}

impl Pressure {
    fn is_low(self) -> bool {
        self.rings < QUIET && self.behind < MOST_BEHIND
    }
}

/// The last place before resolution. A launch whose code is being read waits here for a moment, so
/// that its accesses are right from the beginning.
#[derive(Debug, Default)]
pub(crate) struct Entrance {
    waiting: Option<Ready>,
}

impl Entrance {
    /// The launch that waits here.
    pub(crate) fn take(&mut self) -> Option<Ready> {
        self.waiting.take()
    }

    /// Lets `ready` through, or keeps it: a launch whose code was `asked` for a moment ago waits where
    /// nothing else is urgent.
    pub(crate) fn pass(
        &mut self,
        ready: Ready,
        asked: Option<Instant>,
        now: Instant,
        pressure: impl FnOnce() -> Pressure,
    ) -> Option<Ready> {
        let is_new = asked.is_some_and(|asked| now < asked + CODE_PATIENCE);
        if is_new && pressure().is_low() {
            self.waiting = Some(ready);
            return None;
        }
        Some(ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Origin;
    use crate::merge::FirstLaunch;
    use streamsan_wire::{ProcessKey, ThreadKey};

    const NONE: Pressure = Pressure { rings: 0.0, behind: 0 };

    fn ready() -> Ready {
        let origin = Origin { process: ProcessKey(0), thread: ThreadKey(0), tid: 0 };
        let (name, params) = ("kernel".into(), None);
        Ready::Kernel(FirstLaunch { origin, function: 7, name, params, home: 0 })
    }

    #[test]
    fn a_launch_waits_for_its_code_until_its_patience_ends() {
        let (mut entrance, asked) = (Entrance::default(), Instant::now());
        assert!(entrance.pass(ready(), Some(asked), asked, || NONE).is_none());
        let waiting = entrance.take().expect("it waits");
        let soon = asked + CODE_PATIENCE / 2;
        assert!(entrance.pass(waiting, Some(asked), soon, || NONE).is_none());
        let waiting = entrance.take().expect("it still waits");
        assert!(entrance.pass(waiting, Some(asked), asked + CODE_PATIENCE, || NONE).is_some());
        assert!(entrance.take().is_none());
    }

    #[test]
    fn nothing_waits_where_rings_fill_or_others_stand_behind() {
        let (mut entrance, now) = (Entrance::default(), Instant::now());
        let full = Pressure { rings: QUIET, ..NONE };
        let many = Pressure { behind: MOST_BEHIND, ..NONE };
        for pressure in [full, many] {
            let passed = entrance.pass(ready(), Some(now), now, || pressure);
            assert!(passed.is_some(), "{pressure:?}");
        }
    }

    #[test]
    fn what_is_not_asked_for_passes() {
        let (mut entrance, now) = (Entrance::default(), Instant::now());
        let passed = entrance.pass(ready(), None, now, || panic!("nobody needs to look"));
        assert!(passed.is_some() && entrance.take().is_none());
    }
}
