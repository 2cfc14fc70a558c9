//! The link to streamsan's runtime, if it is loaded in the same process: two functions that it
//! exports, looked up by name at first use.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::OnceLock;

/// How bytes were accessed, as numbered between the two libraries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Mode {
    Read = 0,
    Write = 1,
    Atomic = 2,
    /// Strong operations at system scope.
    StrongRead = 3,
    StrongWrite = 4,
    StrongAtomic = 5,
}

/// One range of a list handed over, as laid out between the two libraries.
#[repr(C)]
struct Access {
    start: u64,
    end: u64,
    mode: u32,
    early: u32,
}

type CurrentOp = unsafe extern "C" fn() -> u64;
type OpAccesses = unsafe extern "C" fn(u64, *const Access, usize);

fn find(name: &CStr) -> Option<*mut libc::c_void> {
    // SAFETY: the name is terminated; RTLD_DEFAULT searches the libraries of the process.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The number of the driver call in progress on this thread; 0 if nobody counts.
pub(crate) fn current_op() -> u64 {
    static FUNCTION: OnceLock<Option<CurrentOp>> = OnceLock::new();
    let function = FUNCTION.get_or_init(|| {
        // SAFETY: the function of this name has this type by agreement of the two libraries.
        find(c"streamsan_current_op")
            .map(|found| unsafe { std::mem::transmute::<*mut libc::c_void, CurrentOp>(found) })
    });
    // SAFETY: takes nothing, and may be called on any thread at any time.
    function.map_or(0, |function| unsafe { function() })
}

/// Whether it keeps to itself what kernels touch, as a GPU does.
fn withheld() -> bool {
    static WITHHELD: OnceLock<bool> = OnceLock::new();
    *WITHHELD.get_or_init(|| {
        std::env::var_os("STREAMSAN_SIM_ACCESSES").is_some_and(|value| value == "inferred")
    })
}

/// Hands over the exact bytes that a finished kernel touched, also when there are none.
pub(crate) fn report_accesses(op: u64, list: &[(Range<u64>, Mode, bool)]) {
    static FUNCTION: OnceLock<Option<OpAccesses>> = OnceLock::new();
    if op == 0 || withheld() {
        return;
    }
    let function = FUNCTION.get_or_init(|| {
        // SAFETY: the function of this name has this type by agreement of the two libraries.
        find(c"streamsan_op_accesses")
            .map(|found| unsafe { std::mem::transmute::<*mut libc::c_void, OpAccesses>(found) })
    });
    let Some(function) = function else { return };
    let list: Vec<Access> = list
        .iter()
        .map(|(range, mode, early)| Access {
            start: range.start,
            end: range.end,
            mode: *mode as u32,
            early: u32::from(*early),
        })
        .collect();
    // SAFETY: pointer and count describe a live list, which the function only reads.
    unsafe { function(op, list.as_ptr(), list.len()) };
}
