//! Patterns of a pair of accesses: `kernel:flash_* & api:cuMemcpyHtoD* stream:prefetch memory:kv_*`.

use super::GateError;
use super::lex::{Word, words};
use crate::Group;
use std::cell::OnceCell;
use std::ops::RangeInclusive;
use streamsan_model::{
    AllocationId, CallFrame, CallStack, Entities, Finding, FindingAccess, Lint, StackId, StreamId,
    shown_path,
};
use wildmatch::WildMatch;

/// The pattern of both accesses of a pair, and of the memory that they touch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PairPattern {
    sides: Vec<Side>,
    memory: Vec<(MemoryKey, WildMatch)>,
}

/// The pattern of one access; an empty pattern matches any.
#[derive(Clone, Debug, Default, PartialEq)]
struct Side {
    clauses: Vec<(SideKey, WildMatch)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SideKey {
    Kernel,
    Api,
    Stream,
    Mode,
    Function,
    Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemoryKey {
    Memory,
    AllocatedBy,
}

/// The frames of a stack that a pattern is matched with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// All of them.
    Stack,
    /// The frames of libraries between the call and the program.
    Library,
}

const KEYS: &str =
    "kernel:, api:, stream:, mode:, fun:, src: (of a side), memory:, allocated-by: (of the pair)";

impl PairPattern {
    /// Reads a pair, with two sides.
    pub(crate) fn parse(text: &str, line: usize) -> Result<Self, GateError> {
        let words = words(text, line)?;
        Self::of_words(&words, 2..=2).map_err(|message| GateError::new(line, message))
    }

    /// Reads the words of a pair.
    pub(super) fn of_words<'a>(
        words: impl IntoIterator<Item = &'a Word>,
        expected: RangeInclusive<usize>,
    ) -> Result<Self, String> {
        let empty = || Err("a side is empty; write * for any access".to_owned());
        let mut pair = Self { sides: vec![Side::default()], memory: Vec::new() };
        let mut said = false;
        for word in words {
            if word.text == "&" && !word.quoted {
                if !said {
                    return empty();
                }
                pair.sides.push(Side::default());
                said = false;
            } else {
                said |= pair.clause(&word.text)?;
            }
        }
        if !said {
            return empty();
        }
        if !expected.contains(&pair.sides.len()) {
            return Err("expected two sides, joined by &: (1) & (2)".to_owned());
        }
        Ok(pair)
    }

    /// Takes one word; answers whether it says something of a side.
    fn clause(&mut self, word: &str) -> Result<bool, String> {
        if word == "*" {
            return Ok(true);
        }
        let unknown = || format!("'{word}' is not understood; what can be named: {KEYS}");
        let (key, pattern) = word.split_once(':').ok_or_else(unknown)?;
        if pattern.is_empty() {
            return Err(format!("the pattern is missing behind {key}:"));
        }
        let pattern = WildMatch::new(pattern);
        let side_key = match key {
            "kernel" => SideKey::Kernel,
            "api" => SideKey::Api,
            "stream" => SideKey::Stream,
            "mode" => SideKey::Mode,
            "fun" => SideKey::Function,
            "src" => SideKey::Source,
            "memory" => {
                self.memory.push((MemoryKey::Memory, pattern));
                return Ok(false);
            }
            "allocated-by" => {
                self.memory.push((MemoryKey::AllocatedBy, pattern));
                return Ok(false);
            }
            _ => return Err(unknown()),
        };
        if let Some(side) = self.sides.last_mut() {
            side.clauses.push((side_key, pattern));
        }
        Ok(true)
    }

    /// Whether all occurrences of a mistake match the pair, in whatever streams and on whatever
    /// memory they are. Occurrences whose properties were not kept match only where the pair does
    /// not name those properties.
    pub(super) fn accepts(
        &self,
        group: &Group,
        kernels: &KernelNames<'_>,
        entities: &Entities,
    ) -> bool {
        let (finding, spread) = (&group.finding, &group.spread);
        let [more_streams, more_allocations] = spread.truncated;
        let names_a_stream =
            |side: &Side| side.clauses.iter().any(|(key, _)| *key == SideKey::Stream);
        let memory = |id, by_name| self.accepts_memory(id, entities, by_name);
        !(more_streams && self.sides.iter().any(names_a_stream))
            && spread.allocations.iter().all(|&id| memory(id, true))
            && (!more_allocations || memory(finding.allocation, false))
            && spread.pairs.keys().all(|&streams| {
                self.accepts_sides(finding, streams, |side, access, stream, place| {
                    side.accepts(access, stream, &kernels.0[place], entities, Reach::Stack)
                })
            })
    }

    /// Whether a finding is such a pair whose calls a library makes itself: only the library's frames
    /// count, and a node of a launched graph counts only where its kernel is named from the first
    /// letter on. The stack of such a node is that of the launch, which does not tell whose the kernel
    /// is.
    pub(crate) fn accepts_of_library(
        &self,
        finding: &Finding,
        kernels: &KernelNames<'_>,
        entities: &Entities,
    ) -> bool {
        let streams = [finding.first.stream, finding.second.stream];
        self.accepts_memory(finding.allocation, entities, true)
            && self.accepts_sides(finding, streams, |side, access, stream, place| {
                (!is_node_of_launch(access) || side.names_a_kernel())
                    && side.accepts(access, stream, &kernels.0[place], entities, Reach::Library)
            })
    }

    /// Whether the sides of an occurrence in these streams are accepted, in either order.
    fn accepts_sides(
        &self,
        finding: &Finding,
        [in_first, in_second]: [Option<StreamId>; 2],
        accepts: impl Fn(&Side, &FindingAccess, Option<StreamId>, usize) -> bool,
    ) -> bool {
        let [one, other] = self.sides.as_slice() else { return false };
        let first = |side: &Side| accepts(side, &finding.first, in_first, 0);
        let second = |side: &Side| accepts(side, &finding.second, in_second, 1);
        (first(one) && second(other)) || (second(one) && first(other))
    }

