//! Ranges and marks that a program tells of by NVTX, and the domains and texts that it registers
//! for them.
//!
//! The functions are those of the modules `CORE` and `CORE2`; their numbers and the layout of the
//! attributes are those of the public headers `nvtxTypes.h` and `nvToolsExt.h`. A push or a pop is
//! one record of the calling thread: it takes no lock and allocates nothing. The name goes with it,
//! since copying some bytes costs less than looking up whether the collector knows them.
//!
//! Deliberately absent: categories, colours and payloads; names of threads; resources; and the
//! levels that a push and a pop may answer, which would have to be counted for each thread and
//! domain.

use core::ffi::{c_char, c_void};
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use streamsan_wire::HostCall;

use super::nvtx_text::{LONGEST_NAME, Text, keep, kept};
use super::publish::record;

/// `NVTX_NO_PUSH_POP_TRACKING`: the level is not known.
const NO_LEVEL: i32 = -2;

/// Most bytes of a domain's name, so that room is left for that of the range.
const LONGEST_DOMAIN: usize = 64;

/// `NVTX_MESSAGE_TYPE_ASCII`, `..._UNICODE`, `..._REGISTERED`.
const ASCII: i32 = 1;
const UNICODE: i32 = 2;
const REGISTERED: i32 = 3;

/// `nvtxEventAttributes_v2`, which says itself how long it is. Older and shorter ones have no
/// message that could be read.
#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_kind: i32,
    color: u32,
    payload_kind: i32,
    reserved: i32,
    payload: u64,
    message_kind: i32,
    message: *const c_void,
}

/// Bytes that attributes with a message have at least.
const WITH_MESSAGE: usize = offset_of!(Attributes, message) + size_of::<*const c_void>();

/// The last number of a range that was started.
static STARTED: AtomicU64 = AtomicU64::new(0);

type Domain = *const c_void;

/// Where a name comes from.
#[derive(Clone, Copy)]
enum Source {
    Attributes(*const c_void),
    Narrow(*const c_char),
    Wide(*const u32),
}

/// Appends the message of attributes; nothing for attributes that cannot be ones.
///
/// # Safety
/// `attributes` is null or points to as many bytes as its field `size` says, at least four; a message
/// is what its kind says.
unsafe fn push_message(text: &mut Text, attributes: *const c_void) {
    let attributes = attributes.cast::<Attributes>();
    if attributes.is_null() {
        return;
    }
    // SAFETY: promised by the caller; a program need not align what it hands over.
    let size = unsafe { (&raw const (*attributes).size).read_unaligned() };
    if usize::from(size) < WITH_MESSAGE {
        return;
    }
    // SAFETY: the fields lie within the size.
    let (kind, message) = unsafe {
        (
            (&raw const (*attributes).message_kind).read_unaligned(),
            (&raw const (*attributes).message).read_unaligned(),
        )
    };
    match kind {
        // SAFETY: promised by the caller.
        ASCII => unsafe { text.push_narrow(message.cast()) },
        // SAFETY: promised by the caller.
        UNICODE => unsafe { text.push_wide(message.cast()) },
        REGISTERED => text.push(kept(message).unwrap_or_default(), LONGEST_NAME),
        _ => {}
    }
}

/// Records the begin of a range of the process under the name of a domain that is no NVTX handle, or
/// a mark; answers the range's number.
///
/// # Safety
/// `name` is null or a NUL-terminated string.
pub(super) unsafe fn begin_in(call: HostCall, domain: &str, name: *const c_char) -> u64 {
    let mut text = Text::new();
    text.push(domain.as_bytes(), LONGEST_DOMAIN);
    // SAFETY: promised by the caller.
    unsafe { text.push_narrow(name) };
    let range = match call {
        HostCall::NvtxStart => STARTED.fetch_add(1, Ordering::Relaxed) + 1,
        _ => 0,
    };
    let words = [0, domain.len() as u64, range];
    record(call, &words[..2 + usize::from(range != 0)], text.as_bytes());
    range
}

/// Records the end of a range of the process.
pub(super) extern "C" fn end(range: u64) {
    record(HostCall::NvtxEnd, &[range], &[]);
}

