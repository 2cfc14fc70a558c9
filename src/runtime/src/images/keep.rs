//! One copy of an image in the run directory, under its hash.

use core::sync::atomic::{AtomicU32, Ordering};

use streamsan_wire::{PathBuffer, image_file};
use xxhash_rust::xxh3::Xxh3;

use super::locate::Part;
use super::memory::read;
use crate::attach;

const CHUNK: usize = 16 << 10;

/// Keeps an image; its hash, `None` where that was not possible.
pub(super) fn keep(part: &Part) -> Option<u64> {
    let directory = attach::directory()?;
    let mut hash = Xxh3::new();
    in_chunks(part, &mut |bytes| {
        hash.update(bytes);
        true
    })?;
    let hash = hash.digest();
    let place = image_file(directory, hash, part.length)?;
    // SAFETY: a NUL-terminated path.
    if unsafe { libc::access(place.as_c_str().as_ptr(), libc::F_OK) } == 0 {
        return Some(hash);
    }
    write(part, directory, &place).map(|()| hash)
}

/// Reads an image piece by piece, as long as `take` says so. `None` where it was not read to its
/// end.
fn in_chunks(part: &Part, take: &mut dyn FnMut(&[u8]) -> bool) -> Option<()> {
    let mut chunk = [0; CHUNK];
    let mut done = 0;
    while done < part.length {
        let piece = &mut chunk[..(part.length - done).min(CHUNK as u64) as usize];
        if !read(part.address + done, piece) || !take(piece) {
            return None;
        }
        done += piece.len() as u64;
    }
    Some(())
}

/// Writes it beside its place and moves it there, so that nobody reads half of it.
fn write(part: &Part, directory: &str, place: &PathBuffer) -> Option<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    // SAFETY: no preconditions.
    let process = unsafe { libc::getpid() };
    let beside = PathBuffer::format(format_args!("{directory}/copy-{process}-{number}"))?;
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: a NUL-terminated path; the descriptor is ours.
    let file = unsafe { libc::open(beside.as_c_str().as_ptr(), flags, 0o600) };
    if file < 0 {
        return None;
    }
    let written = in_chunks(part, &mut |mut bytes| {
        while !bytes.is_empty() {
            // SAFETY: a live slice and a descriptor of ours.
            let count = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
            match usize::try_from(count) {
                Ok(count) if count > 0 => bytes = &bytes[count..],
                _ => return false,
            }
        }
        true
    });
    // SAFETY: the descriptor is ours; both paths are NUL-terminated.
    unsafe {
        libc::close(file);
        let (from, to) = (beside.as_c_str().as_ptr(), place.as_c_str().as_ptr());
        if written.is_some() && libc::rename(from, to) == 0 {
            return Some(());
        }
        libc::unlink(from);
    }
    None
}
