//! Saying hello to the collector, once a process, and noticing that a process is a forked child.
//!
//! The state of one process lies in a page that the kernel wipes in forked children, whether they
//! come from `fork` or a bare `clone`: its attachment number is 0 there, and the first hooked call
//! says hello anew. A `vfork`ed child runs in its parent's memory, as the parent's thread.

use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use streamsan_wire::{
    CONTROL_FILE, Control, PROCESS_BYTES, PathBuffer, ProcessFile, ProcessStat, map_existing,
    map_new, pid_namespace,
};

use crate::host::fences;
use crate::{layouts, rings, unknown};

/// The part of the attachment that is true of this process only.
#[repr(C)]
pub(crate) struct Page {
    /// Where the thunks count, by entry point; null until attached. At offset 0 for their
    /// assembly.
    pub(crate) counters: AtomicPtr<AtomicU64>,
    /// Never the same in two processes of one family; 0: not attached, [`OFF`]: nothing recorded.
    attachment: AtomicU64,
    state: AtomicU32,
    process: AtomicPtr<ProcessFile>,
}

const FRESH: u32 = 0;
const ATTACHING: u32 = 1;
const DONE: u32 = 2;

const LONGEST_WAIT_YIELDS: u32 = 1_000_000;

/// Attachment of a process that records nothing.
const OFF: u64 = u64::MAX;

impl Page {
    const fn new() -> Self {
        Self {
            counters: AtomicPtr::new(ptr::null_mut()),
            attachment: AtomicU64::new(0),
            state: AtomicU32::new(FRESH),
            process: AtomicPtr::new(ptr::null_mut()),
        }
    }
}

/// In use until the wiped page exists, and for good where nothing is recorded.
static FIRST_PAGE: Page = Page::new();

/// The page in use. Read by the thunks' assembly.
pub(crate) static PAGE: AtomicPtr<Page> = AtomicPtr::new(ptr::from_ref(&FIRST_PAGE).cast_mut());

/// Where the thunks count in a process that records nothing.
static UNREAD: [AtomicU64; ProcessFile::COUNTERS] =
    [const { AtomicU64::new(0) }; ProcessFile::COUNTERS];

static CONTROL: AtomicPtr<Control> = AtomicPtr::new(ptr::null_mut());
static ATTACHMENTS: AtomicU64 = AtomicU64::new(1);

/// An attached process.
#[derive(Clone, Copy)]
pub(crate) struct Attachment {
    pub(crate) number: u64,
    pub(crate) control: &'static Control,
    pub(crate) process: &'static ProcessFile,
}

/// The attachment of this process; says hello first where that has not happened. `None` where
/// nothing is recorded.
#[inline]
pub(crate) fn attachment() -> Option<Attachment> {
    let mut page = page();
    let mut number = page.attachment.load(Ordering::Acquire);
    if number == 0 {
        attach();
        page = self::page();
        number = page.attachment.load(Ordering::Acquire);
    }
    if number == 0 || number == OFF {
        return None;
    }
    // SAFETY: both were set before the attachment became visible and stay mapped.
    unsafe {
        let control = CONTROL.load(Ordering::Relaxed).as_ref()?;
        let process = page.process.load(Ordering::Relaxed).as_ref()?;
        Some(Attachment { number, control, process })
    }
}

/// The attachment of this process, without saying hello. May be called by a signal handler.
pub(crate) fn known() -> Option<Attachment> {
    let number = current_number();
    if number == 0 || number == OFF {
        return None;
    }
    // SAFETY: as in `attachment`.
    unsafe {
        let control = CONTROL.load(Ordering::Relaxed).as_ref()?;
        let process = page().process.load(Ordering::Relaxed).as_ref()?;
        Some(Attachment { number, control, process })
    }
}

/// Attachment number without saying hello: 0 or [`OFF`] where there is none.
pub(crate) fn current_number() -> u64 {
    page().attachment.load(Ordering::Acquire)
}

/// Stops recording in this process for good: something inside went wrong.
pub(crate) fn switch_off() {
    page().attachment.store(OFF, Ordering::Release);
}

fn page() -> &'static Page {
    // SAFETY: always points to `FIRST_PAGE` or to a page that is never unmapped.
    unsafe { &*PAGE.load(Ordering::Acquire) }
}

/// Says hello before the program's own code runs: no hello means that it was not traced.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static HELLO: extern "C" fn() = {
    extern "C" fn hello() {
        crate::allocator::survive_forks();
        let _ = attachment();
    }
    hello
};

/// Attaches once; concurrent callers wait for the first.
pub(crate) fn attach() {
    let page = page();
    if page.state.compare_exchange(FRESH, ATTACHING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        // Bounded: a fork during another thread's hello leaves the child with nobody to wait for.
        for _ in 0..LONGEST_WAIT_YIELDS {
            if page.state.load(Ordering::Acquire) != ATTACHING {
                return;
            }
            // SAFETY: no preconditions.
            unsafe { libc::sched_yield() };
        }
        switch_off();
        return;
    }
    if try_attach(page).is_none() {
        // SAFETY: set once from a mapping that stays.
        if let Some(control) = unsafe { CONTROL.load(Ordering::Acquire).as_ref() } {
            control.failed.fetch_add(1, Ordering::AcqRel);
        }
        page.counters.store(UNREAD.as_ptr().cast_mut(), Ordering::Release);
        page.attachment.store(OFF, Ordering::Release);
    }
    page.state.store(DONE, Ordering::Release);
}

