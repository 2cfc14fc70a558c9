//! Code images: PTX text, or a fat binary that holds PTX text.
//!
//! The container: a header (magic 0xBA55ED50, version, size of the header, size of what follows)
//! and entries, each with its own header (kind, version, size of the header, size of the payload,
//! flags). Only text that is not compressed is read, and machine code cannot be run.

use std::sync::Arc;

use streamsan_ptx as ptx;

use super::sim::say;
use crate::errors::CuError;
use streamsan_interp::Program;

/// First four bytes of a fat binary.
pub(crate) const FATBIN_MAGIC: u32 = 0xBA55_ED50;
const ELF_MAGIC: &[u8] = b"\x7fELF";
const KIND_PTX: u16 = 1;
const COMPRESSED: u64 = 0x8000 | 0x2000 | 0x1000;

/// A program made from an image.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(super) program: Arc<Program>,
    /// PTX version, major times ten plus minor.
    pub(super) version: i32,
}

/// Why an image was refused: the driver's status, and a line for the program's error log.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: CuError,
    pub(crate) message: String,
}

impl Refusal {
    fn new(status: CuError, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into() }
    }
}

/// Reads, parses and lowers an image. The reason of a refusal also goes to standard error, because
/// most programs do not ask for a log.
pub(crate) fn compile(image: &[u8]) -> Result<Code, Refusal> {
    try_compile(image).inspect_err(|refusal| say(&refusal.message))
}

fn try_compile(image: &[u8]) -> Result<Code, Refusal> {
    let text = text_of(image)?;
    let text = std::str::from_utf8(text)
        .map_err(|_| Refusal::new(CuError::INVALID_IMAGE, "the code image is not PTX text"))?;
    if text.trim().is_empty() {
        return Err(Refusal::new(CuError::INVALID_IMAGE, "the code image is empty"));
    }
    let module = ptx::parse(text).map_err(|error| {
        let status = if is_ptx(text) { CuError::INVALID_PTX } else { CuError::INVALID_IMAGE };
        Refusal::new(status, format!("PTX refused: {error}"))
    })?;
    let (major, minor) = module.version;
    let program = Program::lower(&module)
        .map_err(|error| Refusal::new(CuError::INVALID_PTX, format!("PTX refused: {error}")))?;
    let version = i32::try_from(major.saturating_mul(10).saturating_add(minor)).unwrap_or(0);
    Ok(Code { program: Arc::new(program), version })
}

/// Whether a text starts as every PTX module does, behind blanks and comments.
fn is_ptx(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        let behind = match (rest.strip_prefix("//"), rest.strip_prefix("/*")) {
            (Some(comment), _) => comment.split_once('\n'),
            (_, Some(comment)) => comment.split_once("*/"),
            (None, None) => return rest.starts_with(".version"),
        };
        let Some((_, after)) = behind else { return false };
        rest = after.trim_start();
    }
}

/// The PTX text in an image.
fn text_of(image: &[u8]) -> Result<&[u8], Refusal> {
    if image.starts_with(ELF_MAGIC) {
        let message = "the module is machine code (a cubin), which the simulated driver cannot \
                       run: give it PTX";
        return Err(Refusal::new(CuError::NO_BINARY_FOR_GPU, message));
    }
    if !image.starts_with(&FATBIN_MAGIC.to_le_bytes()) {
        return Ok(image);
    }
    let broken = || Refusal::new(CuError::INVALID_IMAGE, "the fat binary is damaged");
    let mut at = usize::from(number::<2>(image, 6).ok_or_else(broken)? as u16);
    let mut compressed = false;
    while at + 64 <= image.len() {
        let entry = &image[at..];
        let kind = number::<2>(entry, 0).ok_or_else(broken)? as u16;
        let header = number::<4>(entry, 4).ok_or_else(broken)? as usize;
        let payload = number::<8>(entry, 8).ok_or_else(broken)?;
        let payload = usize::try_from(payload).map_err(|_| broken())?;
        let flags = number::<8>(entry, 40).ok_or_else(broken)?;
        let end = header.checked_add(payload).filter(|end| header >= 64 && *end <= entry.len());
        let end = end.ok_or_else(broken)?;
        if kind == KIND_PTX {
            if flags & COMPRESSED == 0 {
                let text = &entry[header..end];
                let length = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
                return Ok(&text[..length]);
            }
            compressed = true;
        }
        at += end;
    }
    let message = if compressed {
        "the fat binary holds compressed PTX only: build it with `--no-compress`"
    } else {
        "the fat binary holds machine code only, which the simulated driver cannot run: build it \
         with PTX (`-gencode arch=compute_90,code=compute_90 --no-compress`)"
    };
    Err(Refusal::new(CuError::NO_BINARY_FOR_GPU, message))
}

/// Little-endian number of `N` bytes.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut wide = [0; 8];
    wide[..N].copy_from_slice(bytes.get(at..at + N)?);
    Some(u64::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b".version 7.0\n.target sm_70\n.address_size 64\n";

    fn entry(kind: u16, flags: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[0..2].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&64u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes[40..48].copy_from_slice(&flags.to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn fatbin(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut bytes = FATBIN_MAGIC.to_le_bytes().to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn the_first_plain_ptx_of_a_container_is_found() {
        let padded = [TEXT, &[0; 5]].concat();
        let image = fatbin(&[entry(2, 0, b"machine code"), entry(1, 0, &padded)]);
        assert_eq!(text_of(&image).unwrap(), TEXT);
        assert_eq!(text_of(TEXT).unwrap(), TEXT);
    }

    #[test]
    fn images_that_hold_no_readable_ptx_say_which_status_and_why() {
        let machine = fatbin(&[entry(2, 0, b"machine code")]);
        let compressed = fatbin(&[entry(1, 0x8000, b"zzz")]);
        let mut damaged = fatbin(&[entry(1, 0, TEXT)]);
        damaged.truncate(damaged.len() - 1);
        let cases: [(&[u8], CuError, &str); 5] = [
            (b"\x7fELF....", CuError::NO_BINARY_FOR_GPU, "cubin"),
            (&machine, CuError::NO_BINARY_FOR_GPU, "machine code only"),
            (&compressed, CuError::NO_BINARY_FOR_GPU, "--no-compress"),
            (&damaged, CuError::INVALID_IMAGE, "damaged"),
            (&FATBIN_MAGIC.to_le_bytes(), CuError::INVALID_IMAGE, "damaged"),
        ];
        for (image, status, part) in cases {
            let refusal = text_of(image).unwrap_err();
            assert_eq!(refusal.status, status, "{}", refusal.message);
            assert!(refusal.message.contains(part), "{}", refusal.message);
        }
    }

    #[test]
    fn what_is_no_ptx_is_refused() {
        for (image, status) in [
            (&b""[..], CuError::INVALID_IMAGE),
            (b"  \n", CuError::INVALID_IMAGE),
            (b"\xff\xfe", CuError::INVALID_IMAGE),
            (b"this is no PTX", CuError::INVALID_IMAGE),
            (b"// .version 7.0", CuError::INVALID_IMAGE),
            (b"// text\n/* of */ .version", CuError::INVALID_PTX),
            (b".version 7.0 .nonsense", CuError::INVALID_PTX),
        ] {
            assert_eq!(try_compile(image).unwrap_err().status, status, "{image:?}");
        }
    }
}
