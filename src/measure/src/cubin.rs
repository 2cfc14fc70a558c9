//! The names of the kernels of a cubin, from its section names: each kernel has a section
//! `.nv.info.NAME` (and `.text.NAME`).
//!
//! Source: ELF-64 object file format; the names of the sections are those that `cuobjdump -elf`
//! prints. Every number in the file may be wrong; none leads out of it.

const PREFIX: &str = ".nv.info.";

/// The names of all functions that have information of their own, `None` where the file is no ELF
/// file of 64 bits or its tables lie outside of it.
pub(crate) fn kernels(image: &[u8]) -> Option<Vec<&str>> {
    if image.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let table = usize::try_from(number(image, 40, 8)?).ok()?;
    let size = number(image, 58, 2)? as usize;
    if size < 64 {
        return None;
    }
    let section = |index: usize| table.checked_add(index.checked_mul(size)?);
    let field = |index: usize, at: usize, bytes: usize| {
        number(image, section(index)?.checked_add(at)?, bytes)
    };
    // More than 65,279 sections: the first one tells how many, and which holds the names.
    let count = match number(image, 60, 2)? {
        0 => field(0, 32, 8)? as usize,
        count => count as usize,
    };
    let names = match number(image, 62, 2)? {
        0xffff => field(0, 40, 4)? as usize,
        names => names as usize,
    };
    let text = field(names, 24, 8)? as usize;
    let text = image.get(text..text.checked_add(field(names, 32, 8)? as usize)?)?;
    let mut found = Vec::new();
    for index in 0..count {
        let name = text.get(field(index, 0, 4)? as usize..)?;
        let name = &name[..name.iter().position(|byte| *byte == 0)?];
        if let Some(name) = std::str::from_utf8(name).ok().and_then(|n| n.strip_prefix(PREFIX)) {
            found.push(name);
        }
    }
    Some(found)
}

fn number(image: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let mut value = [0; 8];
    value[..bytes].copy_from_slice(image.get(at..at.checked_add(bytes)?)?);
    Some(u64::from_le_bytes(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(names: &[&str]) -> Vec<u8> {
        let mut text = vec![0];
        let starts: Vec<_> = names
            .iter()
            .map(|name| {
                let start = text.len() as u32;
                text.extend(name.bytes().chain([0]));
                start
            })
            .collect();
        let mut image = b"\x7fELF\x02\x01".to_vec();
        image.resize(64, 0);
        image.extend(&text);
        let table = image.len() as u64;
        image[40..48].copy_from_slice(&table.to_le_bytes());
        image[58..60].copy_from_slice(&64u16.to_le_bytes());
        image[60..62].copy_from_slice(&(names.len() as u16 + 1).to_le_bytes());
        let mut section = |name: u32, offset: u64, size: u64| {
            let mut header = [0; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[24..32].copy_from_slice(&offset.to_le_bytes());
            header[32..40].copy_from_slice(&size.to_le_bytes());
            image.extend(header);
        };
        section(0, 64, text.len() as u64);
        starts.iter().for_each(|start| section(*start, 0, 0));
        image
    }

    #[test]
    fn kernels_are_named_by_their_sections() {
        let image = file(&[".text._Z4fillPf", ".nv.info", ".nv.info._Z4fillPf", ".nv.info.copy"]);
        assert_eq!(kernels(&image), Some(vec!["_Z4fillPf", "copy"]));
    }

    #[test]
    fn damaged_files_give_nothing() {
        let image = file(&[".nv.info.copy"]);
        assert_eq!(kernels(b"//\n.version 8.0"), None);
        for length in 0..image.len() - 60 {
            assert_eq!(kernels(&image[..length]), None, "{length}");
        }
        for at in 40..64 {
            let mut damaged = image.clone();
            damaged[at] = 0xee;
            let _names = kernels(&damaged); // must not panic
        }
    }
}
