//! Which file an image in memory was mapped from.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use super::locate::Part;

/// `PATH_MAX`.
pub(super) const LONGEST: usize = 4096;

struct PathSearch<'a> {
    part: Part,
    /// Where the name is copied to, NUL-terminated.
    name: &'a mut [u8; LONGEST],
    offset: Option<u64>,
}

/// The file of the loaded object that holds all of `part` where nobody may write to it, and the
/// offset in that file.
pub(super) fn behind<'a>(part: &Part, path: &'a mut [u8; LONGEST]) -> Option<(&'a [u8], u64)> {
    let mut name = [0; LONGEST];
    let mut search = PathSearch { part: *part, name: &mut name, offset: None };
    // SAFETY: the callback takes what it is given here, and is called during this call only.
    unsafe { libc::dl_iterate_phdr(Some(look), ptr::from_mut(&mut search).cast()) };
    let offset = search.offset?;
    let name = CStr::from_bytes_until_nul(&name).ok()?;
    // The program itself has no name.
    let name = if name.is_empty() { c"/proc/self/exe" } else { name };
    Some((absolute(name, path)?, offset))
}

unsafe extern "C" fn look(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the loader's own description, and the search of `behind`.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<PathSearch<'_>>()) };
    let end = search.part.address.saturating_add(search.part.length);
    for index in 0..usize::from(info.dlpi_phnum) {
        // SAFETY: as many headers as the loader says.
        let header = unsafe { &*info.dlpi_phdr.add(index) };
        let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
        let inside = header.p_type == libc::PT_LOAD
            && header.p_flags & libc::PF_W == 0
            && (start..start.saturating_add(header.p_filesz)).contains(&search.part.address)
            && end <= start.saturating_add(header.p_filesz);
        if !inside {
            continue;
        }
        if !info.dlpi_name.is_null() {
            // SAFETY: the loader's own text.
            let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes_with_nul();
            let Some(place) = search.name.get_mut(..name.len()) else { return 1 };
            place.copy_from_slice(name);
        }
        search.offset = Some(header.p_offset + (search.part.address - start));
        return 1;
    }
    0
}

/// The absolute path of a file that exists.
pub(super) fn absolute<'a>(name: &CStr, path: &'a mut [u8; LONGEST]) -> Option<&'a [u8]> {
    // SAFETY: a NUL-terminated name, and room for PATH_MAX bytes.
    let found = unsafe { libc::realpath(name.as_ptr(), path.as_mut_ptr().cast()) };
    if found.is_null() {
        return None;
    }
    let length = path.iter().position(|byte| *byte == 0)?;
    Some(&path[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_lie_in_the_program_file_and_the_stack_does_not() {
        static TEXT: &[u8] = b"a text that nobody writes to, somewhere in the file of this test";
        let part =
            |bytes: &[u8]| Part { address: bytes.as_ptr() as u64, length: bytes.len() as u64 };
        let mut path = [0; LONGEST];
        let (path, offset) = behind(&part(TEXT), &mut path).expect("it is in the file");
        let path = std::str::from_utf8(path).expect("the path is text");
        let file = std::fs::read(path).expect("the file can be read");
        assert_eq!(&file[offset as usize..][..TEXT.len()], TEXT);
        let copy = TEXT.to_vec();
        assert_eq!(behind(&part(&copy), &mut [0; LONGEST]), None);
    }
}
