//! One stack out of two: native return addresses and Python frames, in the order of the calls.
//!
//! A call of the interpreter's evaluation function stands for the Python frames that it ran: its
//! native frame gives way to them. Which native frame is such a call is told, best first, by the
//! stack: from 3.10 on each such call keeps a structure in its own C frame whose address the
//! Python frames carry (this holds in the split-off cold part of the function and in interpreters
//! made of tail calls as well); else by the function that the frame's address lies in.
//!
//! Pure, and total: where the two walks do not agree (one of them was cut, or stopped early), no
//! Python frame is lost; those without a native one come last, and native frames of the evaluation
//! function without Python frames stay native.

use core::ops::Range;

use super::PythonFrame;

/// A frame of the native walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NativeFrame {
    /// Return address within the frame's function (of the innermost frame: any address in it).
    pub(crate) address: usize,
    /// Stack pointer while the function runs: the lowest address of its frame (the canonical frame
    /// address of the frame before). 0: not known.
    pub(crate) stack: usize,
}

/// A frame of the merged stack: index into one of the two walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merged {
    Native(usize),
    Python(usize),
}

/// Gives the merged stack to `sink`, innermost frame first. `eval` is the code of the evaluation
/// function.
pub(crate) fn merge(
    native: &[NativeFrame],
    python: &[PythonFrame],
    eval: &Range<usize>,
    sink: &mut dyn FnMut(Merged),
) {
    let mut groups = Groups { python, next: 0 };
    let lowest = native.first().map_or(0, |frame| frame.stack);
    for (index, frame) in native.iter().enumerate() {
        let above = native.get(index + 1).map_or(0, |next| next.stack);
        // Calls of the interpreter that lie between this frame and the one before, so that the
        // native walk did not show them. Addresses below the walk are on another stack.
        while groups
            .stack()
            .is_some_and(|stack| lowest != 0 && (lowest..frame.stack).contains(&stack))
        {
            groups.give(sink);
        }
        let within = eval.contains(&frame.address);
        let stands = match groups.stack() {
            // The outermost frame's end is not known.
            Some(stack) if frame.stack != 0 && above == 0 => within && stack >= frame.stack,
            Some(stack) if frame.stack != 0 => (frame.stack..above).contains(&stack),
            Some(_) => within,
            None => within && !groups.is_empty(),
        };
        if stands {
            groups.give(sink);
        } else {
            sink(Merged::Native(index));
        }
    }
    while !groups.is_empty() {
        groups.give(sink);
    }
}

/// The Python frames not yet given, in groups of one call of the interpreter each.
struct Groups<'a> {
    python: &'a [PythonFrame],
    next: usize,
}

impl Groups<'_> {
    fn is_empty(&self) -> bool {
        self.next >= self.python.len()
    }

    /// Index of the last frame of the group.
    fn last(&self) -> usize {
        let rest = &self.python[self.next..];
        let len = rest.iter().position(|frame| frame.entry).unwrap_or(rest.len() - 1);
        self.next + len
    }

    /// Address in the C frame of the call, where it is known.
    fn stack(&self) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let frame = &self.python[self.last()];
        (frame.entry && frame.stack != 0).then_some(frame.stack)
    }

    fn give(&mut self, sink: &mut dyn FnMut(Merged)) {
        let last = self.last();
        for index in self.next..=last {
            if !self.python[index].is_hidden() {
                sink(Merged::Python(index));
            }
        }
        self.next = last + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVAL: Range<usize> = 0x5000..0x6000;

    /// One word a frame. Native: `name@stack`, where `E...` lies in the evaluation function.
    /// Python: `name`, `name!` for an entry frame, `name!stack`; `-!` is a hidden one.
    fn merged(native: &str, python: &str) -> String {
        let hex = |text: &str| usize::from_str_radix(text, 16).expect("a stack address");
        let natives: Vec<_> = native
            .split_whitespace()
            .map(|word| {
                let (name, stack) = word.split_once('@').unwrap_or((word, "0"));
                let address = if name.starts_with('E') { 0x5500 } else { 0x9000 };
                NativeFrame { address, stack: hex(stack) }
            })
            .collect();
        let pythons: Vec<_> = python
            .split_whitespace()
            .map(|word| {
                let (name, stack) = word.split_once('!').unwrap_or((word, ""));
                let stack = if stack.is_empty() { 0 } else { hex(stack) };
                let code = if name == "-" { 0 } else { 8 };
                PythonFrame { code, entry: word.contains('!'), stack, ..PythonFrame::default() }
            })
            .collect();
        let name = |list: &str, index: usize| {
            let word = list.split_whitespace().nth(index).expect("a frame");
            word.split(['@', '!']).next().expect("a name").to_owned()
        };
        let mut out = Vec::new();
        merge(&natives, &pythons, &EVAL, &mut |frame| {
            out.push(match frame {
                Merged::Native(index) => name(native, index),
                Merged::Python(index) => name(python, index),
            });
        });
        out.join(" ")
    }

    #[test]
    fn order_of_calls() {
        let cases = [
            // native, Python, merged
            ("a b", "", "a b"),
            ("", "p q!", "p q"),
            ("cu ffi E main", "p q!", "cu ffi p q main"),
            ("cu E sort E main", "key! p q!", "cu key sort p q main"),
            // By the stack: the frames' ranges hold the entries.
            ("cu@10 E@20 sort@30 E@40 main@50", "key!24 p q!48", "cu key sort p q main"),
            // The cold part of the function: not within its range of code.
            ("cu@10 cold@20 sort@30 E@40 main@50", "key!24 q!48", "cu key sort q main"),
            // The stack contradicts the code range: a helper that only lies there.
            ("cu@10 Ehelper@18 E@20 main@50", "p!24", "cu Ehelper p main"),
            // A call of the interpreter with no frame to show.
            ("cu E new E init E main", "p! -! q!", "cu p new init q main"),
            (
                "cu@10 E@20 new@28 E@30 call@40 E@48 main@50",
                "p!24 -!32 q!4a",
                "cu p new call q main",
            ),
            // The native walk was cut, or ended early.
            ("cu E sort", "key! p q!", "cu key sort p q"),
            ("cu@10 E@20 sort@30", "key!24 p q!48", "cu key sort p q"),
            ("cu@10 E@20", "key!24 p q!48", "cu key p q"),
            ("cu@10", "key!24 p q!48", "cu key p q"),
            // The Python walk was cut: in the midst of a call, and between two.
            ("cu E sort E main", "key! p", "cu key sort p main"),
            ("cu E sort E main", "key!", "cu key sort E main"),
            ("cu@10 E@20 sort@30 E@40 main@50", "key!24", "cu key sort E main"),
            // The native walk misses a call of the interpreter.
            ("cu@10 E@20 E@60 main@70", "p!24 q!48 r!64", "cu p q r main"),
            // Python frames on another stack than the native ones (a fibre) come last.
            ("cu@910 E@920 start@930", "p!924 q!48", "cu p start q"),
            ("cu@10 E@20 start@30", "p!24 q!948", "cu p start q"),
        ];
        for (native, python, expected) in cases {
            assert_eq!(merged(native, python), expected, "{native} with {python}");
        }
    }
}
