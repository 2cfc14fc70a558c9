//! Suppressions: a line says which pairs are accepted, and why.
//!
//! ```text
//! race[missing-wait]: kernel:flash_* & api:cuMemcpyHtoD* stream:prefetch  reason="upstream #12" expires=2026-12-01
//! ```
//!
//! Both sides are named, so that a pattern for one library does not hide a mistake of the program
//! that happens to meet it. The order of the sides does not matter.

use super::GateError;
use super::lex::{Word, words};
use chrono::NaiveDate;
use std::cell::OnceCell;
use streamsan_model::{
    CallFrame, CallStack, Entities, Finding, FindingAccess, Lint, RaceClass, Severity, StackId,
    shown_path,
};
use wildmatch::WildMatch;

/// A file of suppressions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suppressions {
    /// In the order of the file.
    pub entries: Vec<Suppression>,
}

/// One line of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Suppression {
    /// Its line, counted from 1.
    pub line: usize,
    /// What is accepted.
    pub severity: Severity,
    /// Why it is accepted.
    pub reason: String,
    /// The last day on which it counts.
    pub expires: Option<NaiveDate>,
    class: WildMatch,
    sides: Vec<Side>,
    memory: Vec<(MemoryKey, WildMatch)>,
}

/// What one access must be; empty for any.
#[derive(Clone, Debug, Default, PartialEq)]
struct Side {
    clauses: Vec<(SideKey, WildMatch)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SideKey {
    Kernel,
    Api,
    Stream,
    Mode,
    Function,
    Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemoryKey {
    Memory,
    AllocatedBy,
}

const KEYS: &str =
    "kernel:, api:, stream:, mode:, fun:, src: (of a side), memory:, allocated-by: (of the pair)";

impl Suppressions {
    /// Reads a file.
    ///
    /// # Errors
    /// The first line that is not a suppression.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let words = words(line, index + 1)?;
            if !words.is_empty() {
                entries.push(entry(&words, index + 1)?);
            }
        }
        Ok(Self { entries })
    }
}

fn entry(words: &[Word], line: usize) -> Result<Suppression, GateError> {
    let error = |message: String| GateError::new(line, message);
    let (head, rest) = words.split_first().ok_or_else(|| error("an empty line".to_owned()))?;
    let (severity, class) = head
        .text
        .strip_suffix("]:")
        .and_then(|head| head.split_once('['))
        .and_then(|(severity, class)| Some((severity.parse::<Severity>().ok()?, class)))
        .ok_or_else(|| {
            error(format!(
                "expected race[CLASS]:, latent[CLASS]: or lint[CLASS]:, not '{}'",
                head.text
            ))
        })?;
    let class_pattern = WildMatch::new(class);
    if !RaceClass::ALL.iter().any(|class| class_pattern.matches(class.description())) {
        return Err(error(format!("there is no class '{class}'")));
    }
    let mut suppression = Suppression {
        line,
        severity,
        reason: String::new(),
        expires: None,
        class: class_pattern,
        sides: vec![Side::default()],
        memory: Vec::new(),
    };
    let mut said = false;
    for word in rest {
        if word.text == "&" && !word.quoted {
            if !said {
                return Err(error("a side is empty; write * for any access".to_owned()));
            }
            suppression.sides.push(Side::default());
            said = false;
        } else {
            said |= clause(&mut suppression, &word.text).map_err(error)?;
        }
    }
    if !said {
        return Err(error("a side is empty; write * for any access".to_owned()));
    }
    let expected = if severity == Severity::Lint { 1..=2 } else { 2..=2 };
    if !expected.contains(&suppression.sides.len()) {
        return Err(error("expected two sides, joined by &: (1) & (2)".to_owned()));
    }
    if suppression.reason.trim().is_empty() {
        return Err(error("a reason is missing: reason=\"...\"".to_owned()));
    }
    Ok(suppression)
}

