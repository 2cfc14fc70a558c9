//! The end of a thread, however it ends: by the destructor of a thread-specific key.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

/// A destructor of thread-specific data.
type Destructor = unsafe extern "C" fn(*mut c_void);

/// The functions to call at the end of the threads that are watched.
///
/// Other destructors may still do something, and the order of destructors is not specified (POSIX,
/// `pthread_key_create`). The value of a thread therefore counts the rounds of destructors, so that
/// the end can be told in a late one.
#[derive(Debug)]
pub struct ThreadEnd {
    /// 0 until created, else the key plus 1.
    key: AtomicU32,
    destructor: Destructor,
}

impl ThreadEnd {
    /// `destructor` lies in a library that is never unloaded, and begins with
    /// [`ThreadEnd::is_before`].
    pub const fn new(destructor: Destructor) -> Self {
        Self { key: AtomicU32::new(0), destructor }
    }

    /// Watches the calling thread, if its key is one that the caller can take.
    pub fn watch(&self, takes: impl FnOnce(libc::pthread_key_t) -> bool) {
        if let Some(key) = self.key().filter(|key| takes(*key)) {
            // SAFETY: a key that was created and is never deleted.
            unsafe { libc::pthread_setspecific(key, ptr::without_provenance(1)) };
        }
    }

    /// Whether it is a round before `last`, counted from 1: the destructor then comes again. glibc
    /// makes four (`PTHREAD_DESTRUCTOR_ITERATIONS`).
    pub fn is_before(&self, round: *mut c_void, last: usize) -> bool {
        let round = round as usize;
        if round >= last {
            return false;
        }
        if let Some(key) = self.key() {
            // SAFETY: a key that was created and is never deleted.
            unsafe { libc::pthread_setspecific(key, ptr::without_provenance(round + 1)) };
        }
        true
    }

    fn key(&self) -> Option<libc::pthread_key_t> {
        let known = self.key.load(Ordering::Acquire);
        if known != 0 {
            return Some(known - 1);
        }
        let mut key = 0;
        // SAFETY: a writable key, and a destructor in a library that is never unloaded.
        if unsafe { libc::pthread_key_create(&mut key, Some(self.destructor)) } != 0 {
            return None;
        }
        match self.key.compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(key),
            Err(other) => {
                // SAFETY: created above and not used.
                unsafe { libc::pthread_key_delete(key) };
                Some(other - 1)
            }
        }
    }
}
