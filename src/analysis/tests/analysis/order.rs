//! The order that single calls make: programs of a few lines, each with the findings that it must
//! and may give.

use crate::order_cases;
use streamsan_analysis::{HostModel, Options, analyse_with};
use streamsan_text::{compare, parse};

#[test]
fn every_program_gives_exactly_the_findings_it_expects() {
    let mut differences = String::new();
    for (name, text) in order_cases::all() {
        let trace = parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let host_model =
            if trace.strict_host_threads() { HostModel::Strict } else { HostModel::Observed };
        let options = Options { host_model, ..Options::default() };
        let analysis = analyse_with(options, &trace.items);
        for mismatch in compare(&trace, &analysis.findings, &analysis.lints) {
            differences.push_str(&format!("{name}: {mismatch}\n"));
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}
