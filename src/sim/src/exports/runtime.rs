//! The link to streamsan's runtime, if it is loaded in the same process: functions that it exports,
//! looked up by name at first use.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use streamsan_wire::{MEASURE_VARIABLE, MEASURED_KNOWS_EARLY, MeasuredRun, NotMeasured, Selection};

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
type OpMeasured = unsafe extern "C" fn(u64, *const MeasuredRun, usize, u32);
type NodeMeasured = unsafe extern "C" fn(u64, u64, *const MeasuredRun, usize, u32);
type OpNotMeasured = unsafe extern "C" fn(u64, u32, *const c_char);

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

/// The kernels whose bytes are measured; `None` where nobody measures.
fn selection() -> Option<&'static Selection> {
    static SELECTION: OnceLock<Option<Selection>> = OnceLock::new();
    let read = || {
        let file = std::env::var_os(MEASURE_VARIABLE)?;
        let text = std::fs::read_to_string(&file).map_err(|error| error.to_string());
        match text.and_then(|text| Selection::parse(&text).map_err(|error| error.to_string())) {
            Ok(selection) => Some(selection),
            Err(error) => {
                not_measured(0, NotMeasured::Other, &error);
                Some(Selection::default())
            }
        }
    };
    SELECTION.get_or_init(read).as_ref()
}

/// Whether a kernel is selected. Its name is demangled once.
fn is_selected(selection: &Selection, kernel: &str) -> bool {
    static KNOWN: Mutex<Option<HashMap<String, bool>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(&selected) = known.get(kernel) {
        return selected;
    }
    let readable = || {
        let names = [streamsan_names::whole(kernel), streamsan_names::bare(kernel)];
        names.into_iter().flatten().collect()
    };
    // The images are those that programs gave; the collector takes the name alone, too.
    let selected = selection.selects(None, kernel, readable);
    known.insert(kernel.to_owned(), selected);
    selected
}

/// Whether a launch is left out, as where no log is free.
fn is_left_out() -> bool {
    static EACH: OnceLock<u64> = OnceLock::new();
    static LAUNCHES: AtomicU64 = AtomicU64::new(0);
    let each = EACH.get_or_init(|| {
        let set = std::env::var("STREAMSAN_SIM_UNMEASURED").ok();
        set.and_then(|value| value.parse().ok()).unwrap_or(0)
    });
    *each > 0 && (LAUNCHES.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(*each)
}

fn not_measured(op: u64, reason: NotMeasured, detail: &str) {
    static FUNCTION: OnceLock<Option<OpNotMeasured>> = OnceLock::new();
    let function = FUNCTION.get_or_init(|| {
        // SAFETY: the function of this name has this type by agreement of the two libraries.
        find(c"streamsan_not_measured")
            .map(|found| unsafe { std::mem::transmute::<*mut libc::c_void, OpNotMeasured>(found) })
    });
    let (Some(function), Ok(detail)) = (function, CString::new(detail)) else { return };
    // SAFETY: the text ends with NUL and lives until the function returns.
    unsafe { function(op, reason as u32, detail.as_ptr()) };
}

/// Hands over what a finished kernel of the selection touched, also when there is nothing. `node` is
/// that of a graph, or 0.
fn report_measured((op, node): (u64, u64), list: &[(Range<u64>, Mode, bool)]) {
    static FUNCTION: OnceLock<Option<OpMeasured>> = OnceLock::new();
    static OF_NODES: OnceLock<Option<NodeMeasured>> = OnceLock::new();
    if is_left_out() {
        return not_measured(op, NotMeasured::NoRoom, "");
    }
    let function = FUNCTION.get_or_init(|| {
        // SAFETY: the function of this name has this type by agreement of the two libraries.
        find(c"streamsan_op_measured")
            .map(|found| unsafe { std::mem::transmute::<*mut libc::c_void, OpMeasured>(found) })
    });
    let of_nodes = OF_NODES.get_or_init(|| {
        // SAFETY: the function of this name has this type by agreement of the two libraries.
        find(c"streamsan_node_accesses")
            .map(|found| unsafe { std::mem::transmute::<*mut libc::c_void, NodeMeasured>(found) })
    });
    let (Some(function), Some(of_nodes)) = (function, of_nodes) else { return };
    let run = |(range, mode, early): &(Range<u64>, Mode, bool)| MeasuredRun {
        start: range.start,
        width: range.end - range.start,
        pitch: 0,
        rows: 1,
        mode: *mode as u32,
        flags: if *early { MeasuredRun::EARLY } else { 0 },
    };
    let list: Vec<MeasuredRun> = list.iter().map(run).collect();
    // SAFETY: pointer and count describe a live list, which the function only reads.
    unsafe {
        match node {
            0 => function(op, list.as_ptr(), list.len(), MEASURED_KNOWS_EARLY),
            _ => of_nodes(op, node, list.as_ptr(), list.len(), MEASURED_KNOWS_EARLY),
        }
    }
}

/// Hands over the exact bytes that a finished kernel touched, also when there are none. The kernel is
/// that of a launch, or of the graph's node `node`: nodes are told where they are measured only.
pub(crate) fn report_accesses(
    (op, node): (u64, u64),
    kernel: &str,
    list: &[(Range<u64>, Mode, bool)],
) {
    static FUNCTION: OnceLock<Option<OpAccesses>> = OnceLock::new();
    if op == 0 {
        return;
    }
    if let Some(selection) = selection() {
        if is_selected(selection, kernel) {
            report_measured((op, node), list);
        }
        return;
    }
    if withheld() || node != 0 {
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
