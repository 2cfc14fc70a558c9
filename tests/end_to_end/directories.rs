//! Another user on the machine: what they can put in our way must neither be loaded nor believed nor
//! written through. Their files are made by giving ours away, which only root can; group-writable
//! directories, links and missing variables need no privilege.
#![expect(clippy::unwrap_used, reason = "a trial fails by panicking, where it stands")]

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;

use crate::command::{Ended, Scratch, arguments};
use crate::{programs, trial};

/// Neither root nor the user of the tests.
const SOMEBODY: u32 = 4242;

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("directories::home_of_another_user", home_of_another_user));
    trials.push(trial("directories::home_of_a_group", home_of_a_group));
    trials.push(trial("directories::no_home", no_home));
    trials.push(trial("directories::links_of_others_are_not_followed", links));
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn make(scratch: &Scratch, name: &str, its_mode: u32) -> PathBuf {
    let path = scratch.file(name);
    fs::create_dir_all(&path).unwrap();
    mode(&path, its_mode);
    path
}

/// A run that must find its race whatever lies in its way.
fn run(scratch: &Scratch, home: Option<&Path>, cache: Option<&Path>) -> Ended {
    let program = programs::rust("use_after_free");
    let files = scratch.run_options();
    let rest = [OsStr::new("--"), program.as_os_str(), OsStr::new("racy")];
    let mut command = scratch.streamsan(&arguments(&["run", "--sim"], &files, &rest));
    command.env_remove("XDG_CACHE_HOME").env_remove("HOME").env("TMPDIR", scratch.file("tmp"));
    home.map(|home| command.env("HOME", home));
    cache.map(|cache| command.env("XDG_CACHE_HOME", cache));
    let ended = scratch.finish(&mut command);
    ended.expect_code(66);
    ended
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn own_name() -> String {
    format!("streamsan-{}", rustix::process::geteuid().as_raw())
}

/// As `sudo` leaves it: root's files would lie in a directory that its owner can change.
fn home_of_another_user() {
    let scratch = Scratch::new();
    make(&scratch, "tmp", 0o1777);
    // Only root can give a directory away; to others, one that all can write to is as bad.
    let (home, words) = if rustix::process::geteuid().is_root() {
        let home = make(&scratch, "home", 0o755);
        chown(&home, Some(SOMEBODY), None).unwrap();
        (home, "belongs to user 4242")
    } else {
        (make(&scratch, "home", 0o777), "others than its owner can write")
    };
    let ended = run(&scratch, Some(&home), None);
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert!(ended.stderr.contains("XDG_CACHE_HOME"), "{}", ended.stderr);
    assert_eq!(names(&home), Vec::<String>::new());
    assert_eq!(names(&scratch.file("tmp")), [own_name()]);
}

fn home_of_a_group() {
    let scratch = Scratch::new();
    make(&scratch, "tmp", 0o1777);
    let home = make(&scratch, "home", 0o770);
    let ended = run(&scratch, Some(&home), None);
    assert!(ended.stderr.contains("others than its owner can write"), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("is used instead").count(), 1, "{}", ended.stderr);
    assert_eq!(names(&home), Vec::<String>::new());
}

/// Among temporary files, only one directory of the user is used, and only if it is the user's.
fn no_home() {
    let scratch = Scratch::new();
    let tmp = make(&scratch, "tmp", 0o1777);
    // Names that were used by versions before, put there by somebody.
    let elsewhere = make(&scratch, "elsewhere", 0o755);
    symlink(&elsewhere, tmp.join("scratch")).unwrap();
    let ended = run(&scratch, None, None);
    assert!(!ended.stderr.contains("is used instead"), "{}", ended.stderr);
    assert_eq!(names(&tmp), ["scratch".to_owned(), own_name()]);
    assert_eq!(names(&elsewhere), Vec::<String>::new());
    let ours = tmp.join(own_name());
    assert_eq!(fs::metadata(&ours).unwrap().mode() & 0o7777, 0o700);
    assert!(names(&ours).contains(&"kernels".to_owned()), "conclusions are kept there");

    // Somebody was faster with that name.
    fs::remove_dir_all(&ours).unwrap();
    symlink(&elsewhere, &ours).unwrap();
    let ended = run(&scratch, None, None);
    assert!(ended.stderr.contains("is a symbolic link"), "{}", ended.stderr);
    assert!(ended.stderr.contains("for this run only"), "{}", ended.stderr);
    assert_eq!(names(&elsewhere), Vec::<String>::new());
    assert_eq!(names(&tmp), ["scratch".to_owned(), own_name()], "the private one is gone");
}

/// A link in the place of each directory below ours.
fn links() {
    let scratch = Scratch::new();
    make(&scratch, "tmp", 0o1777);
    let cache = make(&scratch, "cache", 0o700);
    let ended = run(&scratch, None, Some(&cache));
    assert!(!ended.stderr.contains("is used instead"), "{}", ended.stderr);
    let ours = cache.join("streamsan");
    let below = names(&ours);
    assert!(below.iter().any(|name| name.starts_with("runtime-")), "{below:?}");
    let places: Vec<PathBuf> =
        [ours.clone()].into_iter().chain(below.iter().map(|name| ours.join(name))).collect();
    for place in places {
        let moved = scratch.file("moved");
        fs::rename(&place, &moved).unwrap();
        symlink(&moved, &place).unwrap();
        // All that is there is as it was, and the link is this user's: it is refused all the same,
        // since whoever can make one can make it lead elsewhere.
        let ended = run(&scratch, None, Some(&cache));
        assert!(ended.stderr.contains("is a symbolic link"), "{}", ended.stderr);
        fs::remove_file(&place).unwrap();
        fs::rename(&moved, &place).unwrap();
    }
    // A library's changed file is not loaded.
    let runtime = below.iter().find(|name| name.starts_with("runtime-")).unwrap();
    let file = ours.join(runtime).join("libstreamsan_runtime.so");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, "forged").unwrap();
    run(&scratch, None, Some(&cache));
    assert_eq!(fs::read(&file).unwrap(), whole);
}
