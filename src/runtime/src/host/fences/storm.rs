//! Too many touches at once: nothing is fenced for a while, so that a program whose host and device
//! share memory all the time runs on.

use core::sync::atomic::{AtomicU64, Ordering};

use streamsan_wire::monotonic_ns;

/// Touches within [`WINDOW`] that are too many.
const MOST: u64 = 1000;
const WINDOW: u64 = 1_000_000_000;
/// The first pause, doubled each time, up to the longest. All in nanoseconds.
const PAUSE: u64 = 1_000_000_000;
const LONGEST: u64 = 64 * PAUSE;

static BEGAN: AtomicU64 = AtomicU64::new(0);
static TOUCHES: AtomicU64 = AtomicU64::new(0);
static UNTIL: AtomicU64 = AtomicU64::new(0);
static NEXT_PAUSE: AtomicU64 = AtomicU64::new(PAUSE);

/// A fence was touched.
pub(super) fn count() {
    TOUCHES.fetch_add(1, Ordering::Relaxed);
}

/// Whether nothing is to be fenced now.
#[inline]
pub(super) fn rages() -> bool {
    let touches = TOUCHES.load(Ordering::Relaxed);
    if touches == 0 {
        return false;
    }
    let now = monotonic_ns();
    if now < UNTIL.load(Ordering::Relaxed) {
        return true;
    }
    let began = BEGAN.load(Ordering::Relaxed);
    if touches > MOST && now.saturating_sub(began) < WINDOW {
        let pause = NEXT_PAUSE.load(Ordering::Relaxed);
        NEXT_PAUSE.store((pause * 2).min(LONGEST), Ordering::Relaxed);
        UNTIL.store(now.saturating_add(pause), Ordering::Relaxed);
        TOUCHES.store(0, Ordering::Relaxed);
        return true;
    }
    if now.saturating_sub(began) >= WINDOW {
        BEGAN.store(now, Ordering::Relaxed);
        TOUCHES.store(1, Ordering::Relaxed);
    }
    false
}
