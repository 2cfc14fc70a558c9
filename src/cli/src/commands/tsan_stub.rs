//! `streamsan tsan-stub`: where the library lies that instrumented programs are linked with.

use super::output::print;
use crate::error::Error;
use crate::launch::unpack;
use streamsan_model::ExitCode;

pub(crate) fn tsan_stub() -> Result<ExitCode, Error> {
    let libraries = unpack().map_err(Error::run(
        "cannot unpack the library; point XDG_CACHE_HOME to a directory that you can write to",
    ))?;
    print(&format!("{}\n", libraries.tsan_stub.display()));
    Ok(ExitCode::SUCCESS)
}
