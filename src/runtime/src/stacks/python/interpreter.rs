//! Finds the CPython of this process and its thread states; nothing of it is changed.
//!
//! The interpreter is looked for among the loaded objects (the program itself, or a libpython), at
//! the first walk and then, where there is none, now and again if objects were loaded meanwhile.
//! The interpreter once found stays: one a process. A library that was unloaded is not called.
//!
//! Not seen: an interpreter in a link namespace of its own (`dlmopen`), one linked into a program
//! that does not export it, and a second one.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::OnceLock;

use streamsan_wire::PythonRefusal as Refusal;

use super::layout::{PythonLayout, TOLD_COOKIE, TOLD_FREE_THREADED, TOLD_VERSION};
use super::version::layout_of;
use crate::elf::LoadedObject;

type GetState = unsafe extern "C" fn() -> usize;
type GetFlag = unsafe extern "C" fn() -> c_int;
type FindObject = unsafe extern "C" fn(*mut c_void, *mut [usize; 16]) -> c_int;

/// Walks without an interpreter between two looks for one.
const LOOK_EVERY: u32 = 64;

/// The interpreter of this process.
#[derive(Debug)]
pub(super) struct Interpreter {
    pub(super) layout: &'static PythonLayout,
    /// Address of `PyCode_Type`.
    pub(super) code_type: usize,
    /// Code of `_PyEval_EvalFrameDefault`.
    pub(super) eval: Range<usize>,
    /// Thread state that is current: from 3.12 on of this thread, before of whatever thread holds
    /// the lock.
    current: GetState,
    /// Thread state bound to the calling thread.
    own: GetState,
    is_finalizing: GetFlag,
    /// Whether it is the program itself, which is never unloaded.
    resident: bool,
}

/// A `PyThreadState` of the calling thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadState {
    pub(super) address: usize,
    /// Whether the thread holds the global interpreter lock, without which nobody frees it.
    holds_lock: bool,
}

static FOUND: OnceLock<Result<Interpreter, Refusal>> = OnceLock::new();
static UNLOADED: AtomicBool = AtomicBool::new(false);
static WALKS: AtomicU32 = AtomicU32::new(0);
static SEEN_ADDS: AtomicU64 = AtomicU64::new(0);
static SEEN_SUBS: AtomicU64 = AtomicU64::new(u64::MAX);
static FIND_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// The interpreter, where there is one that is understood and loaded.
#[inline]
pub(super) fn interpreter() -> Option<&'static Interpreter> {
    match FOUND.get() {
        Some(Ok(found)) => found.is_loaded().then_some(found),
        Some(Err(_)) => None,
        None => look(),
    }
}

/// Why this process gives no Python stacks though it runs Python.
pub(super) fn refusal() -> Option<Refusal> {
    if UNLOADED.load(Ordering::Relaxed) {
        return Some(Refusal::Unloaded);
    }
    FOUND.get().and_then(|found| found.as_ref().err().copied())
}

#[cold]
fn look() -> Option<&'static Interpreter> {
    // A lost count only delays the next look.
    let walks = WALKS.load(Ordering::Relaxed);
    WALKS.store(walks.wrapping_add(1), Ordering::Relaxed);
    if !walks.is_multiple_of(LOOK_EVERY) {
        return None;
    }
    let (adds, subs) = changes();
    if SEEN_ADDS.swap(adds, Ordering::Relaxed) == adds {
        return None;
    }
    let own = c"PyGILState_GetThisThreadState";
    let object = LoadedObject::find(|object| object.symbol(own).is_some())?;
    SEEN_SUBS.store(subs, Ordering::Relaxed);
    if let Some(finder) = LoadedObject::find(|object| object.symbol(c"_dl_find_object").is_some()) {
        let address = finder.function(c"_dl_find_object").unwrap_or(0);
        FIND_OBJECT.store(address, Ordering::Relaxed);
    }
    // Two threads may get here; they find the same.
    FOUND.get_or_init(|| Interpreter::of(&object)).as_ref().ok()
}

/// How many objects were loaded and unloaded so far.
fn changes() -> (u64, u64) {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid entry, and `data` is the pair below.
        unsafe { *data.cast() = ((*info).dlpi_adds, (*info).dlpi_subs) };
        1
    }
    let mut counts = (0u64, 0u64);
    // SAFETY: the callback has the expected signature and `counts` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), ptr::from_mut(&mut counts).cast()) };
    counts
}

