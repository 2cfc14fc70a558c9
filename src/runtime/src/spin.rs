//! A spinning lock. Its holders never call the driver and never wait for anything.

use core::sync::atomic::{AtomicBool, Ordering};

/// Looks without giving the processor away.
const SPINS: u32 = 64;

/// The lock.
pub(crate) struct Spin(AtomicBool);

impl Spin {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Waits for it.
    pub(crate) fn take(&self) -> Held<'_> {
        let mut tries = 0;
        while self
            .0
            .compare_exchange_weak(false, true, Ordering::SeqCst, Ordering::Relaxed)
            .is_err()
        {
            tries += 1;
            if tries < SPINS {
                core::hint::spin_loop();
            } else {
                // SAFETY: no preconditions.
                unsafe { libc::sched_yield() };
            }
        }
        Held(&self.0)
    }

    /// Takes it if nobody holds it.
    pub(crate) fn try_take(&self) -> Option<Held<'_>> {
        let free = self.0.compare_exchange(false, true, Ordering::SeqCst, Ordering::Relaxed);
        free.is_ok().then(|| Held(&self.0))
    }

    /// In a forked child: its holder may not exist here.
    pub(crate) fn reset(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// The lock is held as long as this lives.
pub(crate) struct Held<'a>(&'a AtomicBool);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}
