//! Random text traces, the same for the same seed: launches, copies, memsets, events and
//! synchronisation over a few streams and buffers. Every one of them can be performed, whatever
//! the schedule: memory is freed on the last lines only.

use std::fmt::Write;

const STREAMS: [&str; 6] = ["s1", "s2", "s3", "work", "legacy", "ptds"];
const EVENTS: [&str; 3] = ["e1", "e2", "e3"];
/// Device memory that nobody declares, pinned memory, and stream-ordered memory.
const BUFFERS: [&str; 5] = ["A", "B", "C", "P", "X"];
const KERNELS: [&str; 4] = ["load", "store", "update", "count"];
/// Words of 4 bytes in every buffer.
const WORDS: u64 = 256;
const LINES: usize = 32;

/// Numbers of xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators,
/// scrambled").
pub(crate) struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Two buffers that are not the same.
    fn two_buffers(&mut self) -> (&'static str, &'static str) {
        let first = self.below(BUFFERS.len() as u64) as usize;
        let step = 1 + self.below(BUFFERS.len() as u64 - 1) as usize;
        (BUFFERS[first], BUFFERS[(first + step) % BUFFERS.len()])
    }

    fn bytes(&mut self) -> (u64, u64) {
        let start = self.below(WORDS);
        let end = start + 1 + self.below(WORDS - start);
        (start * 4, end * 4)
    }
}

/// The trace of a seed.
pub(crate) fn random_trace(seed: u64) -> String {
    let mut random = Random::of_seed(seed);
    let mut text = String::from("stream work\nalloc_pinned P 1024\nalloc_async X 1024 s1\n");
    for _ in 0..LINES {
        if random.below(8) == 0 {
            text.push_str("T2: ");
        }
        let line = line(&mut random);
        let _ = writeln!(text, "{line}");
    }
    for line in ["free_async X s2", "free A", "free_pinned P", "destroy_event e1"] {
        if random.below(2) == 0 {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

fn line(random: &mut Random) -> String {
    let stream = random.of(&STREAMS);
    let event = random.of(&EVENTS);
    match random.below(20) {
        0..8 => launch(random, stream),
        8..10 => {
            let (to, from) = random.two_buffers();
            let (start, end) = random.bytes();
            let shift = random.below(WORDS - (end - start) / 4 + 1) * 4;
            let source = shift..shift + (end - start);
            format!(
                "copy {stream} dst:{to}[{start}..{end}] src:{from}[{}..{}]",
                source.start, source.end
            )
        }
        10 => {
            let (to, from) = random.two_buffers();
            format!("copy_sync dst:{to}[0..512] src:{from}[512..1024]")
        }
        11 => {
            let (start, end) = random.bytes();
            format!("memset {stream} {}[{start}..{end}]", random.of(&BUFFERS[..3]))
        }
        12..15 => format!("record {event} {stream}"),
        15..17 => format!("wait {stream} {event}"),
        17 => format!("sync_event {event}"),
        18 => format!("sync_stream {stream}"),
        _ => random.of(&["sync_ctx", "query_stream s1", "destroy_event e3"]).to_owned(),
    }
}

fn launch(random: &mut Random, stream: &str) -> String {
    let mut line = format!("launch {stream} {}", random.of(&KERNELS));
    let (first, second) = random.two_buffers();
    for buffer in [first, second].into_iter().take(1 + random.below(2) as usize) {
        let mode = random.of(&["r", "w", "rw", "at"]);
        let (start, end) = random.bytes();
        let _ = write!(line, " {mode}:{buffer}[{start}..{end}]");
    }
    line
}