/// Takes one word; answers whether it says something of a side.
fn clause(suppression: &mut Suppression, word: &str) -> Result<bool, String> {
    if let Some(reason) = word.strip_prefix("reason=") {
        suppression.reason = reason.to_owned();
        return Ok(false);
    }
    if let Some(date) = word.strip_prefix("expires=") {
        let date = NaiveDate::parse_from_str(date, "%Y-%m-%d");
        suppression.expires = Some(date.map_err(|_| "expires= takes a date: 2026-12-31")?);
        return Ok(false);
    }
    if word == "*" {
        return Ok(true);
    }
    let unknown = || format!("'{word}' is not understood; what can be named: {KEYS}");
    let (key, pattern) = word.split_once(':').ok_or_else(unknown)?;
    if pattern.is_empty() {
        return Err(format!("the pattern is missing behind {key}:"));
    }
    let pattern = WildMatch::new(pattern);
    let side_key = match key {
        "kernel" => SideKey::Kernel,
        "api" => SideKey::Api,
        "stream" => SideKey::Stream,
        "mode" => SideKey::Mode,
        "fun" => SideKey::Function,
        "src" => SideKey::Source,
        "memory" => {
            suppression.memory.push((MemoryKey::Memory, pattern));
            return Ok(false);
        }
        "allocated-by" => {
            suppression.memory.push((MemoryKey::AllocatedBy, pattern));
            return Ok(false);
        }
        _ => return Err(unknown()),
    };
    if let Some(side) = suppression.sides.last_mut() {
        side.clauses.push((side_key, pattern));
    }
    Ok(true)
}

impl Suppression {
    /// Whether it counts no more.
    pub fn is_expired(&self, today: NaiveDate) -> bool {
        self.expires.is_some_and(|last| today > last)
    }

    /// Whether it accepts a pair.
    pub(super) fn accepts(
        &self,
        finding: &Finding,
        kernels: &KernelNames<'_>,
        entities: &Entities,
    ) -> bool {
        if self.severity != finding.severity
            || !self.class.matches(finding.class.description())
            || !self.accepts_memory(finding, entities)
        {
            return false;
        }
        let [one, other] = self.sides.as_slice() else { return false };
        let (first, second) = (&finding.first, &finding.second);
        let [of_first, of_second] = &kernels.0;
        (one.accepts(first, of_first, entities) && other.accepts(second, of_second, entities))
            || (one.accepts(second, of_second, entities)
                && other.accepts(first, of_first, entities))
    }

    /// Whether it accepts a call that cannot do what it seems to. Only the call is named.
    pub(super) fn accepts_lint(&self, lint: &Lint, entities: &Entities) -> bool {
        let [side] = self.sides.as_slice() else { return false };
        self.severity == Severity::Lint
            && self.class.matches(lint.class.description())
            && self.memory.is_empty()
            && side.clauses.iter().all(|(key, pattern)| match key {
                SideKey::Api => pattern.matches(&lint.api),
                SideKey::Stream => {
                    stream(lint.stream, entities).is_some_and(|s| pattern.matches(s))
                }
                SideKey::Kernel | SideKey::Mode => false,
                SideKey::Function => has_function(lint.stack, entities, pattern),
                SideKey::Source => has_source(lint.stack, entities, pattern),
            })
    }

    fn accepts_memory(&self, finding: &Finding, entities: &Entities) -> bool {
        let allocation = entities.allocation(finding.allocation);
        self.memory.iter().all(|(key, pattern)| {
            allocation.is_some_and(|allocation| match key {
                MemoryKey::Memory => {
                    allocation.name.as_ref().is_some_and(|name| pattern.matches(name))
                        || pattern.matches(allocation.kind.description())
                }
                MemoryKey::AllocatedBy => pattern.matches(&allocation.api),
            })
        })
    }
}

/// The name of a stream, `host` for the host. Numbers differ from run to run.
fn stream(id: Option<streamsan_model::StreamId>, entities: &Entities) -> Option<&str> {
    match id {
        None => Some("host"),
        Some(id) => {
            let stream = entities.stream(id)?;
            Some(stream.name.as_deref().unwrap_or(stream.kind.description()))
        }
    }
}

