//! A library beside the driver whose functions ours stand in front of, and where its own are.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use streamsan_wire::PathBuffer;

use crate::elf::LoadedObject;
use crate::{thread, unknown};

/// Functions of one library, by index.
pub(super) struct Library<const N: usize> {
    /// Its soname up to `.so`.
    name: &'static str,
    functions: [&'static CStr; N],
    /// Addresses of its own functions, 0 until looked up.
    real: [AtomicUsize; N],
}

impl<const N: usize> Library<N> {
    pub(super) const fn new(name: &'static str, functions: [&'static CStr; N]) -> Self {
        Self { name, functions, real: [const { AtomicUsize::new(0) }; N] }
    }

    /// Whether an object is the library.
    pub(super) fn is(&self, object: &LoadedObject) -> bool {
        let rest = |soname: &CStr| {
            soname
                .to_bytes()
                .strip_prefix(self.name.as_bytes())
                .is_some_and(|rest| rest.starts_with(b".so"))
        };
        object.soname().is_some_and(rest)
    }

    /// The address that a program gets that looked `name` up and found `address`; `None` if not
    /// ours.
    pub(super) fn substitute(
        &self,
        name: &CStr,
        address: usize,
        hooks: &[usize; N],
    ) -> Option<usize> {
        let index = self.functions.iter().position(|known| *known == name)?;
        let object = LoadedObject::containing(address).filter(|object| self.is(object))?;
        let real = &self.real[index];
        match real.compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => keep(&object),
            Err(known) if known == address => {}
            Err(_) => {
                // A second copy: our function would call the first. Counted, so that no run with
                // unseen transfers is called clean.
                let name = name.to_str().unwrap_or_default();
                let name = PathBuffer::format(format_args!("{name} (second {})", self.name))?;
                return Some(unknown::thunk_for(name.as_str().as_bytes(), address));
            }
        }
        Some(hooks[index])
    }

    /// The library's own function; at its first use it is looked for in what `owner` finds.
    pub(super) fn real(
        &self,
        index: usize,
        owner: impl FnOnce(&CStr) -> Option<LoadedObject>,
    ) -> Option<usize> {
        let known = self.real[index].load(Ordering::Acquire);
        if known != 0 {
            return Some(known);
        }
        let errno = thread::errno();
        let name = self.functions[index];
        let object = owner(name)?;
        let address = object.function(name)?;
        keep(&object);
        self.real[index].store(address, Ordering::Release);
        thread::set_errno(errno);
        Some(address)
    }
}

/// Its addresses must stay true.
fn keep(object: &LoadedObject) {
    if let Some(soname) = object.soname() {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: a NUL-terminated name; a library that is loaded is found and nothing else.
        unsafe { libc::dlopen(soname.as_ptr(), flags) };
    }
}