fn try_attach(first: &'static Page) -> Option<()> {
    let directory = directory()?;
    let mut control = CONTROL.load(Ordering::Acquire);
    if control.is_null() {
        let path = PathBuffer::format(format_args!("{directory}/{CONTROL_FILE}"))?;
        let mapping = map_existing(path.as_c_str()).ok()?;
        // SAFETY: mapped for good; checked to be a whole control file of this version.
        let usable = mapping.len >= Control::BYTES
            && unsafe { mapping.start.cast::<Control>().as_ref() }.usable();
        if !usable {
            return None;
        }
        control = mapping.start.as_ptr().cast();
        CONTROL.store(control, Ordering::Release);
    }
    // SAFETY: just checked, never unmapped.
    let control = unsafe { &*control };
    if control.closed.load(Ordering::Acquire) != 0 {
        return None;
    }
    let page = if ptr::eq(first, &FIRST_PAGE) { wiped_page()? } else { first };
    let process = create_process_file(control, directory)?;

    layouts::forget();
    rings::restart();
    unknown::copy_names(process);
    page.process.store(ptr::from_ref(process).cast_mut(), Ordering::Relaxed);
    page.counters.store(process.counters.as_ptr().cast_mut(), Ordering::Relaxed);
    control.attached.fetch_add(1, Ordering::AcqRel);
    page.attachment.store(ATTACHMENTS.fetch_add(1, Ordering::Relaxed), Ordering::Release);
    page.state.store(DONE, Ordering::Release);
    PAGE.store(ptr::from_ref(page).cast_mut(), Ordering::Release);
    fences::attached(control);
    Some(())
}

/// The run directory's path as it was at the first look: programs may clear their environment.
pub(crate) fn directory() -> Option<&'static str> {
    static SAVED: AtomicPtr<libc::c_char> = AtomicPtr::new(ptr::null_mut());
    let mut saved = SAVED.load(Ordering::Acquire);
    if saved.is_null() {
        // SAFETY: a NUL-terminated name; `strdup` copies what the environment may later free.
        unsafe {
            let value = libc::getenv(c"STREAMSAN_RUN_DIR".as_ptr());
            if value.is_null() {
                return None;
            }
            saved = libc::strdup(value);
        }
        SAVED.store(saved, Ordering::Release);
    }
    if saved.is_null() {
        return None;
    }
    // SAFETY: a NUL-terminated copy that is never freed.
    unsafe { CStr::from_ptr(saved) }.to_str().ok()
}

fn wiped_page() -> Option<&'static Page> {
    // SAFETY: a fresh private page, large enough for `Page`, whose fields are valid as zeroes.
    unsafe {
        let start = libc::mmap(
            ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if start == libc::MAP_FAILED {
            return None;
        }
        let wiped = libc::madvise(start, 4096, libc::MADV_WIPEONFORK) == 0;
        // Where the kernel cannot wipe (gVisor), the C library's fork tells; a bare clone is then
        // not noticed.
        if !wiped && libc::pthread_atfork(None, None, Some(wipe_in_child)) != 0 {
            libc::munmap(start, 4096);
            return None;
        }
        start.cast::<Page>().as_ref()
    }
}

/// Does in a forked child what the kernel does to a wiped page.
extern "C" fn wipe_in_child() {
    let page = page();
    if page.attachment.load(Ordering::Relaxed) != OFF {
        page.counters.store(ptr::null_mut(), Ordering::Relaxed);
        page.process.store(ptr::null_mut(), Ordering::Relaxed);
        page.attachment.store(0, Ordering::Relaxed);
        page.state.store(FRESH, Ordering::Release);
    }
}

fn create_process_file(control: &Control, directory: &str) -> Option<&'static ProcessFile> {
    let number = control.processes.fetch_add(1, Ordering::AcqRel);
    let hidden = PathBuffer::format(format_args!("{directory}/new-{number}"))?;
    let visible = PathBuffer::format(format_args!("{directory}/process-{number}"))?;
    let mapping = map_new(hidden.as_c_str(), PROCESS_BYTES).ok()?;
    mapping.exclude_from_fork();
    // SAFETY: a fresh zeroed mapping of the right size that nobody else knows yet; all fields of
    // `ProcessFile` are valid as zeroes. It is never unmapped.
    let file = unsafe { &mut *mapping.start.as_ptr().cast::<ProcessFile>() };
    let mut line = [0; 1024];
    let stat = ProcessStat::parse(read_file(c"/proc/self/stat", &mut line))?;
    file.number = number;
    // SAFETY: no preconditions.
    file.pid = unsafe { libc::getpid() } as u32;
    file.parent = stat.parent;
    file.start_time = stat.start_time;
    file.pid_namespace = pid_namespace();
    let (mut exe, mut args) = ([0u8; 1024], [0u8; 8192]);
    // SAFETY: the buffer is writable in the length given.
    let exe_len =
        unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), exe.as_mut_ptr().cast(), exe.len()) };
    let exe = &exe[..usize::try_from(exe_len).unwrap_or(0)];
    file.set_command(exe, read_file(c"/proc/self/cmdline", &mut args));
    file.stamp();
    // SAFETY: both paths are NUL-terminated.
    let renamed = unsafe { libc::rename(hidden.as_c_str().as_ptr(), visible.as_c_str().as_ptr()) };
    (renamed == 0).then_some(file)
}

fn read_file<'a>(path: &CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: a NUL-terminated path; reads stay inside the buffer; the descriptor is ours.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return &[];
        }
        while len < buffer.len() {
            let rest = &mut buffer[len..];
            let read = libc::read(fd, rest.as_mut_ptr().cast(), rest.len());
            match usize::try_from(read) {
                Ok(0) | Err(_) => break,
                Ok(read) => len += read,
            }
        }
        libc::close(fd);
    }
    &buffer[..len]
}
