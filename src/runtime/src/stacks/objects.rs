//! The executables and libraries that the process has loaded, and their unwind information.
//!
//! A snapshot is true as long as the loader's two counters have not changed: they are read before
//! every walk, and whatever a thread's stack lies in stays loaded while it is on the stack. The
//! sections are used where the loader mapped them; nothing of an outdated snapshot is touched.
//!
//! Not seen: objects of other link namespaces (`dlmopen`).

use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use libc::Elf64_Phdr;

use super::machine::Unwinder;
use super::sections::{Sections, sections};

/// Objects of a process beyond which the rest has no frames.
const MOST_OBJECTS: usize = 8192;
/// Bytes for the paths of all of them.
const PATHS_BYTES: usize = 2 << 20;
/// Bytes of a build id: SHA-1 has 20.
pub(super) const BUILD_ID_BYTES: usize = 32;

/// The counts of the loader: objects ever added and ever removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoaderCounts {
    added: u64,
    pub(super) removed: u64,
}

/// All loaded objects at one moment.
pub(super) struct Snapshot {
    pub(super) counts: LoaderCounts,
    pub(super) unwinder: Unwinder,
    /// By address.
    objects: Vec<Arc<NumberedObject>>,
    /// Our own code.
    own: (usize, usize),
    /// The code that the kernel gives processes.
    #[cfg(target_arch = "aarch64")]
    pub(super) vdso: Option<(usize, usize)>,
}

/// A loaded object.
pub(super) struct NumberedObject {
    /// Its number among all that the process ever had, from 1.
    pub(super) number: u32,
    pub(super) bias: usize,
    low: usize,
    high: usize,
    code: (usize, usize),
    build_id: ([u8; BUILD_ID_BYTES], usize),
    path: Box<[u8]>,
    /// Attachment whose collector knows it.
    pub(super) told: AtomicU64,
}

impl NumberedObject {
    pub(super) fn build_id(&self) -> &[u8] {
        &self.build_id.0[..self.build_id.1]
    }

    /// Absolute where it could be found out.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }
}

impl Snapshot {
    /// The object whose code the address lies in.
    pub(super) fn find(&self, address: usize) -> Option<&NumberedObject> {
        let behind = self.objects.partition_point(|object| object.low <= address);
        let object = self.objects.get(behind.checked_sub(1)?)?;
        (object.code.0..object.code.1).contains(&address).then_some(object)
    }

    /// The objects of a test, whose own frames count too.
    #[cfg(test)]
    pub(super) fn of_test() -> Self {
        Self { own: (0, 0), ..read(None, &mut 0).expect("a snapshot") }
    }

    /// Whether the address lies in the runtime itself.
    #[inline]
    pub(super) fn is_own(&self, address: usize) -> bool {
        (self.own.0..self.own.1).contains(&address)
    }
}

/// The counters of the loader. Takes the loader's lock for a moment, which is never held while code
/// of the program runs.
#[inline]
pub(super) fn counts() -> LoaderCounts {
    extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid entry, and `data` is our `Counts`.
        let (info, counts) = unsafe { (&*info, &mut *data.cast::<LoaderCounts>()) };
        *counts = LoaderCounts { added: info.dlpi_adds, removed: info.dlpi_subs };
        1
    }
    let mut counts = LoaderCounts { added: 0, removed: 0 };
    // SAFETY: the callback has the expected signature and `counts` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), ptr::from_mut(&mut counts).cast()) };
    counts
}

static BUSY: AtomicBool = AtomicBool::new(false);
static CURRENT: BusyCell<Option<Arc<Snapshot>>> = BusyCell::new(None);
static NUMBERS: BusyCell<u32> = BusyCell::new(0);

/// The data that only the holder of [`BUSY`] touches.
struct BusyCell<T>(core::cell::UnsafeCell<T>);

// SAFETY: used only between taking and letting go of `BUSY`.
unsafe impl<T> Sync for BusyCell<T> {}

