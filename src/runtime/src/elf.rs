//! Loaded objects and their symbols, read from memory: `dlsym` cannot be asked, it is ours.
//!
//! The loader lists its objects by `dl_iterate_phdr`. ThreadSanitizer interposes that function and
//! calls `dlsym` before it has looked up what it interposes, so the search that such a call needs
//! reads the loader's own list instead.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ops::Range;
use core::ptr;

use libc::{Elf64_Phdr, Elf64_Sym};

const DT_NULL: i64 = 0;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_SONAME: i64 = 14;
const DT_VERSYM: i64 = 0x6fff_fff0;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const VERSYM_HIDDEN: u16 = 0x8000;

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// The loader's list of objects as `link.h` declares it for debuggers: its members in front.
#[repr(C)]
struct RDebug {
    version: c_int,
    first: *const LinkMap,
}

/// An object of that list.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const Dynamic,
    next: *const LinkMap,
    previous: *const LinkMap,
}

unsafe extern "C" {
    #[link_name = "_r_debug"]
    static R_DEBUG: RDebug;
}

/// Whether a note of this owner is among the notes of a segment.
fn has_note(mut notes: &[u8], align: usize, owner: &[u8; 4]) -> bool {
    let align = if align == 8 { 8 } else { 4 };
    while let Some((head, rest)) = notes.split_at_checked(12) {
        let word = |at: usize| {
            u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize
        };
        let (name, description) = (word(0), word(4));
        if rest.get(..name).is_some_and(|name| !name.is_empty() && owner.starts_with(name)) {
            return true;
        }
        let body = (12 + name.next_multiple_of(4)).next_multiple_of(align);
        let next = body.saturating_add(description).next_multiple_of(align);
        match notes.get(next..) {
            Some(rest) => notes = rest,
            None => break,
        }
    }
    false
}

/// A loaded shared object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadedObject {
    base: usize,
    low: usize,
    high: usize,
    soname: *const c_char,
    strings: *const c_char,
    symbols: *const Elf64_Sym,
    versions: *const u16,
    gnu_hash: *const u32,
    hash: *const u32,
}

impl LoadedObject {
    /// The first loaded object of this namespace for which `accept` holds.
    pub(crate) fn find(mut accept: impl FnMut(&LoadedObject) -> bool) -> Option<LoadedObject> {
        struct ObjectSearch<'a> {
            accept: &'a mut dyn FnMut(&LoadedObject) -> bool,
            found: Option<LoadedObject>,
        }
        extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
            // SAFETY: the loader passes a valid entry, and `data` is our `Search`.
            let (info, search) = unsafe { (&*info, &mut *data.cast::<ObjectSearch<'_>>()) };
            // SAFETY: the loader describes a mapped object with its program headers.
            let object = unsafe {
                LoadedObject::read(info.dlpi_addr as usize, info.dlpi_phdr, info.dlpi_phnum.into())
            };
            if let Some(object) = object
                && (search.accept)(&object)
            {
                search.found = Some(object);
                return 1;
            }
            0
        }
        let mut search = ObjectSearch { accept: &mut accept, found: None };
        // SAFETY: the callback has the expected signature and `search` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), ptr::from_mut(&mut search).cast()) };
        search.found
    }

