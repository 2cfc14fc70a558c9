//! Launches that are known by their words, and what is kept to look at them again.

use crate::kernel_code::CodeId;
use crate::resolve::{Block, Geometry, KnownKernel};
use streamsan_model::{Access, GraphId};

/// A launch that was handed on by its words. Its code is being read.
#[derive(Clone, Debug)]
pub(crate) struct ByWords {
    pub(crate) code: CodeId,
    pub(crate) kernel: KnownKernel,
    pub(crate) process: usize,
    /// The launching call, or of a node the call that declared its graph.
    pub(crate) g: u64,
    /// The node of a graph, once that is declared.
    pub(crate) node: Option<(GraphId, usize)>,
    /// Whether the launch says that it overlaps the kernel before it.
    pub(crate) programmatic: bool,
    pub(crate) geometry: Geometry,
    /// The parameters, at their offsets.
    pub(crate) params: Box<[u8]>,
    pub(crate) specials: Vec<Special>,
    /// The memory that its words pointed into: by the time that the code is known the addresses
    /// may have had more owners than are kept.
    pub(crate) targets: Targets,
}

impl ByWords {
    /// The arguments of its kernel.
    pub(crate) fn launched_with(&self) -> LaunchedWith {
        LaunchedWith { geometry: self.geometry, params: self.params.clone() }
    }

    /// Memory that it takes, in bytes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let accesses: usize = self.specials.iter().map(|s| s.accesses.len()).sum();
        let specials = 128 * accesses + 64 * self.specials.len();
        size_of::<Self>() + self.params.len() + specials + self.targets.bytes()
    }

    /// The answer has come.
    pub(crate) fn answered(self) -> CodeKnown {
        CodeKnown(self)
    }
}

/// A launch that was handed on by its words, and whose code was read since, or could not be read.
#[derive(Debug)]
pub(crate) struct CodeKnown(ByWords);

impl CodeKnown {
    /// Gives up the kept launch, for the one look that makes it known.
    pub(crate) fn look(self) -> ByWords {
        self.0
    }
}

/// The arguments of a kernel: blocks and threads, and the parameters at their offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaunchedWith {
    geometry: Geometry,
    params: Box<[u8]>,
}

/// Memory that a launch gives access to without a pointer.
#[derive(Clone, Debug)]
pub(crate) struct Special {
    /// Where in the parameters it stands; `None` for a reference to a texture or surface.
    pub(crate) offset: Option<u32>,
    /// How many bytes of the parameters are no pointers for it.
    pub(crate) bytes: u32,
    /// The accesses that it leads to, as far as they are known without the code.
    pub(crate) accesses: Vec<Access>,
}

/// Words that pointed into live memory when a launch was made, and the blocks that held them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets {
    words: Vec<(u64, u32)>,
    blocks: Vec<Block>,
}

impl Targets {
    pub(crate) fn note(&mut self, word: u64, block: Block) {
        // The words of a launch mostly point into few blocks, neighbours into the same.
        let at = self.blocks.iter().rposition(|known| known.id == block.id);
        let at = at.unwrap_or_else(|| {
            self.blocks.push(block);
            self.blocks.len() - 1
        });
        self.words.push((word, at as u32));
    }

    pub(crate) fn get(&self, word: u64) -> Option<Block> {
        let (_, at) = self.words.iter().find(|(known, _)| *known == word)?;
        self.blocks.get(*at as usize).copied()
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.words[..]) + size_of_val(&self.blocks[..])
    }
}
