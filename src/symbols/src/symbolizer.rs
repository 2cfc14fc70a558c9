//! The symboliser: the only entry to this crate.

use crate::image::Image;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use streamsan_model::SourceFrame;

/// Directories in which distributions put separate debug files.
const DEBUG_DIRECTORIES: [&str; 1] = ["/usr/lib/debug"];

/// Bytes of an image's DWARF that are read, unpacked and with the parts that it shares with others.
/// An image with more has no lines; its functions get their names from its symbols.
pub const LARGEST_DWARF: u64 = 1 << 30;

/// The message to a user about an image that has more debug information than [`LARGEST_DWARF`].
pub fn without_lines(image: &Path) -> String {
    format!(
        "{} has more than {} GiB of debug information, which is not read: its functions are named \
         without lines",
        image.display(),
        LARGEST_DWARF >> 30
    )
}

/// Finds the source places of addresses in images.
#[derive(Debug)]
pub struct Symbolizer {
    directories: Vec<PathBuf>,
    /// Bytes of DWARF that are read for an image.
    room: u64,
    /// The opened images, by path and build id; `None` where opening failed, so that it is tried
    /// once.
    images: HashMap<(PathBuf, Option<Vec<u8>>), Option<Image>>,
}

impl Symbolizer {
    /// A symboliser that looks for separate debug files where distributions put them.
    pub fn new() -> Self {
        Self::with_debug_directories(DEBUG_DIRECTORIES.map(PathBuf::from))
    }

    /// A symboliser that looks for separate debug files below the given directories, `.build-id` in
    /// each.
    pub fn with_debug_directories(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        let directories = directories.into_iter().collect();
        Self { directories, room: LARGEST_DWARF, images: HashMap::new() }
    }

    /// Sets another bound than [`LARGEST_DWARF`].
    #[must_use]
    pub fn reading_at_most(mut self, bytes: u64) -> Self {
        self.room = bytes;
        self
    }

    /// The images whose DWARF was too large to be read, sorted.
    pub fn too_large(&self) -> Vec<&Path> {
        let images = self.images.iter();
        let large = images.filter(|(_, image)| image.as_ref().is_some_and(|i| i.is_too_large));
        let mut paths: Vec<&Path> = large.map(|((path, _), _)| path.as_path()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// The functions around a return address, innermost first; several where functions were
    /// inlined, all but the last one marked so. Empty where nothing is known.
    ///
    /// `image` is an absolute path, `build_id` that of the image that ran, if it had one; `offset`
    /// is the return address less the load bias, that is, an address as in the file. The call lies
    /// before it.
    pub fn source(
        &mut self,
        image: &Path,
        build_id: Option<&[u8]>,
        offset: u64,
    ) -> Vec<SourceFrame> {
        let key = (image.to_owned(), build_id.map(<[u8]>::to_vec));
        let opened = self.images.entry(key);
        let open = || Image::open(image, build_id, &self.directories, self.room);
        let opened = opened.or_insert_with(open);
        opened.as_ref().map_or_else(Vec::new, |image| image.source(offset.saturating_sub(1)))
    }
}

impl Default for Symbolizer {
    fn default() -> Self {
        Self::new()
    }
}
