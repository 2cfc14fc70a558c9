//! The program headers of a loaded object: where its code and its unwind information are.

use libc::Elf64_Phdr;

use super::objects::BUILD_ID_BYTES;

/// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`: how all linkers write the pointer to `.eh_frame`.
const RELATIVE: u8 = 0x1b;
const NT_GNU_BUILD_ID: u32 = 3;

#[derive(Clone, Copy)]
pub(super) struct Sections {
    /// First and one past the last byte of all segments.
    pub(super) low: usize,
    pub(super) high: usize,
    /// The same of those that hold code.
    pub(super) code: (usize, usize),
    pub(super) eh_frame_hdr: Option<&'static [u8]>,
    /// From its begin to the end of its segment: it ends itself by a zero.
    pub(super) eh_frame: Option<&'static [u8]>,
    /// Bytes, and how many.
    pub(super) build_id: ([u8; BUILD_ID_BYTES], usize),
}

/// `None` for an object without code.
///
/// # Safety
/// `headers` are the program headers of an object loaded at `bias`, which stays loaded. What is
/// returned is good as long.
pub(super) unsafe fn sections(bias: usize, headers: &[Elf64_Phdr]) -> Option<Sections> {
    let start = |header: &Elf64_Phdr| bias.wrapping_add(header.p_vaddr as usize);
    let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let hull = |flags: u32| {
        let parts = loads().filter(|header| header.p_flags & flags == flags);
        parts.fold((usize::MAX, 0), |(low, high): (usize, usize), header| {
            (low.min(start(header)), high.max(start(header).wrapping_add(header.p_memsz as usize)))
        })
    };
    let ((low, high), code) = (hull(0), hull(libc::PF_X));
    if code.0 >= code.1 {
        return None;
    }
    let readable_to = |address: usize| {
        loads()
            .filter(|header| header.p_flags & libc::PF_R != 0)
            .map(|header| (start(header), start(header) + header.p_filesz as usize))
            .find(|(begin, end)| (*begin..*end).contains(&address))
            .map(|(_, end)| end)
    };
    let mut found = Sections {
        low,
        high,
        code,
        eh_frame_hdr: None,
        eh_frame: None,
        build_id: ([0; BUILD_ID_BYTES], 0),
    };
    for header in headers {
        let at = start(header);
        let len = header.p_filesz as usize;
        let Some(end) = readable_to(at) else { continue };
        if at.checked_add(len).is_none_or(|stop| stop > end) {
            continue;
        }
        // SAFETY: inside a readable segment of the object (just checked).
        let bytes: &'static [u8] = unsafe { core::slice::from_raw_parts(at as *const u8, len) };
        match header.p_type {
            libc::PT_GNU_EH_FRAME if bytes.len() >= 8 && bytes[..2] == [1, RELATIVE] => {
                let distance = i32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
                let begin = (at + 4).wrapping_add_signed(distance as isize);
                let Some(end) = readable_to(begin) else { continue };
                found.eh_frame_hdr = Some(bytes);
                // SAFETY: inside a readable segment of the object.
                found.eh_frame =
                    Some(unsafe { core::slice::from_raw_parts(begin as *const u8, end - begin) });
            }
            libc::PT_NOTE if found.build_id.1 == 0 => {
                if let Some(id) = build_id(bytes, header.p_align.max(4) as usize) {
                    let len = id.len().min(BUILD_ID_BYTES);
                    found.build_id.0[..len].copy_from_slice(&id[..len]);
                    found.build_id.1 = len;
                }
            }
            _ => {}
        }
    }
    Some(found)
}

/// The GNU build id among notes.
fn build_id(mut notes: &[u8], align: usize) -> Option<&[u8]> {
    loop {
        let word = |at: usize| {
            let bytes = notes.get(at..at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let (name, text, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let begin = (12 + name).next_multiple_of(align.min(8));
        let content = notes.get(begin..begin.checked_add(text)?)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..16) == Some(b"GNU\0") {
            return Some(content);
        }
        notes = notes.get((begin + text).next_multiple_of(align.min(8))..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::build_id;

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let mut notes = Vec::new();
        for (kind, content) in [(1u32, &[9u8, 9, 9, 9][..]), (3, &[1, 2, 3, 4, 5, 6])] {
            notes.extend(4u32.to_le_bytes());
            notes.extend((content.len() as u32).to_le_bytes());
            notes.extend(kind.to_le_bytes());
            notes.extend(b"GNU\0");
            notes.extend(content);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id(&notes, 4), Some(&[1, 2, 3, 4, 5, 6][..]));
        assert_eq!(build_id(&notes[..20], 4), None);
    }
}
