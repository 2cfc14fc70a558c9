//! An image and its debug file, opened.

use crate::dwarf::{Dwarf, Refusal};
use crate::elf::{self, Contents};
use crate::table::{FunctionTable, Source};
use crate::{packed, separate};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use streamsan_model::SourceFrame;

/// Number of inlined functions at one address beyond which the outermost ones are left out.
const DEEPEST: usize = 64;

/// The sources for the code of one image.
pub(crate) struct Image {
    dwarf: Option<Dwarf>,
    /// Whether the DWARF was too large to be read.
    pub(crate) is_too_large: bool,
    /// The full table of functions; or the packed table, followed by the table of the functions
    /// that other images may call.
    functions: Vec<FunctionTable>,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image").field("dwarf", &self.dwarf.is_some()).finish_non_exhaustive()
    }
}

impl Image {
    /// Opens an image or, if the image is gone, the debug file of its build id.
    pub(crate) fn open(
        path: &Path,
        build_id: Option<&[u8]>,
        directories: &[PathBuf],
        room: u64,
    ) -> Option<Self> {
        let image = elf::open(path).and_then(|file| Some((Contents::read(&file)?, file)));
        let image = image.filter(|(contents, _)| is_wanted(contents, build_id));
        let id = image.as_ref().and_then(|(contents, _)| contents.build_id.clone());
        let id = id.or_else(|| build_id.map(<[u8]>::to_vec));
        let has_dwarf = image.as_ref().is_some_and(|(contents, _)| contents.has_dwarf());
        let debug = if has_dwarf {
            None
        } else {
            let by_id = id.as_deref().and_then(|id| separate::by_build_id(directories, id));
            by_id.or_else(|| separate::by_link(directories, path, &image.as_ref()?.0))
        };
        let debug = debug.and_then(|path| {
            let file = elf::open(&path)?;
            Some((path, Contents::read(&file)?, file))
        });
        if image.is_none() && debug.is_none() {
            return None;
        }
        let dwarf = match (&debug, &image) {
            (Some((path, contents, file)), _) => Some((&**path, contents, file)),
            (None, Some((contents, file))) => Some((path, contents, file)),
            (None, None) => None,
        };
        let dwarf = dwarf.filter(|(_, contents, _)| contents.has_dwarf());
        let dwarf = dwarf.map(|(path, contents, file)| {
            let shared = separate::shared(directories, path, contents);
            Dwarf::read(path, (file, contents), shared.as_deref(), room)
        });
        let is_too_large = matches!(dwarf, Some(Err(Refusal::TooLarge)));
        // The table of the debug file is the full one of an image that is stripped.
        let tables = debug.map(|(_, contents, file)| (contents, file)).into_iter().chain(image);
        let functions = functions(tables.collect());
        Some(Self { dwarf: dwarf.and_then(Result::ok), is_too_large, functions })
    }

    /// The functions at an address, innermost first; empty where nothing is known.
    pub(crate) fn source(&self, address: u64) -> Vec<SourceFrame> {
        let mut frames = self.dwarf.as_ref().map_or_else(Vec::new, |dwarf| inlined(dwarf, address));
        let is_unnamed = frames.last().is_none_or(|frame| frame.function.is_none());
        let mut tables = self.functions.iter().filter(|_| is_unnamed);
        if let Some(name) = tables.find_map(|functions| functions.name(address)) {
            let function = Some(Arc::from(streamsan_names::function(&name)));
            match frames.last_mut() {
                Some(frame) => frame.function = function,
                None => {
                    frames.push(SourceFrame { function, file: None, line: None, inlined: false })
                }
            }
        }
        frames
    }
}

fn is_wanted(contents: &Contents, build_id: Option<&[u8]>) -> bool {
    build_id.is_none() || contents.build_id.as_deref() == build_id
}

/// The tables that name functions, in the order of the look-up.
fn functions(mut files: Vec<(Contents, File)>) -> Vec<FunctionTable> {
    files.sort_by_key(|(contents, _)| !contents.has_full_symbols);
    // A packed table lacks the functions that other images may call.
    let is_stripped = files.first().is_some_and(|(contents, _)| !contents.has_full_symbols);
    let mut packed = files.iter().filter(|_| is_stripped);
    let packed =
        packed.find_map(|(contents, file)| packed::functions(file, contents.packed_symbols?));
    let read = |(contents, file): (Contents, File)| {
        FunctionTable::read(Source::File(file), contents.symbols?)
    };
    let table = files.into_iter().find_map(read);
    packed.into_iter().chain(table).collect()
}

/// The functions at an address, from DWARF.
fn inlined(dwarf: &Dwarf, address: u64) -> Vec<SourceFrame> {
    let mut found = Vec::new();
    let Some(mut frames) = dwarf.frames(address) else { return found };
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
        let location = frame.location.as_ref();
        found.push(SourceFrame {
            function: name.map(|name| Arc::from(streamsan_names::function(&name))),
            file: location.and_then(|at| at.file).map(Arc::from),
            line: location.and_then(|at| at.line).filter(|&line| line > 0),
            inlined: true,
        });
    }
    if let Some(outermost) = found.last_mut() {
        outermost.inlined = false;
    }
    if found.len() > DEEPEST {
        found.drain(DEEPEST - 1..found.len() - 1);
    }
    found
}
