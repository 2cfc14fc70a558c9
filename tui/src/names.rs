//! Names of entities and operations on the screen.
//!
//! Invariant: every name of a program or a trace is made printable where it is put into words.
//! Drawn and copied text is checked once more as a whole.

use std::borrow::Cow;
use std::fmt::Write;
pub(crate) use streamsan_model::number;
use streamsan_model::{
    Allocation, Axis, ByteRange, CallStack, Entities, Lane, MemoryKind, ProcessId, StackId,
    StreamKind, Tally,
};
use streamsan_names::printable;

/// Ranges from here on end nowhere: no memory is that large.
const UNBOUNDED: u64 = 1 << 56;

/// `1 race`, `3 races`.
pub(crate) fn plural(n: u64, word: &str) -> String {
    format!("{} {word}{}", number(n), if n == 1 { "" } else { "s" })
}

/// `3 races, 2 below the threshold, seen 92 times`.
pub(crate) fn races(tally: Tally) -> String {
    let mut text = plural(tally.races, "race");
    if tally.others > 0 {
        let _ = write!(text, ", {} latent", number(tally.others));
    }
    if tally.below > 0 {
        let _ = write!(text, ", {} below the threshold", number(tally.below));
    }
    if tally.upstream > 0 {
        let _ = write!(text, ", {} known upstream", number(tally.upstream));
    }
    if tally.occurrences > tally.mistakes() {
        let _ = write!(text, ", seen {} times", number(tally.occurrences));
    }
    text
}

/// The name of an NVTX range.
pub(crate) fn range(name: &str) -> Cow<'_, str> {
    if name.is_empty() { "(no name)".into() } else { printable(name) }
}

/// `512 B`, `4.0 KiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let unit = (bytes.ilog2() / 10 - 1).min(5);
    let tenths = (u128::from(bytes) * 10) >> (10 * (unit + 1));
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit as usize])
}

/// A range's size, where it has an end.
pub(crate) fn extent(range: ByteRange) -> String {
    if range.len() >= UNBOUNDED { "unbounded".to_owned() } else { size(range.len()) }
}

/// `4.0 KiB of device memory`; ordinary host memory is one allocation, whose end is not known.
pub(crate) fn memory(allocation: &Allocation) -> String {
    let kind = allocation.kind.description();
    match allocation.kind {
        MemoryKind::Pageable if allocation.range.len() >= UNBOUNDED => {
            format!("{kind} without a known end")
        }
        _ => format!("{} of {kind}", extent(allocation.range)),
    }
}

/// ` "kv_cache"`, where there is a name.
pub(crate) fn quoted(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(" \"{}\"", printable(name)))
}

/// `850 ns`, `12.345 ms`.
pub(crate) fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{}.{:03} µs", ns / 1_000, ns % 1_000),
        1_000_000..1_000_000_000 => format!("{}.{:03} ms", ns / 1_000_000, ns / 1_000 % 1_000),
        _ => format!("{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1_000),
    }
}

/// A position as the axis labels it.
pub(crate) fn position(axis: Axis, at: u64) -> String {
    match axis {
        Axis::Issue => format!("#{}", number(at)),
        Axis::Time => format!("+{}", duration(at)),
        Axis::Logical => format!("depth {}", number(at)),
    }
}

/// How far a trace is shifted.
pub(crate) fn shift(axis: Axis, by: i64) -> String {
    let sign = if by < 0 { "-" } else { "+" };
    let by = by.unsigned_abs();
    match axis {
        Axis::Issue => format!("{sign}{}", plural(by, "call")),
        Axis::Time => format!("{sign}{}", duration(by)),
        Axis::Logical => format!("{sign}{} deep", number(by)),
    }
}

/// A distance on an axis.
pub(crate) fn distance(axis: Axis, by: u64) -> String {
    match axis {
        Axis::Issue => format!("{} calls apart", number(by)),
        Axis::Time => duration(by),
        Axis::Logical => format!("{} deep", number(by)),
    }
}

/// A kernel's name, what tells it from its neighbours first.
pub(crate) fn label(mangled: &str) -> String {
    streamsan_names::label(mangled).into_owned()
}

/// A kernel's name where there is room for little.
pub(crate) fn gist(mangled: &str) -> String {
    streamsan_names::gist(mangled).into_owned()
}

/// A kernel's name in full.
pub(crate) fn full(mangled: &str) -> String {
    let whole = streamsan_names::whole(mangled);
    printable(whole.as_deref().unwrap_or(mangled)).into_owned()
}

/// A call as the program made it, from its stack.
pub(crate) fn call(api: &str, stack: &CallStack<'_>) -> String {
    printable(stack.called(api)).into_owned()
}

/// The same, where the stack is one of the overview's.
pub(crate) fn call_at(entities: &Entities, api: &str, stack: Option<StackId>) -> String {
    printable(entities.called(api, stack)).into_owned()
}

/// The place of a call in the program: `train.py:12`. Only the end of the path is shown.
fn place(entities: &Entities, stack: Option<StackId>) -> Option<String> {
    let stack = CallStack::of(entities, stack)?;
    let frame = stack.place()?;
    let file = frame.file()?.rsplit('/').next().unwrap_or_default();
    let line = frame.line().map_or_else(String::new, |line| format!(":{line}"));
    Some(format!("{}{line}", printable(file)))
}

/// The words about a stream that its name does not have: its kind, and where it was created.
pub(crate) fn about_stream(entities: &Entities, lane: &Lane) -> Vec<String> {
    let Some(stream) = &lane.stream else { return Vec::new() };
    let is_default = matches!(stream.kind, StreamKind::Legacy | StreamKind::PerThread);
    let kind = (!is_default).then(|| stream.kind.description().to_owned());
    let created = entities.creation_in_words(stream.id, |stack| place(entities, stack));
    created.into_iter().chain(kind).collect()
}

/// The name of a process.
pub(crate) fn process(entities: &Entities, id: ProcessId) -> String {
    match entities.process(id) {
        Some(process) => {
            let executable = process.executable.rsplit('/').next().unwrap_or_default();
            let mut text = format!("process {} {}", process.pid, printable(executable));
            for argument in process.arguments.iter().skip(1) {
                let _ = write!(text, " {}", printable(argument));
            }
            text
        }
        None => format!("process {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{duration, number, process, size};
    use streamsan_model::{Entities, Entity, Process, ProcessId};

    #[test]
    fn processes_are_called_by_printable_names() {
        let mut entities = Entities::default();
        entities.declare(Entity::Process(Process {
            id: ProcessId(0),
            pid: 7,
            parent_pid: 1,
            executable: "/bin/a\u{1b}[2J".to_owned(),
            arguments: ["a", "b\nc", "\u{202e}d"].map(str::to_owned).into(),
        }));
        let name = process(&entities, ProcessId(0));
        assert_eq!(name, "process 7 a\\x1b[2J b\\nc \\u{202e}d");
    }

    #[test]
    fn amounts_are_read_easily() {
        assert_eq!(number(18_233), "18,233");
        assert_eq!((size(1023), size(4096)), ("1023 B".to_owned(), "4.0 KiB".to_owned()));
        assert_eq!((duration(12_345_678), duration(999)), ("12.345 ms".into(), "999 ns".into()));
    }
}
