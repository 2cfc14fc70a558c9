//! The corpus of CUDA sources, `sources/*.cu`: kernels with what is true of them in comments.
//!
//! ```text
//! // targets: 80                                  of the file: the oldest target; 75 if not told
//! // kernel scale: p0=write p1.8=read+table       in front of each kernel: words by parameter and
//! //                                              offset, module variables by name
//! // range: exact                                 how well the bytes of a launch can be known
//! // why: memory                                  why not exactly: see [`Escape`]
//! // launch: block=32,1..8,1 p2=1..100            what launches may look like
//! ```
//!
//! `*lut` is the pointer that a module variable holds, `*luts.8` one that stands behind its start.
//! Modes are `none`, `read`, `write`, `read-write` and `atomic`, with `+table` where pointers are
//! loaded from there, and `:handle` or `:map` for textures, surfaces and tensor maps. `anything`
//! is a kernel that uses pointers out of memory, `waits` one that waits for its primary.
//!
//! Values are `5`, `1..9` (the last one included) or `16|32`. `p2.0..32` are the 4-byte words from
//! offset 0 to 32. What is not told is small and random.

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

use streamsan_kernels::access::{ParameterMode, WordKind};

/// A file of kernels.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// Number of the oldest target.
    pub(crate) oldest: u32,
    pub(crate) kernels: Vec<Expected>,
}

/// The truth about a kernel.
#[derive(Debug)]
pub(crate) struct Expected {
    /// Mangled.
    pub(crate) name: String,
    pub(crate) words: Vec<Word>,
    pub(crate) variables: Vec<Variable>,
    /// Pointers that stand in variables.
    pub(crate) held: Vec<Held>,
    /// It uses pointers that it loads.
    pub(crate) anything: bool,
    pub(crate) waits: bool,
    pub(crate) range: Precision,
    /// Why the range is not exact.
    pub(crate) why: Option<Escape>,
    pub(crate) launch: Rule,
}

impl Expected {
    /// The number of the pointer that stands in a variable.
    pub(crate) fn held_in(&self, variable: &str, offset: u32) -> Option<usize> {
        let place = (variable, offset);
        self.held.iter().position(|held| (&*held.variable, held.offset) == place)
    }
}

#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) param: u32,
    pub(crate) offset: u32,
    pub(crate) kind: WordKind,
    pub(crate) mode: ParameterMode,
    pub(crate) table: bool,
}

#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) mode: ParameterMode,
    pub(crate) table: bool,
}

#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) variable: String,
    pub(crate) offset: u32,
    pub(crate) mode: ParameterMode,
}

/// How well the bytes of a launch can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// All bytes and no others.
    Exact,
    /// Some of an access, or the chosen one of several words, is not known.
    Bounded,
    /// Where an access goes is up to memory.
    Anchored,
}

/// Why a kernel is not affine. An affine kernel forms addresses as sums of thread and block indices,
/// rounds of counted loops, arguments and constants, each times numbers that are the same for the
/// whole launch; accesses happen always, or where such a sum is not negative, is zero or is not; and
/// the bytes are rows of equal length. Exactly these kernels have `range: exact`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Escape {
    /// An address, the end of a loop or a guard comes out of memory, or from an atomic operation.
    Memory,
    /// An index or a guard is made by other operations than sums: division, masks, minima, products
    /// of indices, floating point.
    Arithmetic,
    /// Which one of several pointers is meant is decided while it runs.
    Choice,
    /// Code is reached through a pointer, a table of places, or itself.
    Code,
    /// An instruction touches a part of the bytes that it names.
    Part,
    /// All sums are affine, but the bytes are not rows of equal length.
    Shape,
}

impl Escape {
    const ALL: [Escape; 6] =
        [Self::Memory, Self::Arithmetic, Self::Choice, Self::Code, Self::Part, Self::Shape];

    /// The word of the corpus.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Arithmetic => "arithmetic",
            Self::Choice => "choice",
            Self::Code => "code",
            Self::Part => "part",
            Self::Shape => "shape",
        }
    }
}

/// The launches that may occur.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    pub(crate) grid: Option<[Values; 3]>,
    pub(crate) block: Option<[Values; 3]>,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
    pub(crate) cooperative: bool,
    /// Memory starts as zeros.
    pub(crate) zeroed: bool,
    /// By parameter and bytes within it.
    pub(crate) values: Vec<(u32, Range<u32>, Values)>,
}

/// Values that one number may have.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    Between(RangeInclusive<u32>),
    OneOf(Vec<u32>),
}

impl Values {
    /// The value that a random number stands for.
    pub(crate) fn pick(&self, random: u32) -> u32 {
        match self {
            Values::Between(range) => range.start() + random % (range.end() - range.start() + 1),
            Values::OneOf(all) => all[random as usize % all.len()],
        }
    }

    fn parse(text: &str) -> Self {
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("no number: {text}"));
        match text.split_once("..") {
            Some((first, last)) => Self::Between(number(first)..=number(last)),
            None => Self::OneOf(text.split('|').map(number).collect()),
        }
    }

    fn three(text: &str) -> [Self; 3] {
        let all: Vec<Self> = text.split(',').map(Self::parse).collect();
        all.try_into().expect("three dimensions")
    }
}

