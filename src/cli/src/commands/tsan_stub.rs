//! `streamsan tsan-stub`: where the library lies that instrumented programs are linked with.

use super::output::print_bytes;
use crate::error::Error;
use crate::launch::unpack;
use std::io;
use streamsan_model::ExitCode;

/// `streamsan tsan-stub`.
///
/// # Errors
///
/// A library that cannot be unpacked, or not to a place where it stays.
pub(crate) fn tsan_stub() -> Result<ExitCode, Error> {
    let libraries = unpack().map_err(Error::run(
        "cannot unpack the library; point XDG_CACHE_HOME to a directory that you can write to",
    ))?;
    if !libraries.are_kept {
        return Err(Error::Run {
            what: "the library has no place to stay".to_owned(),
            source: io::Error::other(
                "no directory of yours can be used; point XDG_CACHE_HOME to one that only you can \
                 write to",
            ),
        });
    }
    // Read by scripts: the path as it is.
    let mut path = libraries.tsan_stub.into_os_string().into_encoded_bytes();
    path.push(b'\n');
    print_bytes(&path);
    Ok(ExitCode::SUCCESS)
}
