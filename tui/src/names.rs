//! How things are called on the screen.

use std::fmt::Write;
use streamsan_model::{Axis, Entities, Lane, LaneId, ProcessId, StreamId};

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

/// A kernel's name without its template arguments.
pub(crate) fn short(mangled: &str) -> String {
    streamsan_names::short(mangled).into_owned()
}

/// A kernel's name in full.
pub(crate) fn full(mangled: &str) -> String {
    streamsan_names::whole(mangled).unwrap_or_else(|| mangled.to_owned())
}

/// `7 "decode" non-blocking`.
pub(crate) fn stream(entities: &Entities, id: StreamId) -> String {
    let mut text = format!("stream {id}");
    if let Some(stream) = entities.stream(id) {
        match &stream.name {
            Some(name) => {
                let _ = write!(text, " \"{name}\" ({})", stream.kind.description());
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
            Some(name) => format!("{name} ({id})"),
            None => format!("stream {id} {}", stream.kind.description()),
        },
    }
}

/// The name of a process.
pub(crate) fn process(entities: &Entities, id: ProcessId) -> String {
    match entities.process(id) {
        Some(process) => {
            let executable = process.executable.rsplit('/').next().unwrap_or_default();
            let arguments = process.arguments.get(1..).unwrap_or_default().join(" ");
            format!("process {} {executable} {arguments}", process.pid).trim_end().to_owned()
        }
        None => format!("process {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{duration, number, size};

    #[test]
    fn amounts_are_read_easily() {
        assert_eq!(number(18_233), "18,233");
        assert_eq!((size(1023), size(4096)), ("1023 B".to_owned(), "4.0 KiB".to_owned()));
        assert_eq!((duration(12_345_678), duration(999)), ("12.345 ms".into(), "999 ns".into()));
    }
}