impl Interpreter {
    fn of(object: &LoadedObject) -> Result<Interpreter, Refusal> {
        let function = |name: &CStr| object.function(name);
        // Headers of objects differ, or reference counts are kept that release builds lack.
        if function(c"_Py_NegativeRefcount").is_some() || function(c"_Py_PrintReferences").is_some()
        {
            return Err(Refusal::DebugBuild);
        }
        let version = function(c"Py_GetVersion").ok_or(Refusal::UnknownVersion)?;
        // SAFETY: the interpreter's function of this name takes nothing, needs neither the lock
        // nor an initialised interpreter, and gives a static string.
        let text = unsafe {
            let version: unsafe extern "C" fn() -> *const c_char = core::mem::transmute(version);
            CStr::from_ptr(version())
        };
        let layout = layout_of(text.to_str().map_err(|_| Refusal::UnknownVersion)?)?;
        if layout.told.is_some() {
            let runtime = object.symbol(c"_PyRuntime").ok_or(Refusal::Structures)?;
            // SAFETY: from 3.13 on this structure starts with the interpreter's account of its
            // structures, which is longer than every field read here.
            unsafe { compare(layout, runtime.start)? };
        }
        // The symbol that a program has copied into itself comes first.
        let code_type = LoadedObject::find(|object| object.symbol(c"PyCode_Type").is_some())
            .and_then(|object| object.function(c"PyCode_Type"));
        let eval = object.symbol(c"_PyEval_EvalFrameDefault").ok_or(Refusal::Structures)?;
        let one_of =
            |names: [&CStr; 2]| names.into_iter().find_map(function).ok_or(Refusal::Structures);
        let current = one_of([c"PyThreadState_GetUnchecked", c"_PyThreadState_UncheckedGet"])?;
        let is_finalizing = one_of([c"Py_IsFinalizing", c"_Py_IsFinalizing"])?;
        let own = function(c"PyGILState_GetThisThreadState").ok_or(Refusal::Structures)?;
        let resident = LoadedObject::find(|_| true).is_some_and(|first| first.contains(eval.start));
        // SAFETY: the interpreter's functions of these names have these signatures in every
        // version that has a layout.
        unsafe {
            Ok(Interpreter {
                layout,
                code_type: code_type.ok_or(Refusal::Structures)?,
                eval,
                current: core::mem::transmute::<usize, GetState>(current),
                own: core::mem::transmute::<usize, GetState>(own),
                is_finalizing: core::mem::transmute::<usize, GetFlag>(is_finalizing),
                resident,
            })
        }
    }

    /// The calling thread's thread state. `None` where the thread has none, or where it may be
    /// gone already.
    #[inline]
    pub(super) fn thread_state(&self) -> Option<ThreadState> {
        // SAFETY: these functions read a thread-local and a global variable; they need neither
        // the lock nor a thread state.
        let (current, own) = unsafe { ((self.current)(), (self.own)()) };
        // Current in this thread: it holds the lock.
        if current != 0 && (self.layout.minor >= 12 || current == own) {
            return Some(ThreadState { address: current, holds_lock: true });
        }
        if own == 0 || self.is_finalizing() {
            return None;
        }
        Some(ThreadState { address: own, holds_lock: false })
    }

    /// Whether the thread state is still there. When the interpreter ends, it frees the states of
    /// all threads but the one that ends it: it says so before, and holds the lock.
    #[inline]
    pub(super) fn is_kept(&self, state: ThreadState) -> bool {
        // The fields are read before the question is asked.
        fence(Ordering::Acquire);
        state.holds_lock || !self.is_finalizing()
    }

    /// Whether the interpreter has begun to end.
    #[inline]
    fn is_finalizing(&self) -> bool {
        // SAFETY: this function reads a global variable.
        unsafe { (self.is_finalizing)() != 0 }
    }

    #[inline]
    fn is_loaded(&self) -> bool {
        self.resident || is_still_loaded(self.eval.start)
    }
}

/// Whether the library that held `address` when it was found is still there.
fn is_still_loaded(address: usize) -> bool {
    if UNLOADED.load(Ordering::Relaxed) {
        return false;
    }
    let find = FIND_OBJECT.load(Ordering::Relaxed);
    let loaded = if find != 0 {
        let mut found = [0usize; 16];
        // SAFETY: glibc's function of this name, which takes no lock and writes a structure of
        // twelve words: flags, then the start and the end of the object's mapping.
        unsafe {
            let find: FindObject = core::mem::transmute(find);
            find(address as *mut c_void, &mut found) == 0
        }
    } else {
        let (_, subs) = changes();
        SEEN_SUBS.load(Ordering::Relaxed) == subs || {
            let found = LoadedObject::find(|object| object.contains(address)).is_some();
            SEEN_SUBS.store(subs, Ordering::Relaxed);
            found
        }
    };
    if !loaded {
        UNLOADED.store(true, Ordering::Relaxed);
    }
    loaded
}

/// # Safety
/// `runtime` points to a `_PyRuntimeState` of CPython 3.13 or later.
unsafe fn compare(layout: &PythonLayout, runtime: usize) -> Result<(), Refusal> {
    // SAFETY: every field lies in the structure (caller).
    let word = |offset: usize| unsafe { ((runtime + offset) as *const u64).read() };
    if word(0).to_ne_bytes() != TOLD_COOKIE {
        return Err(Refusal::Structures);
    }
    // The version's bytes: major, minor, micro, level.
    if word(TOLD_VERSION) >> 16 != 0x300 | u64::from(layout.minor) {
        return Err(Refusal::Structures);
    }
    if word(TOLD_FREE_THREADED) != 0 {
        return Err(Refusal::FreeThreaded);
    }
    if layout.agrees(word) { Ok(()) } else { Err(Refusal::Structures) }
}
