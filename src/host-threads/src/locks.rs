//! Mutexes, read-write locks, spin locks, condition variables, semaphores, barriers.
//!
//! The object of an edge is the address of what was locked. A reader's unlock releases too: the
//! writer that comes next knows what the reader did.

use core::ffi::{c_int, c_void};
use core::mem::transmute;

use streamsan_wire::HostCall;

use crate::{real, tell};

/// POSIX: what a robust mutex answers whose owner died; the lock is held all the same.
const OWNER_DIED: c_int = libc::EOWNERDEAD;

macro_rules! acquire {
    ($($name:ident ($object:ident $(, $arg:ident: $kind:ty)*) $call:ident when $got:expr;)*) => {$(
        /// # Safety
        /// As POSIX documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($object: *mut c_void $(, $arg: $kind)*) -> c_int {
            type Function = unsafe extern "C-unwind" fn(*mut c_void $(, $kind)*) -> c_int;
            // SAFETY: the C library's function of this name, with the program's arguments.
            let result = unsafe {
                let real: Function = transmute(real!(stringify!($name)));
                real($object $(, $arg)*)
            };
            let got: fn(c_int) -> bool = $got;
            if got(result) {
                tell(HostCall::$call, $object as u64);
            }
            result
        }
    )*};
}

fn locked(result: c_int) -> bool {
    result == 0 || result == OWNER_DIED
}

fn zero(result: c_int) -> bool {
    result == 0
}

type Time = *const libc::timespec;

acquire! {
    pthread_mutex_lock(object) MutexAcquired when locked;
    pthread_mutex_trylock(object) MutexAcquired when locked;
    pthread_mutex_timedlock(object, until: Time) MutexAcquired when locked;
    pthread_mutex_clocklock(object, clock: c_int, until: Time) MutexAcquired when locked;
    pthread_rwlock_rdlock(object) RwlockAcquired when zero;
    pthread_rwlock_tryrdlock(object) RwlockAcquired when zero;
    pthread_rwlock_timedrdlock(object, until: Time) RwlockAcquired when zero;
    pthread_rwlock_clockrdlock(object, clock: c_int, until: Time) RwlockAcquired when zero;
    pthread_rwlock_wrlock(object) RwlockAcquired when zero;
    pthread_rwlock_trywrlock(object) RwlockAcquired when zero;
    pthread_rwlock_timedwrlock(object, until: Time) RwlockAcquired when zero;
    pthread_rwlock_clockwrlock(object, clock: c_int, until: Time) RwlockAcquired when zero;
    pthread_spin_lock(object) SpinAcquired when zero;
    pthread_spin_trylock(object) SpinAcquired when zero;
    sem_wait(object) SemaphoreWaited when zero;
    sem_trywait(object) SemaphoreWaited when zero;
    sem_timedwait(object, until: Time) SemaphoreWaited when zero;
    sem_clockwait(object, clock: c_int, until: Time) SemaphoreWaited when zero;
}

macro_rules! release {
    ($($name:ident $call:ident;)*) => {$(
        /// # Safety
        /// As POSIX documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(object: *mut c_void) -> c_int {
            tell(HostCall::$call, object as u64);
            // SAFETY: the C library's function of this name, with the program's arguments.
            unsafe {
                let real: unsafe extern "C-unwind" fn(*mut c_void) -> c_int =
                    transmute(real!(stringify!($name)));
                real(object)
            }
        }
    )*};
}

release! {
    pthread_mutex_unlock MutexReleased;
    pthread_rwlock_unlock RwlockReleased;
    pthread_spin_unlock SpinReleased;
    pthread_cond_signal ConditionSignalled;
    pthread_cond_broadcast ConditionSignalled;
    sem_post SemaphorePosted;
}

macro_rules! wait {
    ($($name:ident ($($arg:ident: $kind:ty),*);)*) => {$(
        /// A wait lets go of the mutex, and has it again when it returns, timed out or not.
        ///
        /// # Safety
        /// As POSIX documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            condition: *mut c_void,
            mutex: *mut c_void,
            $($arg: $kind),*
        ) -> c_int {
            type Function =
                unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, $($kind),*) -> c_int;
            tell(HostCall::MutexReleased, mutex as u64);
            // SAFETY: the C library's function of this name, with the program's arguments.
            let result = unsafe {
                let real: Function = transmute(real!(stringify!($name)));
                real(condition, mutex, $($arg),*)
            };
            if result == 0 {
                tell(HostCall::ConditionWaited, condition as u64);
            }
            tell(HostCall::MutexAcquired, mutex as u64);
            result
        }
    )*};
}

wait! {
    pthread_cond_wait();
    pthread_cond_timedwait(until: Time);
    pthread_cond_clockwait(clock: c_int, until: Time);
}

/// # Safety
/// As POSIX documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_barrier_wait(barrier: *mut c_void) -> c_int {
    tell(HostCall::BarrierEntered, barrier as u64);
    // SAFETY: the C library's function of this name, with the program's arguments.
    let result = unsafe {
        let real: unsafe extern "C-unwind" fn(*mut c_void) -> c_int =
            transmute(real!("pthread_barrier_wait"));
        real(barrier)
    };
    if result == 0 || result == libc::PTHREAD_BARRIER_SERIAL_THREAD {
        tell(HostCall::BarrierLeft, barrier as u64);
    }
    result
}