    /// Whether a lint is such a call, where one side is named.
    pub(super) fn accepts_lint(&self, lint: &Lint, entities: &Entities) -> bool {
        let [side] = self.sides.as_slice() else { return false };
        self.memory.is_empty()
            && side.clauses.iter().all(|(key, pattern)| match key {
                SideKey::Api => is_called(pattern, &lint.api, lint.stack, entities),
                SideKey::Stream => {
                    stream(lint.stream, entities).is_some_and(|s| pattern.matches(s))
                }
                SideKey::Kernel | SideKey::Mode => false,
                SideKey::Function => has_function(lint.stack, entities, pattern, Reach::Stack),
                SideKey::Source => has_source(lint.stack, entities, pattern, Reach::Stack),
            })
    }

    /// Occurrences of one mistake have memory of one kind from one call, and of many names.
    fn accepts_memory(&self, id: AllocationId, entities: &Entities, by_name: bool) -> bool {
        let allocation = entities.allocation(id);
        self.memory.iter().all(|(key, pattern)| {
            allocation.is_some_and(|allocation| match key {
                MemoryKey::Memory => {
                    let name = allocation.name.as_ref().filter(|_| by_name);
                    name.is_some_and(|name| pattern.matches(name))
                        || pattern.matches(allocation.kind.description())
                }
                MemoryKey::AllocatedBy => {
                    is_called(pattern, &allocation.api, allocation.stack, entities)
                }
            })
        })
    }
}

/// Whether a call has the name, in the driver's form or in that of reports.
fn is_called(pattern: &WildMatch, api: &str, stack: Option<StackId>, entities: &Entities) -> bool {
    pattern.matches(api) || pattern.matches(entities.called(api, stack))
}

/// Whether an access is one of a graph that is launched.
fn is_node_of_launch(access: &FindingAccess) -> bool {
    access.api.starts_with("cuGraphLaunch")
}

/// The name of a stream, `host` for the host. Numbers differ from run to run.
fn stream(id: Option<StreamId>, entities: &Entities) -> Option<&str> {
    match id {
        None => Some("host"),
        Some(id) => {
            let stream = entities.stream(id)?;
            Some(stream.name.as_deref().unwrap_or(stream.kind.description()))
        }
    }
}

/// The names of the kernels of a finding, made readable when a pattern asks for it.
pub(crate) struct KernelNames<'a>([Forms<'a>; 2]);

impl<'a> KernelNames<'a> {
    pub(crate) fn of(finding: &'a Finding) -> Self {
        Self(
            [&finding.first, &finding.second]
                .map(|side| Forms { mangled: side.kernel.as_deref(), readable: OnceCell::new() }),
        )
    }
}

/// The forms of a kernel's name: mangled, demangled, and as reports show it.
struct Forms<'a> {
    mangled: Option<&'a str>,
    readable: OnceCell<Vec<String>>,
}

impl Forms<'_> {
    fn any(&self, accepts: impl Fn(&str) -> bool) -> bool {
        let Some(mangled) = self.mangled else { return false };
        let readable = || {
            let whole = streamsan_names::whole(mangled);
            whole.into_iter().chain([streamsan_names::kernel(mangled).into_owned()]).collect()
        };
        accepts(mangled) || self.readable.get_or_init(readable).iter().any(|name| accepts(name))
    }
}

impl Side {
    fn accepts(
        &self,
        access: &FindingAccess,
        in_stream: Option<StreamId>,
        kernel: &Forms<'_>,
        entities: &Entities,
        reach: Reach,
    ) -> bool {
        self.clauses.iter().all(|(key, pattern)| match key {
            SideKey::Kernel => kernel.any(|name| pattern.matches(name)),
            SideKey::Api => is_called(pattern, &access.api, access.stack, entities),
            SideKey::Stream => stream(in_stream, entities).is_some_and(|s| pattern.matches(s)),
            SideKey::Mode => pattern.matches(access.access.mode.weak().description()),
            SideKey::Function => has_function(access.stack, entities, pattern, reach),
            SideKey::Source => has_source(access.stack, entities, pattern, reach),
        })
    }

    /// Whether the pattern names the begin of the kernel's name.
    fn names_a_kernel(&self) -> bool {
        self.clauses.iter().any(|(key, pattern)| {
            *key == SideKey::Kernel && !pattern.pattern().starts_with(['*', '?'])
        })
    }
}

/// Whether any function of a stack matches, those of libraries included.
fn has_function(
    id: Option<StackId>,
    entities: &Entities,
    pattern: &WildMatch,
    reach: Reach,
) -> bool {
    has_frame(id, entities, reach, |frame| frame.function().is_some_and(|f| pattern.matches(f)))
}

/// Whether a stack has a source file that matches, or for functions without one an image.
fn has_source(id: Option<StackId>, entities: &Entities, pattern: &WildMatch, reach: Reach) -> bool {
    has_frame(id, entities, reach, |frame| {
        let image = frame.image.map(|(image, _)| image);
        let file = frame.file().map(|file| shown_path(file, None));
        let file = file.as_deref().or(image);
        file.is_some_and(|file| pattern.matches(file))
    })
}

fn has_frame(
    id: Option<StackId>,
    entities: &Entities,
    reach: Reach,
    accepts: impl Fn(&CallFrame<'_>) -> bool,
) -> bool {
    CallStack::of(entities, id).is_some_and(|stack| match reach {
        Reach::Stack => stack.frames.iter().any(accepts),
        Reach::Library => stack.library_frames().iter().any(accepts),
    })
}
