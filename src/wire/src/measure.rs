//! The kernels that a run measures: a text file in the run directory that [`MEASURE_VARIABLE`]
//! names, so that every process of the tree finds it. The command writes the file; the collector,
//! the measuring library and the simulated driver read it.
//!
//! One rule a line; a kernel is selected if one rule holds for it:
//!
//! ```text
//! all                        every kernel
//! glob PATTERN               kernels whose mangled or readable name is PATTERN
//! kernel IMAGE MANGLED       one kernel of one image
//! twin IMAGE MANGLED         the same; a second copy of its module may take its place
//! ```
//!
//! `PATTERN` reaches to the end of the line and stands for a whole name: `*` is any text, also none,
//! `?` is one character, everything else is itself. `IMAGE` is the XXH3 of the image's bytes as the
//! program gave them to the driver, 16 hexadecimal digits, or `-` where it is not known (code in a
//! file, which nobody hashes). `MANGLED` reaches to the end of the line. In both `\n` is a line
//! break and `\\` a backslash, which no compiler puts into a name. Empty lines mean nothing.
//!
//! Invariants:
//! - Writing and reading give the same rules back.
//! - Where the image is not known on either side, the name alone decides: the selection may then
//!   hold a kernel too many, never one too few. The driver gives a measuring library the machine
//!   code that it has chosen from an image, so that library mostly knows the name alone.
//! - A file that cannot be read as a whole selects nothing and is an error.
//! - `twin` stands only for a kernel whose code refers to no variable of its module, and that no
//!   graph ran: then a copy of the module, with variables of its own, does the same.
//!
//! Deliberately absent: demangling, which the caller brings, and who is worth measuring.

use std::fmt;

/// Names the file of the selection to every process of a measured run.
pub const MEASURE_VARIABLE: &str = "STREAMSAN_MEASURE";

/// Name of that file inside the run directory.
pub const MEASURE_FILE: &str = "measure";

/// The rule in one line of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MeasureRule {
    /// Every kernel.
    All,
    /// Kernels with a name of this pattern.
    Glob(String),
    /// One kernel.
    Kernel {
        /// XXH3 of the image's bytes, `None` where not known.
        image: Option<u64>,
        /// The mangled name.
        name: String,
        /// Whether a launch may run the same kernel of a second copy of its module.
        may_be_twin: bool,
    },
}

/// The kernels to be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    rules: Vec<MeasureRule>,
}

/// A line that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} of the selection of kernels to be measured is no rule: {text:?}; a line is `all`, \
     `glob PATTERN`, `kernel IMAGE MANGLED` or `twin IMAGE MANGLED`"
)]
pub struct BadRule {
    /// Counted from 1.
    pub line: usize,
    /// The line.
    pub text: String,
}

impl Selection {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first line that is no rule.
    pub fn parse(text: &str) -> Result<Self, BadRule> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
        let rules = lines.map(|(at, line)| {
            rule(line).ok_or_else(|| BadRule { line: at + 1, text: line.to_owned() })
        });
        Ok(Self { rules: rules.collect::<Result<_, _>>()? })
    }

    /// The rules, in their order.
    pub fn rules(&self) -> &[MeasureRule] {
        &self.rules
    }

    /// Whether no kernel is selected.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a kernel is selected: its image's hash where known, its mangled name, and its
    /// readable names (with and without parameters, say), which are asked for only where a pattern
    /// did not hold for the mangled one.
    pub fn selects(
        &self,
        image: Option<u64>,
        mangled: &str,
        readable: impl FnOnce() -> Vec<String>,
    ) -> bool {
        let by_itself = |rule: &MeasureRule| match rule {
            MeasureRule::All => true,
            MeasureRule::Glob(pattern) => is_match(pattern, mangled),
            MeasureRule::Kernel { image: of, name, .. } => {
                name == mangled && of.is_none_or(|of| image.is_none_or(|image| image == of))
            }
        };
        if self.rules.iter().any(by_itself) {
            return true;
        }
        let mut globs = self.rules.iter().filter_map(|rule| match rule {
            MeasureRule::Glob(pattern) => Some(pattern),
            _ => None,
        });
        let Some(first) = globs.next() else { return false };
        let names = readable();
        let mut globs = std::iter::once(first).chain(globs);
        globs.any(|pattern| names.iter().any(|name| is_match(pattern, name)))
    }
}

