//! How much a trace knows of what its kernels touch: a part of `stats`.

use super::stats::with_readable_name;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use streamsan_model::{CodeSource, Entities, KernelGap, KernelId, Mode};
use streamsan_names::printable_line;
use streamsan_store::Coverage;

/// The knowledge about a kernel.
struct ModesRow<'a> {
    name: &'a str,
    launches: u64,
    /// `None` where nobody looked at its code.
    source: Option<CodeSource>,
    reason: &'a str,
    words: u64,
    known: u64,
}

/// Kernels that have one source in common.
#[derive(Default)]
struct Sum {
    kernels: u64,
    launches: u64,
    words: u64,
    known: u64,
}

/// The kernels of a trace, those launched most often first.
pub(super) struct KernelModes<'a> {
    rows: Vec<ModesRow<'a>>,
    gaps: BTreeMap<KernelGap, u64>,
}

fn described(source: Option<CodeSource>) -> &'static str {
    source.map_or("nothing seen", CodeSource::description)
}

/// Known words in a hundred, down to a tenth.
fn share(known: u64, words: u64) -> f64 {
    if words == 0 { 100.0 } else { (known as f64 * 1000.0 / words as f64).floor() / 10.0 }
}

impl<'a> KernelModes<'a> {
    pub(super) fn new(
        entities: &'a Entities,
        launches: &BTreeMap<KernelId, u64>,
        coverage: &Coverage,
    ) -> Self {
        let row = |(&id, &launches): (&KernelId, &u64)| {
            let code = entities.kernel_code(id);
            let words = code.map_or(&[][..], |code| &code.words);
            let known = words.iter().filter(|word| word.mode != Some(Mode::MayWrite)).count();
            ModesRow {
                name: entities.kernel(id).map_or("(undeclared)", |kernel| &kernel.name),
                launches,
                source: code.map(|code| code.source),
                reason: code.map_or("", |code| &code.reason),
                words: words.len() as u64,
                known: known as u64,
            }
        };
        let mut rows: Vec<ModesRow<'a>> = launches.iter().map(row).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.launches), row.name));
        let mut gaps = BTreeMap::new();
        for kernel in &coverage.kernels {
            *gaps.entry(kernel.gap).or_default() += kernel.count;
        }
        Self { rows, gaps }
    }

    fn sums(&self) -> BTreeMap<Option<CodeSource>, Sum> {
        let mut sums: BTreeMap<_, Sum> = BTreeMap::new();
        for row in &self.rows {
            let sum = sums.entry(row.source).or_default();
            sum.kernels += 1;
            sum.launches += row.launches;
            sum.words += row.words;
            sum.known += row.known;
        }
        sums
    }

    pub(super) fn text(&self, out: &mut String) {
        if self.rows.iter().all(|row| row.source.is_none()) {
            return;
        }
        let _ = writeln!(out, "\nwhat kernels touch, by where it is known from");
        for (source, sum) in self.sums() {
            let Sum { kernels, launches, words, known } = sum;
            let _ = write!(out, "{kernels:>12}  {}, launched {launches} times", described(source));
            let read = source.is_some_and(CodeSource::is_read);
            let _ = match read {
                true => writeln!(
                    out,
                    "; {known} of {words} words with a known mode ({:.1} %)",
                    share(known, words)
                ),
                false => writeln!(out),
            };
        }
        for (gap, count) in &self.gaps {
            let _ = writeln!(out, "{count:>12}  {}", gap.description());
        }
        let open = self.rows.iter().filter(|row| !row.reason.is_empty());
        for row in open {
            let name = streamsan_names::kernel(row.name);
            let _ = writeln!(out, "{:>12}  {name}: {}", row.launches, printable_line(row.reason));
        }
    }

    pub(super) fn json(&self) -> Value {
        let by_source = self.sums().into_iter().map(|(source, sum)| {
            json!({
                "source": described(source),
                "kernels": sum.kernels,
                "launches": sum.launches,
                "words": sum.words,
                "known": sum.known,
            })
        });
        let kernels = self.rows.iter().map(|row| {
            with_readable_name(json!({
                "kernel": row.name,
                "launches": row.launches,
                "source": described(row.source),
                "reason": row.reason,
                "words": row.words,
                "known": row.known,
            }))
        });
        let gaps = self.gaps.iter();
        let gaps = gaps.map(|(gap, count)| json!({"what": gap.description(), "count": count}));
        json!({
            "by_source": by_source.collect::<Vec<_>>(),
            "kernels": kernels.collect::<Vec<_>>(),
            "gaps": gaps.collect::<Vec<_>>(),
        })
    }
}
