//! Messages to the user: the words, the place and the form.
//!
//! Invariant: nothing goes to a terminal from here that it would obey, colours excepted. A message is
//! one line; in longer texts whoever makes them has made the names in them printable.

use crate::options::Coloring;
use serde_json::Value;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use streamsan_names::{printable_json, printable_line, printable_text};
use streamsan_symbols::without_lines;

/// The messages held back while something else has the terminal; `None` while nothing has.
static HELD: Mutex<Option<String>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<String>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps back what is said from now on.
pub(crate) fn hold_messages() {
    held().get_or_insert_default();
}

/// Says what was kept back.
pub(crate) fn release_messages() {
    // Not held any longer when it is said.
    let kept = held().take();
    if let Some(text) = kept {
        say(&text);
    }
}

/// Whether messages are kept back.
pub(super) fn messages_are_held() -> bool {
    held().is_some()
}

/// Says something to the user, in one line. Nothing can be done about a terminal that is gone.
pub(crate) fn warn(message: &(impl Display + ?Sized)) {
    say(&format!("streamsan: {}\n", printable_line(&message.to_string())));
}

/// Says of which images there are no lines, since they have too much debug information.
pub(crate) fn warn_of_large_images(images: &[impl AsRef<Path>]) {
    for image in images {
        warn(&without_lines(image.as_ref()));
    }
}

/// Prints lines to standard error.
pub(super) fn say(text: &str) {
    let text = printable_text(text);
    match held().as_mut() {
        Some(kept) => kept.push_str(&text),
        None => drop(io::stderr().write_all(text.as_bytes())),
    }
}

/// Standard error, for what is written piece by piece.
pub(crate) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match held().as_mut() {
            Some(kept) => kept.push_str(&String::from_utf8_lossy(bytes)),
            None => unless_closed(io::stderr().write_all(bytes))?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard output, for what is written piece by piece.
pub(super) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stdout = io::stdout().lock();
        // Nothing may be left for the end, where nobody hears of a failure.
        unless_closed(stdout.write_all(bytes).and_then(|()| stdout.flush()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader that has seen enough (`| head`) is no error.
fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    })
}

/// Why something that was asked for could not be printed: what was first.
static NOT_PRINTED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints lines to standard output. That it cannot be written is told when the command ends
/// ([`not_printed`]).
pub(super) fn print(text: &str) {
    print_bytes(printable_text(text).as_bytes());
}

/// Prints data for programs, in which names are as they are.
pub(super) fn print_json(document: &Value) {
    print_bytes(printable_json(&format!("{document:#}\n")).as_bytes());
}

/// Prints what is handed on as it is, and need not be text.
pub(super) fn print_bytes(bytes: &[u8]) {
    if let Err(error) = Stdout.write_all(bytes) {
        NOT_PRINTED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Why something could not be printed, if anything could not.
pub(crate) fn not_printed() -> Option<io::Error> {
    NOT_PRINTED.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Columns of a stream that is a terminal and knows them.
pub(super) fn columns(stream: &impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}

/// The command line's choice of colours; it is read once.
static COLORING: OnceLock<Coloring> = OnceLock::new();

/// Follows the command line's wish from now on.
pub(crate) fn color_as(coloring: Coloring) {
    let _ = COLORING.set(coloring);
}

/// Whether to use colour on a stream.
pub(super) fn color(stream: &impl IsTerminal) -> bool {
    let coloring = COLORING.get().copied().unwrap_or_default();
    coloring.applies(stream.is_terminal(), std::env::var_os)
}