impl<T> BusyCell<T> {
    const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }
}

/// The snapshot of now; made anew where objects have come or gone. Allocates then.
#[cold]
pub(super) fn current() -> Option<Arc<Snapshot>> {
    while BUSY.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        // SAFETY: no preconditions.
        unsafe { libc::sched_yield() };
    }
    // SAFETY: `BUSY` is ours.
    let (current, numbers) = unsafe { (&mut *CURRENT.0.get(), &mut *NUMBERS.0.get()) };
    let known = current.as_ref().is_some_and(|snapshot| snapshot.counts == counts());
    if !known && let Some(new) = read(current.as_deref(), numbers) {
        *current = Some(Arc::new(new));
    }
    let result = current.clone();
    BUSY.store(false, Ordering::Release);
    result
}

/// A forked child may have copied the lock while another thread of its parent held it.
pub(super) fn restart() {
    BUSY.store(false, Ordering::Release);
}

/// An object as the loader shows it; its path lies in [`Listing::paths`].
#[derive(Clone, Copy)]
struct ListedObject {
    bias: usize,
    sections: Sections,
    path: (usize, usize),
}

/// Gathers in memory of its own: the loader's lock is held meanwhile, and an allocator may ask the
/// loader for something.
struct Listing {
    found: *mut ListedObject,
    count: usize,
    paths: *mut u8,
    used: usize,
    counts: LoaderCounts,
}

extern "C" fn gather(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid entry, and `data` is our `Listing`.
    let (info, listing) = unsafe { (&*info, &mut *data.cast::<Listing>()) };
    listing.counts = LoaderCounts { added: info.dlpi_adds, removed: info.dlpi_subs };
    if listing.count == MOST_OBJECTS {
        return 1;
    }
    let bias = info.dlpi_addr as usize;
    // SAFETY: the loader describes a mapped object with its program headers.
    let headers: &[Elf64_Phdr] =
        unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    // SAFETY: as above.
    let Some(sections) = (unsafe { sections(bias, headers) }) else { return 0 };
    let mut path = (listing.used, 0);
    if !info.dlpi_name.is_null() {
        // SAFETY: a NUL-terminated string of the loader.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
        if listing.used + name.len() <= PATHS_BYTES {
            path.1 = name.len();
            listing.used += name.len();
            // SAFETY: the memory has room (just checked).
            unsafe { ptr::copy_nonoverlapping(name.as_ptr(), listing.paths.add(path.0), path.1) };
        }
    }
    // SAFETY: the memory has room for `MOST_OBJECTS`.
    unsafe { listing.found.add(listing.count).write(ListedObject { bias, sections, path }) };
    listing.count += 1;
    0
}

fn read(before: Option<&Snapshot>, numbers: &mut u32) -> Option<Snapshot> {
    let bytes = MOST_OBJECTS * size_of::<ListedObject>() + PATHS_BYTES;
    let memory = super::memory::map(bytes)?;
    let mut listing = Listing {
        found: memory.cast().as_ptr(),
        count: 0,
        // SAFETY: inside the memory.
        paths: unsafe { memory.as_ptr().add(MOST_OBJECTS * size_of::<ListedObject>()) },
        used: 0,
        counts: LoaderCounts { added: 0, removed: 0 },
    };
    // SAFETY: the callback has the expected signature and `listing` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(gather), ptr::from_mut(&mut listing).cast()) };
    // SAFETY: so many were written.
    let found = unsafe { core::slice::from_raw_parts(listing.found, listing.count) };
    let mut objects: Vec<Arc<NumberedObject>> = found
        .iter()
        .enumerate()
        .map(|(position, found)| {
            // SAFETY: written by `gather`.
            let path = unsafe {
                core::slice::from_raw_parts(listing.paths.add(found.path.0), found.path.1)
            };
            same(before, listing.counts, found).unwrap_or_else(|| {
                *numbers += 1;
                Arc::new(object(*numbers, found, absolute(path, position == 0)))
            })
        })
        .collect();
    objects.sort_by_key(|object| object.low);
    let mut unwinder = Unwinder::new();
    for found in found {
        unwinder.add_module(module(found));
    }
    let own = counts as *const () as usize;
    let own = objects.iter().find(|object| (object.low..object.high).contains(&own));
    let own = own.map_or((0, 0), |object| (object.low, object.high));
    super::memory::unmap(memory, bytes);
    Some(Snapshot {
        counts: listing.counts,
        unwinder,
        own,
        #[cfg(target_arch = "aarch64")]
        vdso: objects.iter().find(|it| *it.path == *b"linux-vdso.so.1").map(|it| it.code),
        objects,
    })
}

