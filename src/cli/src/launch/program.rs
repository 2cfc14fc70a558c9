//! Finding the program as a shell would.

use crate::error::Error;
use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The file that `name` stands for: itself when it holds a slash, else the first executable of
/// that name in PATH.
///
/// # Errors
///
/// There is no such file, or it cannot be executed.
pub(crate) fn find(name: &OsStr) -> Result<PathBuf, Error> {
    find_in(name, env::var_os("PATH").as_deref())
}

fn find_in(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Error> {
    let program = name.to_string_lossy().into_owned();
    if name.as_bytes().contains(&b'/') {
        let file = PathBuf::from(name);
        return match obstacle(&file) {
            None => Ok(file),
            Some(Refused::Missing) => Err(Error::ProgramNotFound { program }),
            Some(Refused::Because(reason)) => Err(Error::NotExecutable { program, reason }),
        };
    }
    let mut refused = None;
    let directories = path.unwrap_or(OsStr::new("/bin:/usr/bin"));
    for directory in env::split_paths(directories) {
        if name.is_empty() {
            break;
        }
        // An empty entry means the current directory.
        let file =
            if directory.as_os_str().is_empty() { Path::new(".") } else { &directory }.join(name);
        match obstacle(&file) {
            None => return Ok(file),
            Some(Refused::Missing) => {}
            Some(Refused::Because(reason)) => refused = refused.or(Some(reason)),
        }
    }
    Err(match refused {
        Some(reason) => Error::NotExecutable { program, reason },
        None => Error::ProgramNotFoundInPath { program },
    })
}

enum Refused {
    Missing,
    Because(String),
}

fn obstacle(file: &Path) -> Option<Refused> {
    let metadata = match file.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let reason = format!("a directory of {} may not be entered", file.display());
            return Some(Refused::Because(reason));
        }
        Err(_) => return Some(Refused::Missing),
    };
    if metadata.is_dir() {
        return Some(Refused::Because(format!("{} is a directory", file.display())));
    }
    if rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_err() {
        return Some(Refused::Because(format!(
            "{0} may not be executed; make it executable with chmod +x {0}, or name the \
             interpreter that runs it before it",
            file.display()
        )));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, mode) in [("tool", 0o755), ("data", 0o644)] {
            let file = directory.path().join(name);
            fs::write(&file, "#!/bin/sh\n").expect("written");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("mode set");
        }
        directory
    }

    #[test]
    fn searches_path_in_order() {
        let directory = directory();
        let path = env::join_paths([Path::new("/nonexistent"), directory.path()]).expect("joined");
        let found = find_in(OsStr::new("tool"), Some(&path)).expect("found");
        assert_eq!(found, directory.path().join("tool"));
    }

    #[test]
    fn tells_missing_from_not_executable() {
        let directory = directory();
        let path = Some(directory.path().as_os_str());
        let code = |name: &str| find_in(OsStr::new(name), path).expect_err(name).exit_code().0;
        assert_eq!(code("missing"), 127);
        assert_eq!(code(""), 127);
        assert_eq!(code("/nonexistent/tool"), 127);
        assert_eq!(code("data"), 126);
        assert_eq!(code(directory.path().to_str().expect("a plain path")), 126);
    }
}
