//! The code that a call has loaded: where it lies, so that the collector can read it.
//!
//! Code in a mapped file is named by that file and never read here. Other code is copied once, by
//! its content, into the run directory. What cannot be kept is told as lost; the program never
//! notices.

mod file;
mod keep;
mod locate;
pub(crate) mod memory;

use core::ffi::{CStr, c_char};

use streamsan_wire::{Api, Image, ImageOrigin, RecordKind, image_body};

use crate::attach::Attachment;
use crate::thread::{Outgoing, Thread};
use locate::Part;

/// The parameter of a call that leads to code.
enum Code {
    /// Address of an image.
    Memory(u64),
    /// Address of the name of a file.
    File(u64),
}

fn loaded(api: Api, words: &[u64]) -> Option<Code> {
    let second = *words.get(1)?;
    match api {
        Api::cuModuleLoadData
        | Api::cuModuleLoadDataEx
        | Api::cuModuleLoadFatBinary
        | Api::cuLibraryLoadData => Some(Code::Memory(second)),
        Api::cuModuleLoad | Api::cuLibraryLoadFromFile => Some(Code::File(second)),
        _ => None,
    }
}

/// Records what a call that succeeded has loaded, before its END.
#[inline]
pub(crate) fn after(thread: &Thread, attachment: &Attachment, api: Api, op: u64, words: &[u64]) {
    if let Some(code) = loaded(api, words) {
        record(thread, attachment, op, &code);
    }
}

#[cold]
fn record(thread: &Thread, attachment: &Attachment, op: u64, code: &Code) {
    let tell = |image: Image<'_>| {
        let record =
            Outgoing { kind: RecordKind::Image, depth: 0, api: 0, body: image.body_bytes() };
        thread.publish(attachment, record, |body| image_body(body, op, &image));
    };
    let lost = Image { origin: ImageOrigin::Lost, hash: 0, offset: 0, size: 0, path: &[] };
    match *code {
        Code::Memory(address) => {
            let whole = locate::locate(address, &mut |part| tell_part(&part, &tell, lost));
            if whole.is_none() {
                tell(lost);
            }
        }
        Code::File(name) if name != 0 => {
            // SAFETY: the driver has just read this name.
            let name = unsafe { CStr::from_ptr(name as *const c_char) };
            let mut path = [0; file::LONGEST];
            match file::absolute(name, &mut path) {
                Some(path) => tell(Image { origin: ImageOrigin::File, path, ..lost }),
                None => tell(lost),
            }
        }
        Code::File(_) => tell(lost),
    }
}

fn tell_part(part: &Part, tell: &impl Fn(Image<'_>), lost: Image<'_>) {
    let mut path = [0; file::LONGEST];
    if let Some((path, offset)) = file::behind(part, &mut path) {
        let (origin, size) = (ImageOrigin::File, part.length);
        return tell(Image { origin, hash: 0, offset, size, path });
    }
    match keep::keep(part) {
        Some(hash) => {
            let (origin, size) = (ImageOrigin::Copied, part.length);
            tell(Image { origin, hash, size, ..lost });
        }
        None => tell(Image { size: part.length, ..lost }),
    }
}
