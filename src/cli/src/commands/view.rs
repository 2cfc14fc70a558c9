//! `streamsan view`: a trace in the terminal.

use super::output::color;
use crate::error::Error;
use crate::options::ViewOptions;
use std::io::{self, IsTerminal};
use streamsan_model::{ExitCode, QueryError};
use streamsan_store::Reader;
use streamsan_tui::Palette;

pub(crate) fn view(options: &ViewOptions) -> Result<ExitCode, Error> {
    // A file that cannot be read is worth knowing of without a terminal too.
    let reader = Reader::open(&options.file)?;
    let file = options.file.display();
    if !io::stdout().is_terminal() {
        return Err(Error::Usage(format!(
            "view draws on a terminal, and standard output is none; run it in a terminal without \
             redirecting its output, or print the races with `streamsan check {file}` and what \
             the trace holds with `streamsan stats {file}`"
        )));
    }
    let palette = if color(&io::stdout()) { Palette::Colour } else { Palette::Plain };
    match streamsan_tui::run(&reader, palette) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(match error.downcast::<QueryError>() {
            Ok(unreadable) => unreadable.into(),
            Err(error) => Error::Usage(format!(
                "the terminal cannot be used: {error}; try another one, or print the races with \
                 `streamsan check {file}`"
            )),
        }),
    }
}
