//! SIGSEGV: our handler, and the program's disposition, which is kept and answered.
//!
//! The handler is installed with the first fence. What the program sets from then on is kept here
//! (the library `streamsan-host-accesses` stands before `sigaction` and its kin), and faults that
//! are not ours go to it, as the kernel would have delivered them. Who installs a handler past that
//! library ends the fences.

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use streamsan_wire::{Unwatched, monotonic_ns};

use super::fault;
use super::table::TABLE;
use crate::{system_call, thread};

const SA_RESTORER: u64 = 0x0400_0000;
/// Bytes of the kernel's signal set.
const SET_BYTES: u64 = 8;
/// How often the kernel is asked whose the handler is, in nanoseconds.
const CHECK_EVERY: u64 = 1_000_000;
/// For how long nothing is fenced after the program's own handler has run, in nanoseconds.
const PAUSE: u64 = 1_000_000_000;

/// `struct sigaction` as the kernel has it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct KernelAction {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

/// A disposition, as the library beside this one tells it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Disposition {
    handler: u64,
    flags: u64,
    mask: u64,
}

/// The dispositions kept last. A reader that is overtaken by so many changes does not exist.
const KEPT: usize = 256;
static KEPT_LIST: [[AtomicU64; 3]; KEPT] = [const { [const { AtomicU64::new(0) }; 3] }; KEPT];
static KEPT_NEWEST: AtomicU64 = AtomicU64::new(0);

/// Whether the library that keeps dispositions is there.
static LIBRARY: AtomicBool = AtomicBool::new(false);
static INSTALLED: AtomicBool = AtomicBool::new(false);
static CHECKED: AtomicU64 = AtomicU64::new(0);
/// Handlers of the program that run, and until when nothing is fenced because of them.
static RUNNING: AtomicI64 = AtomicI64::new(0);
static PAUSED_UNTIL: AtomicU64 = AtomicU64::new(0);
static ATFORK: AtomicU32 = AtomicU32::new(0);

/// The process is to be watched.
pub(super) fn prepare() {
    if ATFORK.swap(1, Ordering::SeqCst) == 0 {
        extern "C" fn child() {
            super::after_fork();
        }
        // SAFETY: a function of a library that is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
    }
}

/// Whether a fault would come to our handler, which is installed the first time.
pub(super) fn are_ours() -> bool {
    if !INSTALLED.load(Ordering::Acquire) {
        return install();
    }
    let now = monotonic_ns();
    if now < PAUSED_UNTIL.load(Ordering::Relaxed) && RUNNING.load(Ordering::Relaxed) != 0 {
        return false;
    }
    if now.saturating_sub(CHECKED.load(Ordering::Relaxed)) < CHECK_EVERY {
        return true;
    }
    CHECKED.store(now, Ordering::Relaxed);
    let ours = current().handler == entry();
    if !ours {
        super::stop(Unwatched::OwnHandler);
    }
    ours
}

fn entry() -> u64 {
    fault::enter as *const () as u64
}

fn current() -> KernelAction {
    let mut action = KernelAction::default();
    // SAFETY: asks only, into a structure of ours.
    unsafe { set_action(core::ptr::null(), &mut action) };
    action
}

/// # Safety
/// As `rt_sigaction`; the pointers may be null.
unsafe fn set_action(new: *const KernelAction, old: *mut KernelAction) -> i64 {
    // SAFETY: promised by the caller.
    unsafe {
        let signal = libc::SIGSEGV as u64;
        let arguments = [signal, new as u64, old as u64, SET_BYTES, 0, 0];
        system_call::raw(libc::SYS_rt_sigaction, arguments)
    }
}

#[cold]
fn install() -> bool {
    if !LIBRARY.load(Ordering::Acquire) {
        super::stop(Unwatched::NoLibrary);
        return false;
    }
    if INSTALLED.swap(true, Ordering::SeqCst) {
        return true;
    }
    fault::make_stacks();
    let new = KernelAction {
        handler: entry(),
        flags: (libc::SA_SIGINFO | libc::SA_ONSTACK) as u64,
        restorer: 0,
        mask: u64::MAX,
    }
    .returning();
    let mut old = KernelAction::default();
    // SAFETY: two structures of the kernel's layout; the handler lives as long as the process.
    let result = unsafe { set_action(&new, &mut old) };
    if result != 0 {
        super::stop(Unwatched::Refused);
        return false;
    }
    keep(Disposition { handler: old.handler, flags: old.flags, mask: old.mask });
    CHECKED.store(monotonic_ns(), Ordering::Relaxed);
    true
}