    /// Whether an object of this namespace has a note of this owner, its padding included
    /// (`Elf64_Nhdr`, elf(5)).
    pub(crate) fn find_noted(owner: &'static [u8; 4]) -> bool {
        extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
            // SAFETY: the loader passes a valid entry with its program headers, and `data` is what was
            // given below; notes of a loaded object are mapped.
            unsafe {
                let (info, owner) = (&*info, &*data.cast::<[u8; 4]>());
                for index in 0..usize::from(info.dlpi_phnum) {
                    let header = &*info.dlpi_phdr.add(index);
                    if header.p_type != libc::PT_NOTE {
                        continue;
                    }
                    let start = (info.dlpi_addr + header.p_vaddr) as *const u8;
                    let notes = core::slice::from_raw_parts(start, header.p_memsz as usize);
                    if has_note(notes, header.p_align as usize, owner) {
                        return 1;
                    }
                }
            }
            0
        }
        let data = ptr::from_ref(owner).cast_mut().cast();
        // SAFETY: the callback has the expected signature and does not write to `data`.
        unsafe { libc::dl_iterate_phdr(Some(visit), data) != 0 }
    }

    /// The first object of the loader's list for which `accept` holds, found without any call that
    /// another library may interpose. The objects' address ranges are left empty.
    ///
    /// No lock of the loader's is held: this is for the first look-up of a process, which comes
    /// before a thread of it can close an object.
    pub(crate) fn find_while_starting(
        mut accept: impl FnMut(&LoadedObject) -> bool,
    ) -> Option<LoadedObject> {
        // SAFETY: the loader's list, whose entries stay mapped (see above); the pointers of each
        // entry are those of a loaded object.
        unsafe {
            let mut next = ptr::read_volatile(&raw const R_DEBUG.first);
            while let Some(map) = next.as_ref() {
                if !map.dynamic.is_null()
                    && let Some(object) = LoadedObject::of_dynamic(map.base, map.dynamic)
                    && accept(&object)
                {
                    return Some(object);
                }
                next = map.next;
            }
        }
        None
    }

    /// The object that holds `address`, in whatever namespace.
    pub(crate) fn containing(address: usize) -> Option<LoadedObject> {
        if let Some(object) = LoadedObject::find(|object| object.contains(address)) {
            return Some(object);
        }
        // SAFETY: a zeroed `Dl_info` is a valid one to write over; any address may be asked.
        let base = unsafe {
            let mut info: libc::Dl_info = core::mem::zeroed();
            match libc::dladdr(address as *const c_void, &mut info) {
                0 => return None,
                _ => info.dli_fbase as usize,
            }
        };
        // SAFETY: `dladdr` gives the address of the object's ELF header, which every shared
        // object maps with its program headers.
        unsafe {
            let header = &*(base as *const libc::Elf64_Ehdr);
            if header.e_ident[..4] != *b"\x7fELF" {
                return None;
            }
            let headers = (base + header.e_phoff as usize) as *const Elf64_Phdr;
            LoadedObject::read(base, headers, header.e_phnum.into())
        }
    }

    /// # Safety
    /// `headers` points to `count` program headers of an object loaded at `base`.
    unsafe fn read(base: usize, headers: *const Elf64_Phdr, count: usize) -> Option<LoadedObject> {
        let (mut low, mut high) = (usize::MAX, 0);
        let mut dynamic: *const Dynamic = ptr::null();
        for index in 0..count {
            // SAFETY: `index` is below `count`.
            let header = unsafe { &*headers.add(index) };
            let start = base.wrapping_add(header.p_vaddr as usize);
            match header.p_type {
                libc::PT_LOAD => {
                    low = low.min(start);
                    high = high.max(start + header.p_memsz as usize);
                }
                libc::PT_DYNAMIC => dynamic = start as *const Dynamic,
                _ => {}
            }
        }
        if dynamic.is_null() {
            return None;
        }
        // SAFETY: the dynamic section of an object loaded at `base`.
        let object = unsafe { LoadedObject::of_dynamic(base, dynamic) }?;
        Some(LoadedObject { low, high, ..object })
    }

    /// # Safety
    /// `dynamic` is the dynamic section of an object loaded at `base`.
    unsafe fn of_dynamic(base: usize, mut dynamic: *const Dynamic) -> Option<LoadedObject> {
        let mut object = LoadedObject {
            base,
            low: 0,
            high: 0,
            soname: ptr::null(),
            strings: ptr::null(),
            symbols: ptr::null(),
            versions: ptr::null(),
            gnu_hash: ptr::null(),
            hash: ptr::null(),
        };
        // The loader relocates these addresses in place except in read-only dynamic sections.
        let address = |value: u64| match value as usize {
            value if value < base => base + value,
            value => value,
        };
        let mut soname = None;
        // SAFETY: the dynamic section ends with DT_NULL.
        unsafe {
            while (*dynamic).tag != DT_NULL {
                let value = (*dynamic).value;
                match (*dynamic).tag {
                    DT_STRTAB => object.strings = address(value) as *const c_char,
                    DT_SYMTAB => object.symbols = address(value) as *const Elf64_Sym,
                    DT_VERSYM => object.versions = address(value) as *const u16,
                    DT_GNU_HASH => object.gnu_hash = address(value) as *const u32,
                    DT_HASH => object.hash = address(value) as *const u32,
                    DT_SONAME => soname = Some(value as usize),
                    _ => {}
                }
                dynamic = dynamic.add(1);
            }
            if object.strings.is_null() || object.symbols.is_null() {
                return None;
            }
            if let Some(offset) = soname {
                object.soname = object.strings.add(offset);
            }
        }
        Some(object)
    }

    /// Whether the address lies within the object's segments.
    pub(crate) fn contains(&self, address: usize) -> bool {
        (self.low..self.high).contains(&address)
    }

    /// Its DT_SONAME.
    pub(crate) fn soname(&self) -> Option<&CStr> {
        // SAFETY: a string of the object's string table.
        (!self.soname.is_null()).then(|| unsafe { CStr::from_ptr(self.soname) })
    }

    /// Address of the function that the object exports as `name`, in its default version.
    pub(crate) fn function(&self, name: &CStr) -> Option<usize> {
        self.symbol(name).map(|symbol| symbol.start)
    }

    /// Addresses of the function or variable that the object exports as `name`, in its default
    /// version.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<Range<usize>> {
        if !self.gnu_hash.is_null() {
            // SAFETY: the table belongs to this loaded object.
            unsafe { self.symbol_by_gnu_hash(name) }
        } else if !self.hash.is_null() {
            // SAFETY: the table belongs to this loaded object.
            unsafe { self.symbol_by_hash(name) }
        } else {
            None
        }
    }

    unsafe fn symbol_by_gnu_hash(&self, name: &CStr) -> Option<Range<usize>> {
        let hash = name
            .to_bytes()
            .iter()
            .fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
        // SAFETY: layout of DT_GNU_HASH: 4 words, bloom words of 64 bits, buckets, chains; a
        // chain ends with an odd hash.
        unsafe {
            let table = self.gnu_hash;
            let (buckets, first, bloom) = (*table, *table.add(1), *table.add(2));
            if buckets == 0 {
                return None;
            }
            let bucket = table.add(4 + 2 * bloom as usize);
            let chain = bucket.add(buckets as usize);
            let mut index = *bucket.add((hash % buckets) as usize);
            if index < first {
                return None;
            }
            loop {
                let entry = *chain.add((index - first) as usize);
                if entry | 1 == hash | 1
                    && let Some(found) = self.symbol_at(index as usize, name)
                {
                    return Some(found);
                }
                if entry & 1 != 0 {
                    return None;
                }
                index += 1;
            }
        }
    }

    unsafe fn symbol_by_hash(&self, name: &CStr) -> Option<Range<usize>> {
        let hash = name.to_bytes().iter().fold(0u32, |hash, byte| {
            let hash = (hash << 4).wrapping_add(u32::from(*byte));
            let top = hash & 0xf000_0000;
            (hash ^ (top >> 24)) & !top
        });
        // SAFETY: layout of DT_HASH: counts of buckets and chains, buckets, chains; 0 ends one.
        unsafe {
            let (buckets, chains) = (*self.hash, *self.hash.add(1));
            if buckets == 0 {
                return None;
            }
            let mut index = *self.hash.add(2 + (hash % buckets) as usize);
            while index != 0 && index < chains {
                if let Some(found) = self.symbol_at(index as usize, name) {
                    return Some(found);
                }
                index = *self.hash.add((2 + buckets + index) as usize);
            }
        }
        None
    }

    /// # Safety
    /// `index` is one of the symbol table.
    unsafe fn symbol_at(&self, index: usize, name: &CStr) -> Option<Range<usize>> {
        // SAFETY: `index` is one of the symbol table (caller), names lie in the string table.
        unsafe {
            let symbol = &*self.symbols.add(index);
            let hidden = !self.versions.is_null() && *self.versions.add(index) & VERSYM_HIDDEN != 0;
            let kind = symbol.st_info & 0xf;
            if symbol.st_shndx == 0
                || hidden
                || kind > 2
                || CStr::from_ptr(self.strings.add(symbol.st_name as usize)) != name
            {
                return None;
            }
            let start = self.base.wrapping_add(symbol.st_value as usize);
            Some(start..start.saturating_add(symbol.st_size as usize))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_dlsym_where_the_loader_does() {
        let object =
            LoadedObject::find(|object| object.function(c"dlsym").is_some()).expect("libc");
        let found = object.function(c"dlsym").expect("dlsym");
        // SAFETY: a plain look-up.
        let expected = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"dlsym".as_ptr()) };
        assert_eq!(found, expected as usize);
        assert!(object.contains(found));
        assert!(object.function(c"streamsan_no_such_symbol").is_none());
    }

    #[test]
    fn finds_the_same_function_while_the_process_starts() {
        let object =
            LoadedObject::find(|object| object.function(c"dlsym").is_some()).expect("libc");
        let early = LoadedObject::find_while_starting(|object| object.function(c"dlsym").is_some());
        assert_eq!(early.and_then(|early| early.function(c"dlsym")), object.function(c"dlsym"));
    }

    #[test]
    fn finds_the_object_of_an_address() {
        let object =
            LoadedObject::containing(libc::printf as *const () as usize).expect("an object");
        assert!(object.soname().is_some_and(|name| name.to_bytes().starts_with(b"libc.so")));
    }
}
