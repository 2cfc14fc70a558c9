//! libibverbs: registering memory pins its pages, which fails inside a fence and is no access. The
//! library beside this one has functions that open fences first; here are libibverbs' own, and what a
//! program gets that looks them up by `dlsym`, as NCCL and UCX do.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::elf::LoadedObject;
use crate::host::fences;

/// The functions, in the order in which the other library has them.
const NAMES: [&CStr; 4] = [c"ibv_reg_mr", c"ibv_reg_mr_iova", c"ibv_reg_mr_iova2", c"ibv_rereg_mr"];

/// Those that open fences first, once the library is loaded.
static OPENING: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];
/// libibverbs' own.
static REAL: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

fn is_verbs(object: &LoadedObject) -> bool {
    object.soname().is_some_and(|soname| soname.to_bytes().starts_with(b"libibverbs.so"))
}

/// The library beside this one tells its functions.
///
/// # Safety
/// `functions` are as many as there are names.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_verbs(functions: *const *const c_void) {
    for (index, opening) in OPENING.iter().enumerate() {
        // SAFETY: promised by the caller.
        opening.store(unsafe { *functions.add(index) } as usize, Ordering::Release);
    }
}

/// libibverbs' own function of a number, null where it is not loaded.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_verbs_function(index: usize) -> *const c_void {
    let (Some(real), Some(name)) = (REAL.get(index), NAMES.get(index)) else {
        return core::ptr::null();
    };
    if real.load(Ordering::Acquire) == 0
        && let Some(address) = LoadedObject::find(is_verbs).and_then(|object| object.function(name))
    {
        real.store(address, Ordering::Release);
    }
    real.load(Ordering::Acquire) as *const c_void
}

/// The address that a program gets that looked `name` up and found `address`; `None` if not ours.
pub(crate) fn substitute(name: &CStr, address: usize) -> Option<usize> {
    if !fences::are_wanted() {
        return None;
    }
    let index = NAMES.iter().position(|known| *known == name)?;
    let opening = OPENING[index].load(Ordering::Acquire);
    LoadedObject::containing(address).filter(is_verbs)?;
    let known = REAL[index].compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire);
    // The functions of a second libibverbs stay as they are.
    (opening != 0 && known.map_or_else(|known| known == address, |_| true)).then_some(opening)
}