impl KernelAction {
    /// Where a handler returns to, for kernels that do not know it by themselves.
    fn returning(self) -> Self {
        match fault::RESTORE {
            Some(code) => {
                let restorer = code as *const () as u64;
                Self { flags: self.flags | SA_RESTORER, restorer, ..self }
            }
            None => self,
        }
    }
}

fn keep(new: Disposition) {
    let at = KEPT_NEWEST.load(Ordering::SeqCst) + 1;
    let row = &KEPT_LIST[at as usize % KEPT];
    row[0].store(new.handler, Ordering::SeqCst);
    row[1].store(new.flags, Ordering::SeqCst);
    row[2].store(new.mask, Ordering::SeqCst);
    KEPT_NEWEST.store(at, Ordering::SeqCst);
}

fn kept() -> Disposition {
    let row = &KEPT_LIST[KEPT_NEWEST.load(Ordering::SeqCst) as usize % KEPT];
    let [handler, flags, mask] = [0, 1, 2].map(|index: usize| row[index].load(Ordering::SeqCst));
    Disposition { handler, flags, mask }
}

/// The library that keeps dispositions is loaded.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_signals_are_kept() {
    LIBRARY.store(true, Ordering::Release);
}

/// The program asks for the disposition of SIGSEGV, or sets another. Answers whether it is kept
/// here; if not, the C library is to be called.
///
/// # Safety
/// The pointers are null, or point to dispositions.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_signal_disposition(
    new: *const Disposition,
    old: *mut Disposition,
) -> bool {
    if !INSTALLED.load(Ordering::Acquire) {
        return false;
    }
    let before = kept();
    // SAFETY: promised by the caller.
    unsafe {
        if let Some(new) = new.as_ref() {
            keep(*new);
        }
        if let Some(old) = old.as_mut() {
            *old = before;
        }
    }
    true
}

/// Whether the program believes SIGSEGV to be blocked in the calling thread; sets it where `new` is 0
/// or 1.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_signal_blocked(new: i32) -> bool {
    thread::with(|thread| match new {
        0 | 1 => thread.segv_blocked.replace(new == 1),
        _ => thread.segv_blocked.get(),
    })
}

/// A fault that is not ours, on the stack on which the kernel delivered it: does what the kernel
/// would have done. May never return.
pub(super) extern "C-unwind" fn hand_on(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    let kept = kept();
    // SAFETY: the kernel's own structures.
    let (sent, mask) = unsafe {
        let mask = (&raw const (*context).uc_sigmask).cast::<u64>().read();
        ((*info).si_code <= 0, mask)
    };
    let ignored = kept.handler == libc::SIG_IGN as u64;
    let blocked = thread::with(|thread| thread.segv_blocked.get());
    if ignored && sent {
        return;
    }
    if ignored || kept.handler == libc::SIG_DFL as u64 || (blocked && !sent) {
        let default = KernelAction::default().returning();
        // SAFETY: the instruction faults again, or the signal comes again, and ends the process as
        // it would have without us.
        unsafe {
            set_action(&default, core::ptr::null_mut());
            if sent {
                libc::syscall(
                    libc::SYS_tgkill,
                    libc::getpid(),
                    libc::syscall(libc::SYS_gettid),
                    signal,
                );
            }
        }
        return;
    }
    if kept.flags & libc::SA_RESETHAND as u32 as u64 != 0 {
        keep(Disposition { handler: libc::SIG_DFL as u64, ..kept });
    }
    // Under the real mask a touch inside the program's handler would end the process.
    RUNNING.fetch_add(1, Ordering::SeqCst);
    PAUSED_UNTIL.store(monotonic_ns().saturating_add(PAUSE), Ordering::Relaxed);
    TABLE.drop_all_unless_held();
    let own = if kept.flags & libc::SA_NODEFER as u64 == 0 { 1 << (signal - 1) } else { 0 };
    let mask = mask | kept.mask | own;
    // SAFETY: the mask that the kernel would have set, and the program's own handler.
    unsafe {
        let set = [libc::SIG_SETMASK as u64, &raw const mask as u64, 0, SET_BYTES, 0, 0];
        system_call::raw(libc::SYS_rt_sigprocmask, set);
        let handler: extern "C-unwind" fn(i32, *mut libc::siginfo_t, *mut libc::ucontext_t) =
            core::mem::transmute(kept.handler);
        handler(signal, info, context);
    }
    RUNNING.fetch_sub(1, Ordering::SeqCst);
}