/// The names of the kernels of a finding, made readable when a pattern asks for it.
pub(super) struct KernelNames<'a>([Forms<'a>; 2]);

impl<'a> KernelNames<'a> {
    pub(super) fn of(finding: &'a Finding) -> Self {
        Self(
            [&finding.first, &finding.second]
                .map(|side| Forms { mangled: side.kernel.as_deref(), readable: OnceCell::new() }),
        )
    }
}

/// What a kernel may be called: mangled, demangled, and as reports show it.
struct Forms<'a> {
    mangled: Option<&'a str>,
    readable: OnceCell<Vec<String>>,
}

impl Forms<'_> {
    fn any(&self, accepts: impl Fn(&str) -> bool) -> bool {
        let Some(mangled) = self.mangled else { return false };
        let readable = || {
            let whole = streamsan_names::whole(mangled);
            whole.into_iter().chain([streamsan_names::kernel(mangled).into_owned()]).collect()
        };
        accepts(mangled) || self.readable.get_or_init(readable).iter().any(|name| accepts(name))
    }
}

impl Side {
    fn accepts(&self, access: &FindingAccess, kernel: &Forms<'_>, entities: &Entities) -> bool {
        self.clauses.iter().all(|(key, pattern)| match key {
            SideKey::Kernel => kernel.any(|name| pattern.matches(name)),
            SideKey::Api => pattern.matches(&access.api),
            SideKey::Stream => stream(access.stream, entities).is_some_and(|s| pattern.matches(s)),
            SideKey::Mode => pattern.matches(access.access.mode.description()),
            SideKey::Function => has_function(access.stack, entities, pattern),
            SideKey::Source => has_source(access.stack, entities, pattern),
        })
    }
}

/// Whether any function of a stack matches, those of libraries included.
fn has_function(id: Option<StackId>, entities: &Entities, pattern: &WildMatch) -> bool {
    let stack = CallStack::of(entities, id);
    stack.is_some_and(|stack| {
        stack.frames.iter().filter_map(CallFrame::function).any(|name| pattern.matches(name))
    })
}

/// The same for source files, and for the images of functions without one.
fn has_source(id: Option<StackId>, entities: &Entities, pattern: &WildMatch) -> bool {
    let stack = CallStack::of(entities, id);
    stack.is_some_and(|stack| {
        stack.frames.iter().any(|frame| {
            let image = frame.image.map(|(image, _)| image);
            let file = frame.file().map(|file| shown_path(file, None));
            let file = file.as_deref().or(image);
            file.is_some_and(|file| pattern.matches(file))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::Suppressions;

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (line, told) in [
            ("missing-wait: * & * reason=x", "expected race[CLASS]:"),
            ("race[no-such]: * & * reason=x", "no class"),
            ("race[*]: * reason=x", "two sides"),
            ("race[*]: * & * & * reason=x", "two sides"),
            ("race[*]: & * reason=x", "empty"),
            ("race[*]: * & reason=x", "empty"),
            ("race[*]: * & *", "reason"),
            ("race[*]: * & * reason=\" \"", "reason"),
            ("race[*]: * & * reason=x expires=soon", "date"),
            ("race[*]: kernels:a & * reason=x", "not understood"),
            ("race[*]: kernel: & * reason=x", "missing"),
            ("race[*]: \"kernel:a & * reason=x", "not closed"),
        ] {
            let error = Suppressions::parse(&format!("# first\n{line}\n")).expect_err(line);
            assert_eq!(error.line, 2, "{line}");
            assert!(error.message.contains(told), "{line}: {error}");
        }
    }

    #[test]
    fn comments_and_empty_lines_are_nothing() {
        let file = "# all of it\n\n   # indented\nrace[stale-*]: * & api:a* reason=\"x y\" # end\n";
        let file = Suppressions::parse(file).expect("a file");
        assert_eq!(file.entries.len(), 1);
        assert_eq!((file.entries[0].line, file.entries[0].reason.as_str()), (4, "x y"));
    }
}
