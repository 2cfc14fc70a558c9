//! Lines of the program's source with the call marked.

use crate::Report;
use std::fmt::Write;
use std::ops::Range;
use streamsan_model::{CallStack, FindingAccess};
use streamsan_names::printable_line;

/// Columns before a quoted line.
const INDENT: usize = 11;

/// A line of the source that makes an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quote {
    /// The line, printable.
    pub(crate) source: String,
    /// Where the call stands in it, in characters; the whole statement where the call is not found.
    pub(crate) call: Range<usize>,
}

impl Report<'_> {
    /// A line of the source that makes an access; `line` is the position of the line among the
    /// program's own frames.
    pub(crate) fn quote(&self, source: &str, access: &FindingAccess, line: usize) -> Quote {
        let source = printable_line(source).into_owned();
        let names = self.names_in_source(access, line);
        let (begin, len) = names
            .iter()
            .find_map(|name| word_in(&source, name))
            .unwrap_or_else(|| statement(&source));
        Quote { source, call: begin..begin + len }
    }

    /// The same in lines, with marks under the call.
    pub(super) fn quoted(
        &self,
        source: &str,
        access: &FindingAccess,
        line: usize,
        columns: usize,
    ) -> String {
        let Quote { source, call } = self.quote(source, access, line);
        let room = columns.saturating_sub(INDENT);
        let shown: String = match source.chars().nth(room) {
            Some(_) => source.chars().take(room.saturating_sub(3)).chain("...".chars()).collect(),
            None => source,
        };
        let (begin, end) = (call.start.min(room), call.end.min(room));
        let mut text = format!("{:INDENT$}{shown}\n", "");
        if begin < end {
            let _ = writeln!(
                text,
                "{:indent$}{}",
                "",
                "^".repeat(end - begin),
                indent = INDENT + begin
            );
        }
        text
    }

    /// The names that the line may have for the call, the likeliest first: the functions that it
    /// calls on the way to the driver, the outermost first, the call itself, and the kernel.
    fn names_in_source(&self, access: &FindingAccess, line: usize) -> Vec<String> {
        let mut names = Vec::new();
        let stack = CallStack::of(&self.input.entities, access.stack);
        if let Some(stack) = &stack
            && let Some(own) = stack.own().nth(line)
        {
            let inner = stack.frames.iter().take_while(|frame| *frame != own);
            let inner: Vec<_> = inner.filter_map(|frame| frame.function()).collect();
            names.extend(inner.into_iter().rev().map(base_name));
        }
        names.push(self.input.entities.called(&access.api, access.stack).to_owned());
        // Bindings and programs that look the driver's functions up write the suffix too.
        names.push(access.api.clone());
        if let Some(kernel) = &access.kernel {
            names.push(base_name(&streamsan_names::kernel(kernel)));
        }
        names.retain(|name| name.len() > 1);
        names
    }
}

/// `copy_` of `at::native::copy_<float>`, `add_` of PyTorch's binding `THPVariable_add_`.
fn base_name(function: &str) -> String {
    let mut depth = 0usize;
    let plain = function.chars().filter(|&c| {
        depth += usize::from(c == '<');
        let is_plain = depth == 0;
        depth = depth.saturating_sub(usize::from(c == '>'));
        is_plain
    });
    let plain: String = plain.collect();
    let name = plain.split('(').next().unwrap_or_default();
    let name = name.rsplit([':', '.']).next().unwrap_or_default().trim();
    name.strip_prefix("THPVariable_").unwrap_or(name).to_owned()
}

/// Where a word stands in a line, and its length, in characters.
fn word_in(line: &str, word: &str) -> Option<(usize, usize)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).find_map(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let is_whole = !before.is_some_and(is_part) && !after.is_some_and(is_part);
        is_whole.then(|| (line[..at].chars().count(), word.chars().count()))
    })
}

/// The whole statement of a line, without a comment behind it.
fn statement(line: &str) -> (usize, usize) {
    let end = ["  #", " # ", " //"].iter().filter_map(|comment| line.find(comment)).min();
    let statement = line[..end.unwrap_or(line.len())].trim_end();
    (0, statement.chars().count())
}

#[cfg(test)]
mod tests {
    use super::{base_name, statement, word_in};

    #[test]
    fn names_of_functions_as_sources_have_them() {
        for (function, name) in [
            ("cudaMemcpyAsync", "cudaMemcpyAsync"),
            ("Pool<float>::refill", "refill"),
            ("at::_ops::mul__Tensor::call", "call"),
            ("torch::autograd::THPVariable_mul_", "mul_"),
            ("Loader.fill", "fill"),
            ("cudarc::driver::CudaStream::memcpy_htod<T>", "memcpy_htod"),
            ("", ""),
        ] {
            assert_eq!(base_name(function), name);
        }
    }

    #[test]
    fn whole_words_are_marked() {
        assert_eq!(word_in("x = data.mul_(2)", "mul_"), Some((9, 4)));
        assert_eq!(word_in("refill(fill)", "fill"), Some((7, 4)));
        assert_eq!(word_in("\u{e4} = fill(a)", "fill"), Some((4, 4)));
        assert_eq!(word_in("refill(a)", "fill"), None);
        assert_eq!(statement("return data + 1  # the read"), (0, 15));
        assert_eq!(statement("a = b; // c"), (0, 6));
        assert_eq!(statement("a = b"), (0, 5));
    }
}
