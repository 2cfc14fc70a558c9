//! Suppressions and baselines: read, held against a report, and written.

use crate::analysis::{Analysed, analyse, gate, report};
use std::convert::Infallible;
use std::sync::OnceLock;
use streamsan_report::{Baseline, KnownUpstream, Suppressions};

const RACY: &str = "alloc A 4096\nlaunch s1 fill w:A\n\
                    launch s2 sum r:A\n";

fn racy() -> &'static Analysed {
    static ANALYSED: OnceLock<Analysed> = OnceLock::new();
    ANALYSED.get_or_init(|| {
        let trace = streamsan_text::parse(RACY).expect("a text trace");
        let Ok(analysed) = analyse(false, trace.items.into_iter().map(Ok::<_, Infallible>));
        analysed
    })
}

pub(crate) fn suppressions(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let _ = KnownUpstream::parse(text);
    let Ok(parsed) = Suppressions::parse(text) else { return };
    report(racy(), (Vec::new(), None), &gate(Some(parsed), None), |_| None);
}

pub(crate) fn baseline(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(parsed) = Baseline::parse(text) else { return };
    let written = parsed.render();
    assert_eq!(Baseline::parse(&written).as_ref(), Ok(&parsed), "{written}");
    report(racy(), (Vec::new(), None), &gate(None, Some(parsed)), |_| None);
}

pub(crate) fn suppression_seeds() -> Vec<Vec<u8>> {
    let lines = [
        "race[missing-wait]: kernel:flash_* & api:cuMemcpyHtoD* stream:prefetch  \
         reason=\"upstream #12\" expires=2026-12-01\n",
        "# all of it\nrace[*]: * & * reason=x\nlatent[stale-*]: * & api:a* reason=\"x y\" # end\n",
        "lint[*]: api:\"cu Event\" stream:host fun:a src:*b.cc reason=\"\\\"\"\n",
        "race[*]: kernel:fill mode:write & kernel:sum memory:cache allocated-by:cuMem* reason=r\n",
    ];
    lines.map(|line| line.as_bytes().to_vec()).to_vec()
}

pub(crate) fn baseline_seeds() -> Vec<Vec<u8>> {
    let head = "# streamsan baseline, version 1\n";
    let lines = [
        "0123456789ab race missing-wait read-after-write write fill / read sum\n",
        "ffffffffffff latent x y\n0123456789ab lint \"q\\\"\"\n# end\n",
    ];
    lines.map(|lines| format!("{head}{lines}").into_bytes()).to_vec()
}