/// Records the begin of a range, or a mark.
///
/// # Safety
/// `source` is what NVTX hands on: null, a NUL-terminated string, or attributes.
unsafe fn named(call: HostCall, domain: Domain, source: Source, range: Option<u64>) {
    let mut text = Text::new();
    text.push(kept(domain).unwrap_or_default(), LONGEST_DOMAIN);
    let of_domain = text.as_bytes().len() as u64;
    // SAFETY: promised by the caller.
    unsafe {
        match source {
            Source::Attributes(attributes) => push_message(&mut text, attributes),
            Source::Narrow(name) => text.push_narrow(name),
            Source::Wide(name) => text.push_wide(name),
        }
    }
    let words = [domain.addr() as u64, of_domain, range.unwrap_or(0)];
    record(call, &words[..2 + usize::from(range.is_some())], text.as_bytes());
}

unsafe fn push(domain: Domain, source: Source) -> i32 {
    // SAFETY: promised by the caller.
    unsafe { named(HostCall::NvtxPush, domain, source, None) };
    NO_LEVEL
}

unsafe fn mark(domain: Domain, source: Source) {
    // SAFETY: promised by the caller.
    unsafe { named(HostCall::NvtxMark, domain, source, None) };
}

unsafe fn start(domain: Domain, source: Source) -> u64 {
    let range = STARTED.fetch_add(1, Ordering::Relaxed) + 1;
    // SAFETY: promised by the caller.
    unsafe { named(HostCall::NvtxStart, domain, source, Some(range)) };
    range
}

extern "C" fn pop() -> i32 {
    domain_pop(ptr::null())
}

extern "C" fn domain_pop(domain: Domain) -> i32 {
    record(HostCall::NvtxPop, &[domain.addr() as u64], &[]);
    NO_LEVEL
}

extern "C" fn domain_end(_domain: Domain, range: u64) {
    end(range);
}

macro_rules! entry_points {
    ($($begin:ident -> $answer:ty: $attributes:ident, $narrow:ident, $wide:ident, $domain:ident;)*) => {$(
        unsafe extern "C" fn $attributes(attributes: *const c_void) -> $answer {
            // SAFETY: as NVTX hands it on.
            unsafe { $begin(ptr::null(), Source::Attributes(attributes)) }
        }

        unsafe extern "C" fn $narrow(name: *const c_char) -> $answer {
            // SAFETY: as NVTX hands it on.
            unsafe { $begin(ptr::null(), Source::Narrow(name)) }
        }

        unsafe extern "C" fn $wide(name: *const u32) -> $answer {
            // SAFETY: as NVTX hands it on.
            unsafe { $begin(ptr::null(), Source::Wide(name)) }
        }

        unsafe extern "C" fn $domain(domain: Domain, attributes: *const c_void) -> $answer {
            // SAFETY: as NVTX hands it on.
            unsafe { $begin(domain, Source::Attributes(attributes)) }
        }
    )*};
}

entry_points! {
    mark -> (): mark_attributes, mark_narrow, mark_wide, domain_mark;
    start -> u64: start_attributes, start_narrow, start_wide, domain_start;
    push -> i32: push_attributes, push_narrow, push_wide, domain_push;
}

/// Keeps a text or the name of a domain.
///
/// # Safety
/// As [`named`].
unsafe fn keep_source(source: Source) -> *const c_void {
    let mut text = Text::new();
    // SAFETY: promised by the caller.
    unsafe {
        match source {
            Source::Attributes(_) => {}
            Source::Narrow(name) => text.push_narrow(name),
            Source::Wide(name) => text.push_wide(name),
        }
    }
    keep(text.as_bytes())
}

unsafe extern "C" fn register_narrow(_domain: Domain, text: *const c_char) -> *const c_void {
    // SAFETY: as NVTX hands it on.
    unsafe { keep_source(Source::Narrow(text)) }
}

unsafe extern "C" fn register_wide(_domain: Domain, text: *const u32) -> *const c_void {
    // SAFETY: as NVTX hands it on.
    unsafe { keep_source(Source::Wide(text)) }
}

unsafe extern "C" fn create_narrow(name: *const c_char) -> Domain {
    // SAFETY: as NVTX hands it on.
    unsafe { keep_source(Source::Narrow(name)) }
}

