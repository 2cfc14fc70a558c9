//! The one entry to this room.

use crate::image::Image;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use streamsan_model::SourceFrame;

/// Where distributions put separate debug files.
const DEBUG_DIRECTORIES: [&str; 1] = ["/usr/lib/debug"];

/// Answers where in the source an address of an image lies.
#[derive(Debug)]
pub struct Symbolizer {
    directories: Vec<PathBuf>,
    /// What was opened, by path and build id; `None` where that failed, so that it is tried once.
    images: HashMap<(PathBuf, Option<Vec<u8>>), Option<Image>>,
}

impl Symbolizer {
    /// One that looks for separate debug files where distributions put them.
    pub fn new() -> Self {
        Self::with_debug_directories(DEBUG_DIRECTORIES.map(PathBuf::from))
    }

    /// One that looks for separate debug files below these directories, `.build-id` in each.
    pub fn with_debug_directories(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { directories: directories.into_iter().collect(), images: HashMap::new() }
    }

    /// The functions that a return address lies in, innermost first: several where functions were
    /// inlined, all but the last of them marked so. Empty where nothing is known.
    ///
    /// `image` is an absolute path, `build_id` that of the image that ran, where it had one;
    /// `offset` is the return address minus the load bias, so an address as the file has it. The
    /// call lies before it.
    pub fn source(
        &mut self,
        image: &Path,
        build_id: Option<&[u8]>,
        offset: u64,
    ) -> Vec<SourceFrame> {
        let key = (image.to_owned(), build_id.map(<[u8]>::to_vec));
        let opened = self.images.entry(key);
        let opened = opened.or_insert_with(|| Image::open(image, build_id, &self.directories));
        opened.as_ref().map_or_else(Vec::new, |image| image.source(offset.saturating_sub(1)))
    }
}

impl Default for Symbolizer {
    fn default() -> Self {
        Self::new()
    }
}
