//! What is said, where and how.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// Says something to the user. Nothing can be done about a terminal that is gone.
pub(crate) fn warn(message: &(impl Display + ?Sized)) {
    let _ = writeln!(io::stderr(), "streamsan: {message}");
}

/// Prints text as it is to standard error.
pub(super) fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints data to standard output. A reader that has seen enough (`| head`) is no error.
pub(super) fn print(text: &str) {
    print_bytes(text.as_bytes());
}

/// The same for what need not be text.
pub(super) fn print_bytes(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}

/// Whether to use colour on a stream: on terminals that know it, unless `NO_COLOR` is set.
pub(super) fn color(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !set("NO_COLOR") && !dumb
}