unsafe extern "C" fn create_wide(name: *const u32) -> Domain {
    // SAFETY: as NVTX hands it on.
    unsafe { keep_source(Source::Wide(name)) }
}

/// Functions by their number in `NvtxCallbackIdCore`.
pub(super) const CORE: [(usize, *const c_void); 11] = [
    (1, mark_attributes as *const c_void),
    (2, mark_narrow as *const c_void),
    (3, mark_wide as *const c_void),
    (4, start_attributes as *const c_void),
    (5, start_narrow as *const c_void),
    (6, start_wide as *const c_void),
    (7, end as *const c_void),
    (8, push_attributes as *const c_void),
    (9, push_narrow as *const c_void),
    (10, push_wide as *const c_void),
    (11, pop as *const c_void),
];

/// The same for `NvtxCallbackIdCore2`.
pub(super) const CORE2: [(usize, *const c_void); 9] = [
    (1, domain_mark as *const c_void),
    (2, domain_start as *const c_void),
    (3, domain_end as *const c_void),
    (4, domain_push as *const c_void),
    (5, domain_pop as *const c_void),
    (10, register_narrow as *const c_void),
    (11, register_wide as *const c_void),
    (12, create_narrow as *const c_void),
    (13, create_wide as *const c_void),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(message_kind: i32, message: *const c_void) -> Attributes {
        Attributes {
            version: 3,
            size: size_of::<Attributes>() as u16,
            category: 0,
            color_kind: 0,
            color: 0,
            payload_kind: 0,
            reserved: 0,
            payload: 0,
            message_kind,
            message,
        }
    }

    fn message(attributes: *const Attributes) -> Vec<u8> {
        let mut text = Text::new();
        // SAFETY: null or attributes whose messages are what they say.
        unsafe { push_message(&mut text, attributes.cast()) };
        text.as_bytes().to_vec()
    }

    #[test]
    fn messages_of_every_kind_are_read() {
        let wide = ['\u{f6}', 'l', '\0'].map(u32::from);
        let registered = keep(b"step");
        for (kind, from, expected) in [
            (ASCII, c"train".as_ptr().cast(), &b"train"[..]),
            (UNICODE, wide.as_ptr().cast(), "\u{f6}l".as_bytes()),
            (REGISTERED, registered, b"step"),
            (ASCII, ptr::null(), b""),
            (UNICODE, ptr::null(), b""),
            (REGISTERED, ptr::null(), b""),
        ] {
            assert_eq!(message(&attributes(kind, from)), expected, "kind {kind}");
        }
    }

    #[test]
    fn damaged_attributes_have_no_message() {
        let wild: *const c_void = ptr::without_provenance(0x10);
        assert_eq!(message(ptr::null()), b"");
        // A message that no kind says how to read, and a registered one that nobody registered.
        for kind in [0, 4, -1, i32::MAX, REGISTERED] {
            let wild = if kind == REGISTERED { ptr::without_provenance(1 << 40) } else { wild };
            assert_eq!(message(&attributes(kind, wild)), b"", "kind {kind}");
        }
        // Too short for a message, whatever lies where it would stand.
        for size in [0, 4, 8, WITH_MESSAGE as u16 - 1] {
            let short = Attributes { size, ..attributes(ASCII, wild) };
            assert_eq!(message(&short), b"", "{size} bytes");
        }
        // A later edition may be longer.
        let longer = Attributes { size: 64, version: 9, ..attributes(ASCII, c"x".as_ptr().cast()) };
        assert_eq!(message(&longer), b"x");
    }

    #[test]
    fn attributes_need_not_be_aligned() {
        let mut bytes = [0u8; size_of::<Attributes>() + 1];
        let at = &raw mut bytes[1];
        // SAFETY: the array has room for it.
        unsafe {
            at.cast::<Attributes>().write_unaligned(attributes(ASCII, c"odd".as_ptr().cast()))
        };
        assert_eq!(message(at.cast()), b"odd");
    }

    /// `sizeof(nvtxEventAttributes_t)` of the header, and where it has the message.
    #[test]
    fn layout_is_the_headers() {
        assert_eq!(size_of::<Attributes>(), 48);
        assert_eq!(offset_of!(Attributes, message_kind), 32);
        assert_eq!(offset_of!(Attributes, message), 40);
    }
}
