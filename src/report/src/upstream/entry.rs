//! One entry of the list: its description, and the pairs that it matches.

use crate::GateError;
use crate::gate::{KernelNames, PairPattern};
use std::collections::BTreeMap;
use streamsan_model::{CallStack, Entities, Finding, FindingAccess, RaceClass};
use wildmatch::WildMatch;

const FIELDS: [&str; 8] =
    ["library", "file", "versions", "classes", "pair", "reason", "report", "seen"];

/// A race known in a library.
#[derive(Clone, Debug)]
pub struct UpstreamEntry {
    /// Its name in the list.
    pub name: String,
    /// The library's usual name.
    pub library: String,
    /// The mistake in the library, and the remedy for a program.
    pub reason: String,
    /// The public report that comes nearest to it, where one is known.
    pub report: Option<String>,
    /// The date and the version in which the race was last seen.
    pub seen: String,
    files: Vec<WildMatch>,
    versions: Versions,
    classes: Vec<WildMatch>,
    pairs: Vec<PairPattern>,
}

/// Versions by the numbers in a file's name: those of `libcufft.so.11.3.0` are 11, 3 and 0.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Versions {
    /// The name says nothing, or nothing that matters.
    Any,
    /// From the first on and before the second.
    Between(Vec<u64>, Vec<u64>),
}

impl Versions {
    fn parse(text: &str) -> Option<Self> {
        if text == "any" {
            return Some(Self::Any);
        }
        let (from, before) = text.split_once("..")?;
        let (from, before) = (numbers(from)?, numbers(before)?);
        (from < before).then_some(Self::Between(from, before))
    }

    /// A name without a version is in no range.
    fn hold(&self, file: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Between(from, before) => file
                .split_once(".so.")
                .and_then(|(_, version)| numbers(version))
                .is_some_and(|version| *from <= version && version < *before),
        }
    }
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split('.').map(|number| number.parse().ok()).collect()
}

impl UpstreamEntry {
    /// Whether a pair is this race: as the patterns say, and both calls made by the library itself.
    pub(super) fn knows(&self, finding: &Finding, entities: &Entities) -> bool {
        let class = finding.class.description();
        self.classes.iter().any(|pattern| pattern.matches(class))
            && [&finding.first, &finding.second].iter().all(|side| self.makes(side, entities))
            && {
                let kernels = KernelNames::of(finding);
                self.pairs.iter().any(|pair| pair.accepts_of_library(finding, &kernels, entities))
            }
    }

    /// Whether the library makes a call itself: the innermost frame behind the CUDA runtime is its.
    fn makes(&self, side: &FindingAccess, entities: &Entities) -> bool {
        let stack = CallStack::of(entities, side.stack);
        let image = stack.as_ref().and_then(|stack| stack.library_frames().first()?.image);
        image.is_some_and(|(path, _)| {
            let file = path.rsplit('/').next().unwrap_or(path);
            self.files.iter().any(|pattern| pattern.matches(file)) && self.versions.hold(file)
        })
    }
}

/// The fields of an entry while it is read.
pub(super) struct Fields {
    name: String,
    line: usize,
    /// Each with the line on which it begins; `pair` may stand there often.
    said: BTreeMap<&'static str, Vec<(usize, String)>>,
    last: Option<&'static str>,
}

impl Fields {
    pub(super) fn new(name: &str, line: usize) -> Self {
        Self { name: name.to_owned(), line, said: BTreeMap::new(), last: None }
    }

    /// Takes `field: text`.
    pub(super) fn begin(&mut self, line: usize, text: &str) -> Result<(), GateError> {
        let unknown = || {
            let known = FIELDS.join(", ");
            GateError::new(line, format!("expected a field of an entry ({known}) and a colon"))
        };
        let (field, text) = text.split_once(':').ok_or_else(unknown)?;
        let field = FIELDS.into_iter().find(|known| *known == field).ok_or_else(unknown)?;
        let said = self.said.entry(field).or_default();
        if !said.is_empty() && field != "pair" {
            return Err(GateError::new(line, format!("{field} stands there twice")));
        }
        said.push((line, text.trim().to_owned()));
        self.last = Some(field);
        Ok(())
    }

    /// Takes another line of the last field.
    pub(super) fn go_on(&mut self, line: usize, text: &str) -> Result<(), GateError> {
        let last = self.last.and_then(|field| self.said.get_mut(field)?.last_mut());
        let (_, said) = last.ok_or_else(|| {
            GateError::new(line, "a line that goes on has no field before it".to_owned())
        })?;
        if !said.is_empty() {
            said.push(' ');
        }
        said.push_str(text);
        Ok(())
    }

    /// The entry, if nothing is missing.
    pub(super) fn entry(self) -> Result<UpstreamEntry, GateError> {
        let texts = |field: &str| self.said.get(field).map(Vec::as_slice).unwrap_or_default();
        for field in FIELDS {
            if texts(field).iter().all(|(_, text)| text.is_empty()) {
                let message = format!("the entry '{}' says nothing of its {field}", self.name);
                return Err(GateError::new(self.line, message));
            }
        }
        let text = |field: &str| texts(field).first().map_or("", |(_, text)| text.as_str());
        let line = |field: &str| texts(field).first().map_or(self.line, |(line, _)| *line);
        let patterns =
            |field: &str| text(field).split_whitespace().map(WildMatch::new).collect::<Vec<_>>();
        let classes = patterns("classes");
        for class in &classes {
            if !RaceClass::ALL.iter().any(|known| class.matches(known.description())) {
                let message = format!("there is no class '{}'", class.pattern());
                return Err(GateError::new(line("classes"), message));
            }
        }
        let versions = Versions::parse(text("versions")).ok_or_else(|| {
            let message = "versions are A..B, in numbers with points, or any".to_owned();
            GateError::new(line("versions"), message)
        })?;
        let report = match text("report") {
            "none known" => None,
            link if link.starts_with("https://") => Some(link.to_owned()),
            _ => {
                let message = "a report is an https:// address, or: none known".to_owned();
                return Err(GateError::new(line("report"), message));
            }
        };
        let day = text("seen").split(',').next().unwrap_or_default();
        if day.parse::<chrono::NaiveDate>().is_err() {
            let message = "seen begins with a day: 2026-12-31, ...".to_owned();
            return Err(GateError::new(line("seen"), message));
        }
        let pairs = texts("pair").iter().map(|(line, text)| PairPattern::parse(text, *line));
        Ok(UpstreamEntry {
            library: text("library").to_owned(),
            reason: text("reason").to_owned(),
            report,
            seen: text("seen").to_owned(),
            files: patterns("file"),
            versions,
            classes,
            pairs: pairs.collect::<Result<_, _>>()?,
            name: self.name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Versions;

    #[test]
    fn versions_are_those_of_the_files_name() {
        let versions = Versions::parse("11.2..12").expect("a range");
        for (file, holds) in [
            ("libcufft.so.11.2", true),
            ("libcufft.so.11.2.0.4", true),
            ("libcufft.so.11.10", true),
            ("libcufft.so.12", false),
            ("libcufft.so.12.0", false),
            ("libcufft.so.11", false),
            ("libcufft.so.11.1.9", false),
            ("libcufft.so", false),
            ("libcufft.so.11.x", false),
        ] {
            assert_eq!(versions.hold(file), holds, "{file}");
        }
        assert!(Versions::Any.hold("libtorch_cuda.so"));
        for wrong in ["", "11", "12..11", "11..11", "a..b", "..12", "11.."] {
            assert_eq!(Versions::parse(wrong), None, "{wrong}");
        }
    }
}