impl Selection {
    /// Whether a second copy of its module may take a selected kernel's place, by the kernel's mangled
    /// name: every rule that may select the kernel says so.
    pub fn may_be_twin(&self, mangled: &str) -> bool {
        let mut is_named = false;
        let all = self.rules.iter().all(|rule| match rule {
            // Nobody has looked at the kernels that a pattern selects.
            MeasureRule::All | MeasureRule::Glob(_) => false,
            MeasureRule::Kernel { name, may_be_twin, .. } if name == mangled => {
                is_named = true;
                *may_be_twin
            }
            MeasureRule::Kernel { .. } => true,
        });
        all && is_named
    }
}

impl FromIterator<MeasureRule> for Selection {
    /// Each rule once, in the order of their first appearance.
    fn from_iter<I: IntoIterator<Item = MeasureRule>>(rules: I) -> Self {
        let mut seen = std::collections::HashSet::new();
        Self { rules: rules.into_iter().filter(|rule| seen.insert(rule.clone())).collect() }
    }
}

impl fmt::Display for Selection {
    /// The text of a file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.rules {
            match rule {
                MeasureRule::All => writeln!(f, "all")?,
                MeasureRule::Glob(pattern) => writeln!(f, "glob {}", escaped(pattern))?,
                MeasureRule::Kernel { image, name, may_be_twin } => {
                    let kind = if *may_be_twin { "twin" } else { "kernel" };
                    match image {
                        Some(image) => writeln!(f, "{kind} {image:016x} {}", escaped(name))?,
                        None => writeln!(f, "{kind} - {}", escaped(name))?,
                    }
                }
            }
        }
        Ok(())
    }
}

fn rule(line: &str) -> Option<MeasureRule> {
    if line == "all" {
        return Some(MeasureRule::All);
    }
    let (kind, rest) = line.split_once(' ')?;
    match kind {
        "glob" => Some(MeasureRule::Glob(unescaped(rest)?)),
        "kernel" | "twin" => {
            let (image, name) = rest.split_once(' ')?;
            let image = match image {
                "-" => None,
                // `from_str_radix` would take a sign.
                hash if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
                    Some(u64::from_str_radix(hash, 16).ok()?)
                }
                _ => return None,
            };
            Some(MeasureRule::Kernel { image, name: unescaped(name)?, may_be_twin: kind == "twin" })
        }
        _ => None,
    }
}

fn escaped(text: &str) -> String {
    // `str::lines` also takes a carriage return off the end of a line.
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        out.push(match character {
            '\\' => match characters.next()? {
                'n' => '\n',
                'r' => '\r',
                '\\' => '\\',
                _ => return None,
            },
            other => other,
        });
    }
    Some(out)
}

