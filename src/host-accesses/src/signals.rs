//! SIGSEGV stays the runtime's to handle and is never blocked; the program sees what it has set.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr;

use crate::real;
use crate::runtime::announce;
use crate::runtime::{Disposition, blocked, disposition, set_blocked};

/// An alternate stack has at least room for the kernel's frame and so many bytes.
const LEAST_ROOM: usize = 8 << 10;
/// Bytes of a stack that takes the place of a smaller one.
const STACK: usize = 64 << 10;
/// `SS_AUTODISARM`, beside the state in `ss_flags`.
const DISABLE: c_int = libc::SS_DISABLE;

#[derive(Clone, Copy)]
struct Shown {
    stack: libc::stack_t,
    /// In whose place ours is.
    replaced: bool,
    /// Ours, once there is one.
    own: *mut c_void,
}

thread_local! {
    static SHOWN: core::cell::Cell<Shown> = const {
        core::cell::Cell::new(Shown {
            stack: libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: DISABLE, ss_size: 0 },
            replaced: false,
            own: ptr::null_mut(),
        })
    };
}

/// Says that the library is there, and lets SIGSEGV through where the process began with it blocked.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = {
    extern "C" fn begin() {
        announce();
        // SAFETY: asks for the mask of the calling thread and takes one signal out.
        unsafe {
            let mut mask: libc::sigset_t = core::mem::zeroed();
            let ask: Masks = transmute(real!("pthread_sigmask"));
            if ask(libc::SIG_BLOCK, ptr::null(), &mut mask) == 0 && has(&mask) {
                set_blocked(true);
                let mut only: libc::sigset_t = core::mem::zeroed();
                libc::sigemptyset(&mut only);
                libc::sigaddset(&mut only, libc::SIGSEGV);
                ask(libc::SIG_UNBLOCK, &only, ptr::null_mut());
            }
        }
    }
    begin
};

type Masks =
    unsafe extern "C-unwind" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;
type Action =
    unsafe extern "C-unwind" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;

fn has(mask: &libc::sigset_t) -> bool {
    // SAFETY: a valid set.
    unsafe { libc::sigismember(mask, libc::SIGSEGV) == 1 }
}

fn without(mask: &libc::sigset_t) -> libc::sigset_t {
    let mut mask = *mask;
    // SAFETY: a valid set.
    unsafe { libc::sigdelset(&mut mask, libc::SIGSEGV) };
    mask
}

fn word(mask: &libc::sigset_t) -> u64 {
    // SAFETY: a set has 1024 bits, of which the kernel knows the first 64.
    unsafe { ptr::from_ref(mask).cast::<u64>().read() }
}

/// # Safety
/// As POSIX documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the C library's function of this name.
    let real: Action = unsafe { transmute(real!("sigaction")) };
    // SAFETY: the program's own arguments.
    let given = unsafe { new.as_ref() };
    if signal == libc::SIGSEGV {
        let wanted = given.map(|new| Disposition {
            handler: new.sa_sigaction as u64,
            flags: new.sa_flags as u32 as u64,
            mask: word(&new.sa_mask),
        });
        let mut before = Disposition::default();
        if disposition(wanted.as_ref(), &mut before) {
            // SAFETY: the program's own structure, or null; a zeroed one is valid.
            unsafe {
                if let Some(old) = old.as_mut() {
                    let mut shown: libc::sigaction = core::mem::zeroed();
                    shown.sa_sigaction = before.handler as usize;
                    shown.sa_flags = before.flags as c_int & !0x0400_0000;
                    ptr::from_mut(&mut shown.sa_mask).cast::<u64>().write(before.mask);
                    *old = shown;
                }
            }
            return 0;
        }
        // SAFETY: the program's own arguments.
        return unsafe { real(signal, new, old) };
    }
    // Another signal's handler must not run with SIGSEGV blocked.
    let changed = given
        .filter(|new| has(&new.sa_mask))
        .map(|new| libc::sigaction { sa_mask: without(&new.sa_mask), ..*new });
    let new = changed.as_ref().map_or(new, ptr::from_ref);
    // SAFETY: the program's own arguments, or a changed copy.
    unsafe { real(signal, new, old) }
}

/// # Safety
/// As `sigaction`.
unsafe fn simple(signal: c_int, handler: usize, flags: c_int) -> usize {
    // SAFETY: structures of our own, valid when zeroed.
    unsafe {
        let mut new: libc::sigaction = core::mem::zeroed();
        let mut old: libc::sigaction = core::mem::zeroed();
        new.sa_sigaction = handler;
        new.sa_flags = flags;
        match sigaction(signal, &new, &mut old) {
            0 => old.sa_sigaction,
            _ => libc::SIG_ERR,
        }
    }
}

