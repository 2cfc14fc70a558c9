//! The driver's entry points by their exact names, so that a replayed call is the call that the
//! trace names: per-thread twins too, which cudarc has no bindings for.

use cudarc::driver::sys;

use crate::Refusal;

/// `CUDA_SUCCESS`.
pub(crate) const SUCCESS: i32 = 0;

/// Most words that an entry point takes.
const WORDS: usize = 11;

/// Handles, addresses, sizes and small numbers all travel as one word each on x86-64, in a register
/// or in a stack slot of 8 bytes, and the caller takes them off the stack again. A function that
/// takes fewer or narrower words leaves the rest alone.
type EntryPoint =
    unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> i32;

/// Calls the entry point `name`; the driver's result.
///
/// Pointers among `words` must be what the entry point's signature says: that is for the caller to
/// see to, and no caller passes one that does not outlive the call. Handles may be wrong: the
/// driver that this program is for looks them up.
pub(crate) fn call(name: &str, words: &[u64]) -> Result<i32, Refusal> {
    let mut w = [0; WORDS];
    let passed = w.get_mut(..words.len()).ok_or_else(|| Refusal::new("too many words"))?;
    passed.copy_from_slice(words);
    // SAFETY: loading the driver has no preconditions; an entry point of it, the only kind of name
    // that comes here, is a C function that takes at most `WORDS` words and returns a CUresult.
    let function = unsafe { sys::culib().get::<EntryPoint>(name.as_bytes()) };
    let function = function.map_err(|_| Refusal::new(format!("the driver has no {name}")))?;
    // SAFETY: pointers are valid for the call, as promised above.
    Ok(unsafe { function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10]) })
}

/// As [`call`], where the trace says nothing else than that it succeeds.
pub(crate) fn must(name: &str, words: &[u64]) -> Result<(), Refusal> {
    match call(name, words)? {
        SUCCESS => Ok(()),
        result => Err(Refusal::new(format!("{name} answers {result}"))),
    }
}

/// The address of a word that the driver writes to or reads from.
pub(crate) fn address<T: ?Sized>(value: &mut T) -> u64 {
    std::ptr::from_mut(value).cast::<u8>().expose_provenance() as u64
}
