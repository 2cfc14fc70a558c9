//! Text traces: parsed, analysed and reported, written, and parsed again.

use crate::analysis::{analyse, gate, operations, report};
use std::convert::Infallible;
use std::fs;
use streamsan_testing::corpus::traces;
use streamsan_text::{parse, write};

pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(trace) = parse(text) else { return };
    let all = operations(&trace.items);
    let items = trace.items.iter().cloned().map(Ok::<_, Infallible>);
    let Ok(analysed) = analyse(trace.strict_host_threads(), items);
    report(&analysed, (Vec::new(), None), &gate(None, None), |g| all.get(&g).cloned());
    let written = write(&trace.items);
    if let Err(error) = parse(&written) {
        panic!("what was written is not read: {error}\n{written}");
    }
}

/// The traces of the corpus.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let paths = ["pass", "fail"].into_iter().flat_map(traces);
    paths.map(|path| fs::read(&path).expect("a readable trace")).collect()
}