macro_rules! simple {
    ($($name:ident: $flags:expr;)*) => {$(
        /// # Safety
        /// As the C library documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(signal: c_int, handler: usize) -> usize {
            if signal != libc::SIGSEGV || handler == libc::SIG_ERR {
                // SAFETY: the C library's function of this name, with the program's arguments.
                return unsafe {
                    let real: unsafe extern "C-unwind" fn(c_int, usize) -> usize =
                        transmute(real!(stringify!($name)));
                    real(signal, handler)
                };
            }
            // SAFETY: the program's own arguments.
            unsafe { simple(signal, handler, $flags) }
        }
    )*};
}

simple! {
    signal: libc::SA_RESTART;
    bsd_signal: libc::SA_RESTART;
    ssignal: libc::SA_RESTART;
    sysv_signal: libc::SA_RESETHAND | libc::SA_NODEFER;
    __sysv_signal: libc::SA_RESETHAND | libc::SA_NODEFER;
}

/// # Safety
/// As POSIX documents; `real` is the C library's function.
unsafe fn masked(
    real: Masks,
    how: c_int,
    new: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: the program's own argument.
    let given = unsafe { new.as_ref() };
    let changed = given.filter(|new| how != libc::SIG_UNBLOCK && has(new)).map(without);
    let passed = changed.as_ref().map_or(new, ptr::from_ref);
    // SAFETY: the program's own arguments, or a changed copy.
    let result = unsafe { real(how, passed, old) };
    if result != 0 {
        return result;
    }
    let before = blocked();
    if let Some(given) = given {
        match how {
            libc::SIG_BLOCK if has(given) => {
                set_blocked(true);
            }
            libc::SIG_UNBLOCK if has(given) => {
                set_blocked(false);
            }
            libc::SIG_SETMASK => {
                set_blocked(has(given));
            }
            _ => {}
        }
    }
    if before {
        // SAFETY: the program's own set, which was just filled, or null.
        unsafe {
            if let Some(old) = old.as_mut() {
                libc::sigaddset(old, libc::SIGSEGV);
            }
        }
    }
    result
}

/// # Safety
/// As POSIX documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_sigmask(
    how: c_int,
    new: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: the C library's function of this name, with the program's arguments.
    unsafe { masked(transmute::<*mut c_void, Masks>(real!("pthread_sigmask")), how, new, old) }
}

/// # Safety
/// As POSIX documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigprocmask(
    how: c_int,
    new: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: the C library's function of this name, with the program's arguments.
    unsafe { masked(transmute::<*mut c_void, Masks>(real!("sigprocmask")), how, new, old) }
}

/// # Safety
/// As POSIX documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigaltstack(
    new: *const libc::stack_t,
    old: *mut libc::stack_t,
) -> c_int {
    type Stack = unsafe extern "C-unwind" fn(*const libc::stack_t, *mut libc::stack_t) -> c_int;
    // SAFETY: the C library's function of this name.
    let real: Stack = unsafe { transmute(real!("sigaltstack")) };
    let mut shown = SHOWN.get();
    let before = shown;
    // SAFETY: the program's own argument.
    let given = unsafe { new.as_ref() };
    // SAFETY: asks for a number.
    let least = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize + LEAST_ROOM;
    let small = given.filter(|new| {
        new.ss_flags & DISABLE == 0 && (libc::MINSIGSTKSZ..least).contains(&new.ss_size)
    });
    let mut passed = new;
    let mut replacement = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: 0, ss_size: STACK };
    if let Some(small) = small {
        if shown.own.is_null() {
            // SAFETY: a fresh private mapping.
            let start = unsafe {
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
                libc::mmap(ptr::null_mut(), STACK, protection, flags, -1, 0)
            };
            if start != libc::MAP_FAILED {
                shown.own = start;
            }
        }
        if !shown.own.is_null() {
            replacement.ss_sp = shown.own;
            replacement.ss_flags = small.ss_flags;
            passed = &raw const replacement;
        }
    }
    // SAFETY: the program's own arguments, or a larger stack.
    let result = unsafe { real(passed, old) };
    if result != 0 {
        return result;
    }
    if before.replaced {
        // SAFETY: the program's own structure, which was just filled, or null.
        unsafe {
            if let Some(old) = old.as_mut() {
                let state = old.ss_flags & libc::SS_ONSTACK;
                *old = before.stack;
                old.ss_flags |= state;
            }
        }
    }
    if let Some(given) = given {
        shown.replaced = !ptr::eq(passed, new);
        shown.stack = *given;
    }
    SHOWN.set(shown);
    result
}
