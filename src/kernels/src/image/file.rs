//! The kind of an image, told by its content.

use super::bytes::{u32_at, until_nul};
use super::elf::{ELF_MAGIC, Elf};
use super::fatbin::{CONTAINER_MAGIC, container_size, read_container};
use super::{CodeKind, ComputeCapability, Container, Cubin, Entry, ImageError, Target, select};

/// Sections of host programs that hold fat binaries, and whether these are to be linked first.
/// `.nvFatBinSegment` holds the wrappers: addresses, which the loader fills in, of what the two
/// others hold.
const SECTIONS: [(&[u8], bool); 2] = [(b".nv_fatbin", false), (b"__nv_relfatbin", true)];
/// First number of the wrapper that compilers put around a fat binary in a program.
const WRAPPER_MAGIC: u32 = 0x4662_43b1;
/// Fat binaries lie at multiples of it.
const ALIGNMENT: usize = 8;

/// All GPU code of an image.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// In the order of the image; at least one has an entry.
    pub containers: Vec<Container<'a>>,
}

impl<'a> Image<'a> {
    /// Reads a whole image. Code is not unpacked yet.
    ///
    /// # Errors
    /// When it is no image, holds no code, or is damaged.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ImageError> {
        let containers = if bytes.starts_with(ELF_MAGIC) {
            elf(bytes)?
        } else if u32_at(bytes, 0) == Some(CONTAINER_MAGIC) {
            section(bytes, 0, bytes.len(), false)?
        } else if u32_at(bytes, 0) == Some(WRAPPER_MAGIC) {
            // Its pointer means nothing in a file; what it points to may follow.
            scan(bytes)
        } else if let Some(target) = ptx_target(bytes) {
            let entry = Entry::bare(CodeKind::Ptx, target, bytes);
            let size = bytes.len() as u64;
            vec![Container { offset: 0, size, relocatable: false, entries: vec![entry] }]
        } else {
            return Err(ImageError::Unrecognized);
        };
        let empty = containers.iter().all(|container| container.entries.is_empty());
        if empty { Err(ImageError::NoCode) } else { Ok(Self { containers }) }
    }

    /// Every piece of code, in the order of the image.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.containers.iter().flat_map(|container| &container.entries)
    }

    /// The code that the driver would load on a device, of each container that the driver loads by
    /// itself.
    pub fn selected(&self, device: ComputeCapability) -> impl Iterator<Item = &Entry<'a>> {
        self.containers.iter().filter_map(move |container| select(&container.entries, device))
    }
}

fn elf(bytes: &[u8]) -> Result<Vec<Container<'_>>, ImageError> {
    let elf = Elf::parse(bytes)?;
    if elf.is_for_gpu() {
        let cubin = Cubin::from_elf(&elf)?;
        let entry = Entry::bare(CodeKind::Cubin, cubin.target, bytes);
        let relocatable = cubin.relocatable;
        let size = bytes.len() as u64;
        return Ok(vec![Container { offset: 0, size, relocatable, entries: vec![entry] }]);
    }
    let mut containers = Vec::new();
    for found in elf.sections() {
        let found = found?;
        // An empty section has no place in the file: its offset can be any.
        if found.data.is_empty() {
            continue;
        }
        let Some((_, relocatable)) = SECTIONS.iter().find(|(name, _)| *name == found.name) else {
            continue;
        };
        let start = found.offset as usize;
        containers.extend(section(bytes, start, start + found.data.len(), *relocatable)?);
    }
    if containers.is_empty() {
        // Section headers can be stripped, and some libraries keep their code in other sections.
        containers = scan(bytes);
    }
    Ok(containers)
}

/// The fat binaries of a section: one behind the other, with padding in between.
fn section(
    bytes: &[u8],
    start: usize,
    end: usize,
    relocatable: bool,
) -> Result<Vec<Container<'_>>, ImageError> {
    let bytes = &bytes[..end];
    let mut containers = Vec::new();
    let mut at = start;
    while at < end {
        if u32_at(bytes, at) == Some(CONTAINER_MAGIC) {
            let (container, behind) = read_container(bytes, at)?;
            containers.push(Container { relocatable, ..container });
            at = start + (behind - start).next_multiple_of(ALIGNMENT);
        } else {
            at += ALIGNMENT;
        }
    }
    Ok(containers)
}

/// Fat binaries anywhere. What only looks like one is passed over.
fn scan(bytes: &[u8]) -> Vec<Container<'_>> {
    let mut containers = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        at = match container_size(&bytes[at..]).and_then(|_| read_container(bytes, at).ok()) {
            Some((container, behind)) => {
                containers.push(container);
                behind.next_multiple_of(ALIGNMENT)
            }
            None => at + ALIGNMENT,
        };
    }
    containers
}

/// The target of PTX, if it names one that is known; `None` where the bytes are no PTX.
fn ptx_target(bytes: &[u8]) -> Option<Option<Target>> {
    let text = until_nul(bytes);
    let mut rest = skip_blank(text);
    if !rest.starts_with(b".version") {
        return None;
    }
    while let Some(line) = rest.split(|byte| *byte == b'\n').next().filter(|_| !rest.is_empty()) {
        if let Some(target) = line.trim_ascii_start().strip_prefix(b".target") {
            let end = |byte: &u8| *byte == b',' || *byte == b'/' || byte.is_ascii_whitespace();
            let name = target.trim_ascii_start().split(end).next().unwrap_or_default();
            return Some(std::str::from_utf8(name).ok().and_then(|name| name.parse().ok()));
        }
        rest = &rest[(line.len() + 1).min(rest.len())..];
    }
    Some(None)
}

/// The text behind white space and comments.
fn skip_blank(mut text: &[u8]) -> &[u8] {
    let behind = |text: &[u8], end: &[u8]| {
        let at = text.windows(end.len()).position(|window| window == end);
        at.map_or(text.len(), |at| at + end.len())
    };
    loop {
        text = text.trim_ascii_start();
        let skipped = match text {
            [b'/', b'/', ..] => behind(text, b"\n"),
            [b'/', b'*', rest @ ..] => 2 + behind(rest, b"*/"),
            _ => return text,
        };
        text = &text[skipped..];
    }
}