/// Reads the corpus below the crate's folder.
pub(crate) fn read(kernels_crate: &Path) -> Vec<Source> {
    let folder = kernels_crate.join("tests/compiled/sources");
    let entries = std::fs::read_dir(folder).expect("the corpus");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().map(source).collect()
}

fn source(path: PathBuf) -> Source {
    let text = std::fs::read_to_string(&path).expect("a source");
    let mut source = Source { path, text: String::new(), oldest: 75, kernels: Vec::new() };
    for line in text.lines().filter_map(|line| line.strip_prefix("// ")) {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, name) = key.split_once(' ').unwrap_or((key, ""));
        let last = source.kernels.last_mut();
        match (key, last) {
            ("targets", _) => source.oldest = value.trim().parse().expect("a number"),
            ("kernel", _) if !name.contains(' ') => source.kernels.push(expected(name, value)),
            ("range", Some(kernel)) => kernel.range = precision(value.trim()),
            ("why", Some(kernel)) => kernel.why = Some(escape(value.trim())),
            ("launch", Some(kernel)) => kernel.launch = rule(value),
            _ => {}
        }
    }
    let all = text.matches("extern \"C\" __global__").count();
    assert!(source.kernels.len() >= all, "{}: a kernel is not described", source.path.display());
    for kernel in &source.kernels {
        let affine = kernel.range == Precision::Exact;
        assert!(affine == kernel.why.is_none(), "{}: why is it not affine?", kernel.name);
    }
    source.text = text;
    source
}

fn expected(name: &str, words: &str) -> Expected {
    let mut kernel = Expected {
        name: name.to_owned(),
        words: Vec::new(),
        variables: Vec::new(),
        held: Vec::new(),
        anything: false,
        waits: false,
        range: Precision::Anchored,
        why: None,
        launch: Rule::default(),
    };
    for word in words.split_whitespace() {
        let Some((place, mode)) = word.split_once('=') else {
            match word {
                "anything" => kernel.anything = true,
                "waits" => kernel.waits = true,
                _ => panic!("{name}: {word}?"),
            }
            continue;
        };
        let (mode, table) = mode.strip_suffix("+table").map_or((mode, false), |mode| (mode, true));
        let (mode, kind) = mode.split_once(':').unwrap_or((mode, ""));
        let mode = self::mode(mode);
        if let Some(place) = place.strip_prefix('*') {
            let (variable, offset) = place.split_once('.').unwrap_or((place, "0"));
            let (variable, offset) = (variable.to_owned(), offset.parse().expect("an offset"));
            kernel.held.push(Held { variable, offset, mode });
            continue;
        }
        let kind = match kind {
            "handle" => WordKind::Handle,
            "map" => WordKind::TensorMap,
            "" => WordKind::Pointer,
            other => panic!("{name}: {other}?"),
        };
        match parameter(place) {
            Some((param, bytes)) => {
                let offset = bytes.start;
                kernel.words.push(Word { param, offset, kind, mode, table });
            }
            None => kernel.variables.push(Variable { name: place.to_owned(), mode, table }),
        }
    }
    kernel
}

fn mode(text: &str) -> ParameterMode {
    let modes = [
        ParameterMode::None,
        ParameterMode::Read,
        ParameterMode::Write,
        ParameterMode::ReadWrite,
        ParameterMode::Atomic,
    ];
    let found = modes.into_iter().find(|mode| mode.description() == text);
    found.unwrap_or_else(|| panic!("no mode: {text}"))
}

fn escape(text: &str) -> Escape {
    let found = Escape::ALL.into_iter().find(|escape| escape.name() == text);
    found.unwrap_or_else(|| panic!("no reason: {text}"))
}

fn precision(text: &str) -> Precision {
    match text {
        "exact" => Precision::Exact,
        "bounded" => Precision::Bounded,
        "anchored" => Precision::Anchored,
        _ => panic!("no range: {text}"),
    }
}

/// `p1`, `p1.8` and `p1.8..24`; the bytes are from 0 on where none are told.
fn parameter(text: &str) -> Option<(u32, Range<u32>)> {
    let text = text.strip_prefix('p')?;
    let (param, bytes) = text.split_once('.').unwrap_or((text, "0"));
    let (start, end) = bytes.split_once("..").unwrap_or((bytes, ""));
    let start = start.parse().ok()?;
    let end = if end.is_empty() { start + 4 } else { end.parse().ok()? };
    Some((param.parse().ok()?, start..end))
}

fn rule(text: &str) -> Rule {
    let mut rule = Rule::default();
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some(("grid", value)) => rule.grid = Some(Values::three(value)),
            Some(("block", value)) => rule.block = Some(Values::three(value)),
            Some(("shared", value)) => rule.shared = value.parse().expect("bytes"),
            Some((place, value)) => {
                let (param, bytes) = parameter(place).expect("a parameter");
                rule.values.push((param, bytes, Values::parse(value)));
            }
            None if word == "cooperative" => rule.cooperative = true,
            None if word == "zeroed" => rule.zeroed = true,
            None => panic!("{word}?"),
        }
    }
    rule
}
