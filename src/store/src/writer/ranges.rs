//! Ranges and marks as rows.

use super::Writer;
use std::sync::Arc;
use streamsan_model::NvtxRange;

/// Names of ranges that are stored once. A framework that puts numbers into its names has new ones
/// for ever; from here on they are stored with each of their ranges, so that memory does not grow.
const NAMES_ONCE: usize = if cfg!(test) { 4 } else { 16_384 };

impl Writer {
    pub(super) fn put_range(&mut self, range: &NvtxRange) {
        let name = self.range_name(&range.name);
        let domain = self.intern_option(range.domain.as_deref());
        let base = self.clock_base(range.time.start_ns);
        let duration = range.time.end_ns.wrapping_sub(range.time.start_ns);
        let g = range.begin.0;
        self.put(
            "INSERT OR REPLACE INTO nvtx_range VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &[
                Some(range.kind as i64),
                Some(i64::from(range.thread.0)),
                Some(i64::from(range.depth)),
                Some(g as i64),
                range.end.map(|end| end.0.wrapping_sub(g) as i64),
                Some(i64::from(range.process.0)),
                domain,
                Some(name),
                Some(range.time.start_ns.wrapping_sub(base) as i64),
                Some(duration as i64),
            ],
        );
    }

    fn range_name(&mut self, name: &Arc<str>) -> i64 {
        if let Some(&id) = self.strings.get(name) {
            return id;
        }
        if self.range_names == NAMES_ONCE {
            return self.put_text(Arc::clone(name));
        }
        self.range_names += 1;
        self.intern(name)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Meta, Reader, Writer};
    use std::sync::Arc;
    use streamsan_model::{
        Entity, HostTime, NvtxKind, NvtxRange, OpSeq, Process, ProcessId, Thread, ThreadId,
        TraceItem,
    };

    /// Names that are not kept are stored all the same, and other texts keep their ids.
    #[test]
    fn any_number_of_names_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.db");
        let meta = Meta {
            tool_version: String::new(),
            started_at: chrono::DateTime::UNIX_EPOCH,
            command: Vec::new(),
            host: String::new(),
            driver: String::new(),
            extra: Default::default(),
        };
        let (process, thread) = (ProcessId(0), ThreadId(0));
        let ranges: Vec<NvtxRange> = (0..50)
            .map(|at| NvtxRange {
                begin: OpSeq(10 + 2 * at),
                end: Some(OpSeq(11 + 2 * at)),
                process,
                thread,
                kind: NvtxKind::Pushed,
                domain: (at % 2 == 0).then(|| "domain".into()),
                name: Arc::from(format!("aten::add, seq = {}", at % 20)),
                time: HostTime { start_ns: 5000 - at, end_ns: 5000 },
                depth: 0,
            })
            .collect();
        let mut writer = Writer::create(&path, &meta).unwrap();
        for entity in [
            Entity::Process(Process {
                id: process,
                pid: 1,
                parent_pid: 0,
                executable: "behind".to_owned(),
                arguments: Vec::new(),
            }),
            Entity::Thread(Thread { id: thread, process, tid: 1 }),
        ] {
            writer.item(&TraceItem::Entity(entity)).unwrap();
        }
        for range in &ranges {
            writer.item(&TraceItem::Range(range.clone())).unwrap();
        }
        assert!(writer.strings.len() < 10, "{}", writer.strings.len());
        writer.finalize().unwrap();
        let mut found = Vec::new();
        Reader::open(&path).unwrap().each_range(|range| found.push(range)).unwrap();
        assert_eq!(found, ranges);
    }
}
