//! `streamsan tsan-stub`: where the library lies that instrumented programs are linked with.

use super::output::print_bytes;
use crate::error::Error;
use crate::launch::unpack;
use streamsan_model::ExitCode;

pub(crate) fn tsan_stub() -> Result<ExitCode, Error> {
    let libraries = unpack().map_err(Error::run(
        "cannot unpack the library; point XDG_CACHE_HOME to a directory that you can write to",
    ))?;
    // Read by scripts: the path as it is.
    let mut path = libraries.tsan_stub.into_os_string().into_encoded_bytes();
    path.push(b'\n');
    print_bytes(&path);
    Ok(ExitCode::SUCCESS)
}
