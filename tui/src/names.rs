//! Names of entities and operations on the screen.
//!
//! Invariant: every name of a program or a trace is made printable where it is put into words.
//! Drawn and copied text is checked once more as a whole.

use std::fmt::Write;
use streamsan_model::{
    Allocation, Axis, ByteRange, Entities, Lane, LaneId, MemoryKind, ProcessId, StreamId, Tally,
};
use streamsan_names::printable;

/// Ranges from here on end nowhere: no memory is that large.
const UNBOUNDED: u64 = 1 << 56;

/// `18,233`.
pub(crate) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

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
    if tally.occurrences > tally.races + tally.others + tally.below {
        let _ = write!(text, ", seen {} times", number(tally.occurrences));
    }
    text
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

/// A kernel's name in full.
pub(crate) fn full(mangled: &str) -> String {
    let whole = streamsan_names::whole(mangled);
    printable(whole.as_deref().unwrap_or(mangled)).into_owned()
}

/// `7 "decode" non-blocking`.
pub(crate) fn stream(entities: &Entities, id: StreamId) -> String {
    let mut text = format!("stream {id}");
    if let Some(stream) = entities.stream(id) {
        match &stream.name {
            Some(name) => {
                let _ = write!(text, " \"{}\" ({})", printable(name), stream.kind.description());
            }
            None => {
                let _ = write!(text, " ({})", stream.kind.description());
            }
        }
    }
    text
}

/// A side of a finding or an operation: its stream, or the host.
pub(crate) fn side(entities: &Entities, id: Option<StreamId>) -> String {
    id.map_or_else(|| "host".to_owned(), |id| stream(entities, id))
}

/// The name of a row.
pub(crate) fn lane(entities: &Entities, lane: &Lane) -> String {
    match (lane.id, &lane.stream) {
        (LaneId::Host(id), _) => match entities.thread(id) {
            Some(thread) => format!("thread {}", thread.tid),
            None => format!("thread {id}"),
        },
        (LaneId::Stream(id), None) => format!("stream {id}"),
        (LaneId::Stream(id), Some(stream)) => match &stream.name {
            Some(name) => format!("{} ({id})", printable(name)),
            None => format!("stream {id} {}", stream.kind.description()),
        },
    }
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
