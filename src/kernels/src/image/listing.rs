//! The kernels of an image: one entry for each name, whatever pieces of code have it.

use super::compression::{MOST_RATIO, SMALL_CODE};
use super::{
    CodeKind, ComputeCapability, Cubin, CubinKernel, Entry, Image, ImageError, Parameter, Target,
    select,
};
use crate::ptx::{self, Module, PtxError};
use std::collections::HashMap;

/// The kernels of an image.
#[derive(Debug, Default)]
pub struct Listing {
    /// In the order in which they first appear.
    pub kernels: Vec<ListedKernel>,
    /// The PTX that was read.
    pub modules: Vec<Module>,
    /// Pieces of code that could not be read.
    pub problems: Vec<Problem>,
    by_name: HashMap<String, usize>,
    /// Bytes of PTX that may still be read: what was parsed is kept.
    room: u64,
}

/// A kernel, from all pieces of code that have it.
#[derive(Debug)]
pub struct ListedKernel {
    /// As the driver knows it, that is mangled.
    pub name: String,
    /// Where it is; not empty.
    pub sources: Vec<Source>,
    /// Its parameters: as its PTX declares them, else as its newest machine code describes them.
    pub parameters: Result<Vec<Parameter>, ImageError>,
    /// Its newest PTX, as an index into [`Listing::modules`].
    pub module: Option<usize>,
    described_by: Option<ListingRank>,
}

/// A piece of code that has a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// PTX or machine code.
    pub kind: CodeKind,
    /// The target of the code, if that is known.
    pub target: Option<Target>,
    /// Bytes of machine code.
    pub code_size: Option<u64>,
    /// It has to be linked before it is loaded.
    pub relocatable: bool,
    /// Which container of the image it is in.
    pub container: usize,
}

/// A piece of code that could not be read.
#[derive(Debug)]
pub struct Problem {
    /// PTX or machine code.
    pub kind: CodeKind,
    /// The target of the code, if that is known.
    pub target: Option<Target>,
    /// Why.
    pub reason: Unreadable,
}

/// Why a piece of code could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It cannot be unpacked, or is no machine code.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// It is no PTX that the parser understands.
    #[error(transparent)]
    Ptx(#[from] PtxError),
}

/// Where a piece of code is.
#[derive(Clone, Copy)]
struct CodePlace {
    container: usize,
    relocatable: bool,
}

impl CodePlace {
    fn source(self, kind: CodeKind, target: Option<Target>, code_size: Option<u64>) -> Source {
        let Self { container, relocatable } = self;
        Source { kind, target, code_size, relocatable, container }
    }
}

/// How good a description of a kernel is: PTX before machine code, newer before older.
type ListingRank = (bool, Option<Target>);

impl Listing {
    /// Lists the kernels of all pieces of code, or of those only that the driver would choose for
    /// a device. Code that is to be linked counts only where a kernel is nowhere else. Where the
    /// driver would choose machine code, the PTX beside it is still read, for what it tells of the
    /// same kernels.
    #[must_use]
    pub fn new(image: &Image<'_>, device: Option<ComputeCapability>) -> Self {
        let bytes = image.entries().map(|entry| entry.packed().len() as u64).sum::<u64>();
        let room = bytes.saturating_mul(MOST_RATIO).saturating_add(SMALL_CODE);
        let mut listing = Self { room, ..Self::default() };
        for relocatable in [false, true] {
            let containers = image.containers.iter().enumerate();
            for (at, container) in containers.filter(|(_, c)| c.relocatable == relocatable) {
                let place = CodePlace { container: at, relocatable };
                match device {
                    None => {
                        for entry in &container.entries {
                            listing.add(entry, place, true);
                        }
                    }
                    Some(device) => {
                        let entries = &container.entries;
                        let Some(chosen) = select(entries, device) else { continue };
                        listing.add(chosen, place, true);
                        let ptx = entries.iter().filter(|entry| entry.kind == CodeKind::Ptx);
                        let beside = select(ptx, device).filter(|_| chosen.kind != CodeKind::Ptx);
                        if let Some(beside) = beside {
                            listing.add(beside, place, false);
                        }
                    }
                }
            }
        }
        listing
    }

    /// Adds the kernels of a piece of code. One that is not `loaded` only describes kernels that
    /// are there already.
    fn add(&mut self, entry: &Entry<'_>, place: CodePlace, loaded: bool) {
        let outcome = match entry.kind {
            CodeKind::Ptx => self.add_ptx(entry, place, loaded),
            CodeKind::Cubin => self.add_cubin(entry, place),
            CodeKind::Other(_) => Ok(()),
        };
        if let Err(reason) = outcome {
            self.problems.push(Problem { kind: entry.kind, target: entry.target, reason });
        }
    }

    fn add_ptx(
        &mut self,
        entry: &Entry<'_>,
        place: CodePlace,
        loaded: bool,
    ) -> Result<(), Unreadable> {
        if entry.size > self.room {
            return Err(ImageError::TooLarge { claimed: entry.size, limit: self.room }.into());
        }
        let code = entry.code()?;
        self.room -= entry.size;
        let module = ptx::parse(&String::from_utf8_lossy(&code))?;
        let (index, target) = (self.modules.len(), entry.target);
        for function in module.functions.iter().filter(|f| f.is_entry && f.body.is_some()) {
            let source = place.source(CodeKind::Ptx, target, None);
            let Some(kernel) = self.kernel(&function.name, source, loaded) else { continue };
            let rank = (true, target);
            if kernel.described_by.is_none_or(|other| rank > other) {
                let parameters = function.params.iter().zip(0..);
                let parameter = |(p, index): (&ptx::Param, u32)| Parameter {
                    index,
                    offset: p.offset,
                    size: p.size,
                };
                kernel.parameters = Ok(parameters.map(parameter).collect());
                kernel.module = Some(index);
                kernel.described_by = Some(rank);
            }
        }
        self.modules.push(module);
        Ok(())
    }

    fn add_cubin(&mut self, entry: &Entry<'_>, place: CodePlace) -> Result<(), Unreadable> {
        let code = entry.code()?;
        let cubin = Cubin::parse(&code)?;
        let target = entry.target.or(cubin.target);
        for CubinKernel { name, code_size, .. } in &cubin.kernels {
            let code_size = Some(*code_size);
            let source = place.source(CodeKind::Cubin, target, code_size);
            let Some(kernel) = self.kernel(name, source, true) else { continue };
            let rank = (false, target);
            if kernel.described_by.is_none_or(|other| rank > other) {
                kernel.parameters = cubin.parameters(name).map(|layout| layout.parameters);
                kernel.described_by = Some(rank);
            }
        }
        Ok(())
    }

    /// The kernel of a name, with one more source if the code is loaded. `None` where the code
    /// adds nothing to it.
    fn kernel(&mut self, name: &str, source: Source, loaded: bool) -> Option<&mut ListedKernel> {
        let at = match self.by_name.get(name) {
            Some(&at) if source.relocatable && !self.kernels[at].sources[0].relocatable => {
                return None;
            }
            Some(&at) => at,
            None if !loaded => return None,
            None => {
                self.by_name.insert(name.to_owned(), self.kernels.len());
                self.kernels.push(ListedKernel {
                    name: name.to_owned(),
                    sources: Vec::new(),
                    parameters: Ok(Vec::new()),
                    module: None,
                    described_by: None,
                });
                self.kernels.len() - 1
            }
        };
        let kernel = &mut self.kernels[at];
        if loaded {
            kernel.sources.push(source);
        }
        Some(kernel)
    }
}