/// Whether a pattern stands for all of a text. Takes at most the product of the two lengths: on a
/// mismatch only the newest `*` takes one character more.
fn is_match(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    let mut star = None;
    loop {
        let before = (pattern.clone(), text.clone());
        match (pattern.next(), text.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                text = before.1;
                star = Some((pattern.clone(), text.clone()));
            }
            (Some('?'), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => {
                let Some((behind, taken)) = &mut star else { return false };
                if taken.next().is_none() {
                    return false;
                }
                (pattern, text) = (behind.clone(), taken.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BadRule, MeasureRule, Selection, is_match};

    fn kernel(image: Option<u64>, name: &str) -> MeasureRule {
        MeasureRule::Kernel { image, name: name.to_owned(), may_be_twin: false }
    }

    fn twin(name: &str) -> MeasureRule {
        MeasureRule::Kernel { image: None, name: name.to_owned(), may_be_twin: true }
    }

    fn none() -> Vec<String> {
        Vec::new()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let rules = [
            MeasureRule::All,
            MeasureRule::Glob("void fill<float>(float*, int)".to_owned()),
            MeasureRule::Glob(" two  spaces \\n ".to_owned()),
            MeasureRule::Glob(String::new()),
            kernel(Some(0x2a), "_Z4fillPf"),
            kernel(None, "odd\nname\r"),
            kernel(Some(u64::MAX), ""),
            twin("_Z4copyPf"),
        ];
        let written: Selection = rules.iter().cloned().collect();
        let text = written.to_string();
        assert_eq!(text.lines().count(), rules.len(), "{text}");
        assert!(text.contains("kernel 000000000000002a _Z4fillPf\n"), "{text}");
        assert_eq!(Selection::parse(&text), Ok(written));
    }

    #[test]
    fn a_rule_is_kept_once() {
        let twice: Selection =
            [kernel(None, "a"), kernel(None, "b"), kernel(None, "a")].into_iter().collect();
        assert_eq!(twice.rules(), [kernel(None, "a"), kernel(None, "b")]);
    }

    #[test]
    fn a_line_that_is_no_rule_is_refused() {
        for line in [
            "everything",
            "all kernels",
            "glob",
            "kernel",
            "kernel -",
            "kernel 2a name",
            "kernel +00000000000002a name",
            "kernel - broken\\",
            "glob broken\\t",
        ] {
            let refused = Selection::parse(&format!("all\n\n{line}\n"));
            assert_eq!(refused, Err(BadRule { line: 3, text: line.to_owned() }));
        }
    }

    #[test]
    fn an_empty_file_selects_nothing() {
        let nothing = Selection::parse("\n\n").expect("no rule is wrong");
        assert!(nothing.is_empty());
        assert!(!nothing.selects(None, "fill", none));
    }

    #[test]
    fn an_unknown_image_leaves_the_decision_to_the_name() {
        let known: Selection = [kernel(Some(7), "fill")].into_iter().collect();
        let unknown: Selection = [kernel(None, "fill")].into_iter().collect();
        for (selection, image, name, expected) in [
            (&known, Some(7), "fill", true),
            (&known, Some(8), "fill", false),
            (&known, None, "fill", true),
            (&known, Some(7), "filler", false),
            (&unknown, Some(8), "fill", true),
            (&unknown, None, "fil", false),
        ] {
            assert_eq!(selection.selects(image, name, none), expected, "{image:?} {name}");
        }
    }

    #[test]
    fn a_twin_is_one_by_every_rule_that_may_select_it() {
        let of = |rules: Vec<MeasureRule>| rules.into_iter().collect::<Selection>();
        assert!(of(vec![twin("fill"), kernel(None, "copy")]).may_be_twin("fill"));
        assert!(!of(vec![twin("fill"), kernel(None, "copy")]).may_be_twin("copy"));
        assert!(!of(vec![twin("fill"), kernel(Some(7), "fill")]).may_be_twin("fill"));
        assert!(!of(vec![twin("fill"), MeasureRule::Glob("f*".into())]).may_be_twin("fill"));
        assert!(!of(vec![twin("fill"), MeasureRule::All]).may_be_twin("fill"));
        assert!(!of(vec![twin("fill")]).may_be_twin("other"));
    }

    #[test]
    fn patterns_hold_for_either_name() {
        let selection = Selection::parse("glob fill<*>\nglob *copy*").expect("rules");
        let readable = || vec!["void fill<float>(float*)".into(), "fill<float>".into()];
        assert!(selection.selects(None, "_Z4fillIfEvPf", readable));
        assert!(selection.selects(None, "_Z8copy_allv", || panic!("the mangled name is enough")));
        assert!(!selection.selects(None, "_Z4sortv", || vec!["sort()".into()]));
        let all = Selection::parse("all").expect("a rule");
        assert!(all.selects(None, "", || panic!("nobody needs a name")));
    }

    #[test]
    fn patterns_stand_for_whole_names() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
            ("a*b*c", "a-b-b-c-c", true),
            ("*ab", "aab", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("?", "é", true),
            ("[a]", "a", false),
            ("**a", "bba", true),
        ] {
            assert_eq!(is_match(pattern, text), expected, "{pattern} {text}");
        }
    }
}