/// The object of the snapshot before, if it is still that one: nothing was removed meanwhile.
fn same(
    before: Option<&Snapshot>,
    now: LoaderCounts,
    found: &ListedObject,
) -> Option<Arc<NumberedObject>> {
    let before = before.filter(|before| before.counts.removed == now.removed)?;
    let low = found.sections.low;
    let at = before.objects.binary_search_by_key(&low, |object| object.low).ok()?;
    Some(Arc::clone(&before.objects[at]))
}

fn object(number: u32, found: &ListedObject, path: Box<[u8]>) -> NumberedObject {
    let Sections { low, high, code, build_id, .. } = found.sections;
    NumberedObject {
        number,
        bias: found.bias,
        low,
        high,
        code,
        build_id,
        path,
        told: AtomicU64::new(0),
    }
}

/// The loader names the executable by nothing, and libraries as they were asked for.
fn absolute(name: &[u8], first: bool) -> Box<[u8]> {
    let mut path = [0u8; libc::PATH_MAX as usize];
    if name.is_empty() {
        if !first {
            return Box::default();
        }
        // SAFETY: the buffer is writable in the length given.
        let len = unsafe {
            libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len())
        };
        return path[..usize::try_from(len).unwrap_or(0)].into();
    }
    if name[0] == b'/' || !name.contains(&b'/') || name.len() >= path.len() {
        return name.into();
    }
    let mut relative = [0u8; libc::PATH_MAX as usize];
    relative[..name.len()].copy_from_slice(name);
    // SAFETY: a NUL-terminated name, and a buffer of PATH_MAX bytes.
    let found = unsafe { libc::realpath(relative.as_ptr().cast(), path.as_mut_ptr().cast()) };
    if found.is_null() {
        return name.into();
    }
    let len = path.iter().position(|byte| *byte == 0).unwrap_or(0);
    path[..len].into()
}

fn module(found: &ListedObject) -> Module<&'static [u8]> {
    let Sections { low, high, eh_frame_hdr, eh_frame, .. } = found.sections;
    // Addresses in the file.
    let stated = |section: Option<&'static [u8]>| {
        section.map(|bytes| {
            let start = (bytes.as_ptr() as usize).wrapping_sub(found.bias) as u64;
            start..start + bytes.len() as u64
        })
    };
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        eh_frame_svma: stated(eh_frame),
        eh_frame,
        eh_frame_hdr_svma: stated(eh_frame_hdr),
        eh_frame_hdr,
        ..ExplicitModuleSectionInfo::default()
    };
    Module::new(String::new(), low as u64..high as u64, found.bias as u64, sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_libc_are_found() {
        let snapshot = current().expect("a snapshot");
        assert_eq!(snapshot.counts, counts());
        let own = snapshot.find(counts as *const () as usize).expect("the test program");
        assert_eq!(
            own.path(),
            std::env::current_exe().expect("a path").to_str().expect("UTF-8").as_bytes()
        );
        assert!(snapshot.is_own(counts as *const () as usize));
        let libc = snapshot.find(libc::printf as *const () as usize).expect("libc");
        assert!(libc.path().ends_with(b"/libc.so.6"));
        assert!(!libc.build_id().is_empty());
        assert!(snapshot.find(0x1000).is_none());
    }
}
