//! The rule, against another user's tricks. Cases that only root can set up (files of other users)
//! run where the tests run as root; all others run for every user.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, where it stands")]

use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use streamsan_directories::{Directory, Environment, Refused, check_root};
use tempfile::TempDir;

/// A user who is neither root nor the user of the tests.
const SOMEBODY: u32 = 4242;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn fresh() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn what_is_missing_is_made_for_the_user_alone() {
    let scratch = fresh();
    let root = scratch.path().join("a/b");
    let ours = Directory::open(&root, "ours").unwrap();
    assert_eq!(ours.path(), fs::canonicalize(root.join("ours")).unwrap());
    for made in ["a", "a/b", "a/b/ours"] {
        let made = fs::metadata(scratch.path().join(made)).unwrap();
        assert_eq!(made.mode() & 0o7777, 0o700);
    }
    assert_eq!(Directory::open(&root, "ours").unwrap().path(), ours.path(), "a second time");
}

#[test]
fn our_own_directories_are_no_links_at_any_level() {
    let scratch = fresh();
    let elsewhere = scratch.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, scratch.path().join("ours")).unwrap();
    let refused = Directory::open(scratch.path(), "ours").unwrap_err();
    assert!(matches!(refused, Refused::Link(_)), "{refused}");
    assert!(refused.is_suspicious());
    let ours = Directory::open(scratch.path(), "real").unwrap();
    symlink(&elsewhere, ours.path().join("below")).unwrap();
    assert!(matches!(ours.subdirectory("below"), Err(Refused::Link(_))));
    // Nothing was made through them.
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_link_of_the_user_on_the_way_is_followed_and_leaves_no_trace_in_the_path() {
    let scratch = fresh();
    let elsewhere = scratch.path().join("elsewhere/deep");
    fs::create_dir_all(&elsewhere).unwrap();
    symlink("elsewhere/deep", scratch.path().join("relative")).unwrap();
    symlink(&elsewhere, scratch.path().join("absolute")).unwrap();
    symlink("relative/../deep/./../../absolute", scratch.path().join("winding")).unwrap();
    let real = fs::canonicalize(&elsewhere).unwrap().join("ours");
    for way in ["relative", "absolute", "winding"] {
        let ours = Directory::open(&scratch.path().join(way), "ours").unwrap();
        assert_eq!(ours.path(), real, "{way}");
    }
    symlink("circle", scratch.path().join("circle")).unwrap();
    assert!(matches!(check_root(&scratch.path().join("circle")), Err(Refused::TooManyLinks(_))));
}

#[test]
fn directories_that_others_can_write_to_are_refused() {
    let scratch = fresh();
    for writable in [0o770, 0o702, 0o777] {
        let way = scratch.path().join(format!("way-{writable:o}"));
        fs::create_dir(&way).unwrap();
        mode(&way, writable);
        let refused = Directory::open(&way, "ours").unwrap_err();
        assert!(matches!(refused, Refused::Writable { .. }), "{refused}");
        // Nor where the directory is further up.
        let below = way.join("below");
        fs::create_dir(&below).unwrap();
        assert!(matches!(check_root(&below), Err(Refused::Writable { .. })));
        // With the sticky bit, as in /tmp, the user's files are safe there.
        mode(&way, writable | 0o1000);
        let ours = Directory::open(&way, "ours").unwrap();
        mode(ours.path(), writable);
        let refused = Directory::open(&way, "ours").unwrap_err();
        assert!(matches!(refused, Refused::Writable { .. }), "{refused}");
        // The directory's own sticky bit does not help: files in it may belong to others.
        mode(ours.path(), writable | 0o1000);
        assert!(matches!(Directory::open(&way, "ours"), Err(Refused::Writable { .. })));
    }
}

#[test]
fn directories_of_somebody_else_are_refused() {
    if !is_root() {
        // A directory for everybody that belongs to root: allowed on the way.
        assert!(check_root(Path::new("/")).is_ok());
        let refused = Directory::open(Path::new("/"), "etc").unwrap_err();
        assert!(matches!(refused, Refused::Owner { .. }), "{refused}");
        return;
    }
    let scratch = fresh();
    let home = scratch.path().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(SOMEBODY), None).unwrap();
    let refused = Directory::open(&home.join(".cache"), "ours").unwrap_err();
    assert!(matches!(refused, Refused::Owner { owner: SOMEBODY, .. }), "{refused}");
    assert!(!home.join(".cache").exists(), "nothing is made there");
    let made = Directory::open(scratch.path(), "ours").unwrap();
    chown(made.path(), Some(SOMEBODY), None).unwrap();
    assert!(matches!(Directory::open(scratch.path(), "ours"), Err(Refused::Owner { .. })));
    // A link to an allowed directory.
    let target = scratch.path().join("target");
    fs::create_dir(&target).unwrap();
    let link = scratch.path().join("link");
    symlink(&target, &link).unwrap();
    assert!(check_root(&link).is_ok());
    lchown(&link, Some(SOMEBODY), None).unwrap();
    assert!(matches!(check_root(&link), Err(Refused::Owner { .. })));
}

#[test]
fn files_are_made_once_and_used_by_descriptor() {
    let scratch = fresh();
    let ours = Directory::open(scratch.path(), "ours").unwrap();
    let mut file = ours.create_file("file").unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600);
    assert!(ours.create_file("file").is_err(), "it is there");
    let victim = scratch.path().join("victim");
    fs::write(&victim, "secret").unwrap();
    symlink(&victim, ours.path().join("led")).unwrap();
    assert!(ours.create_file("led").is_err());
    symlink(scratch.path().join("new"), ours.path().join("nowhere")).unwrap();
    assert!(ours.create_file("nowhere").is_err());
    assert!(!scratch.path().join("new").exists());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "secret");
    // A file that is put in its place later is not the one that is read.
    file.write_all(b"first").unwrap();
    fs::rename(&victim, ours.path().join("file")).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "first");
}

#[test]
fn only_regular_files_of_the_user_are_read() {
    let scratch = fresh();
    let ours = Directory::open(scratch.path(), "ours").unwrap();
    ours.replace("file", 0o600, &[b"con", b"tent"]).unwrap();
    assert_eq!(ours.read("file", 7).unwrap(), b"content");
    assert!(matches!(ours.read("file", 6), Err(Refused::TooLarge { size: 7, .. })));
    let path = |name: &str| ours.path().join(name);
    symlink(path("file"), path("link")).unwrap();
    assert!(matches!(ours.read("link", 7), Err(Refused::Link(_))));
    // No process writes to the pipe: a careless open waits for ever.
    mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert!(matches!(ours.read("pipe", 7), Err(Refused::NoFile(_))));
    fs::create_dir(path("folder")).unwrap();
    mode(&path("folder"), 0o700);
    assert!(matches!(ours.read("folder", 7), Err(Refused::NoFile(_))));
    mode(&path("file"), 0o620);
    assert!(matches!(ours.read("file", 7), Err(Refused::Writable { .. })));
    mode(&path("file"), 0o600);
    if is_root() {
        chown(path("file"), Some(SOMEBODY), None).unwrap();
        assert!(matches!(ours.read("file", 7), Err(Refused::Owner { .. })));
    }
}

#[test]
fn what_is_replaced_is_not_written_through() {
    let scratch = fresh();
    let ours = Directory::open(scratch.path(), "ours").unwrap();
    let victim = scratch.path().join("victim");
    fs::write(&victim, "secret").unwrap();
    symlink(&victim, ours.path().join("file")).unwrap();
    ours.replace("file", 0o755, &[b"new"]).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "secret");
    assert_eq!(ours.read("file", 3).unwrap(), b"new");
    let made = fs::symlink_metadata(ours.path().join("file")).unwrap();
    assert!(made.is_file() && made.mode() & 0o7777 == 0o755);
    ours.link("alias", "file").unwrap();
    ours.link("alias", "file").unwrap();
    assert_eq!(fs::read_link(ours.path().join("alias")).unwrap(), Path::new("file"));
    assert_eq!(fs::read_dir(ours.path()).unwrap().count(), 2, "nothing is left beside them");
}

#[test]
fn a_directory_for_this_run_is_fresh_and_goes_with_its_last_clone() {
    let scratch = fresh();
    let made = Directory::create(scratch.path(), "name").unwrap();
    let other = Directory::create(scratch.path(), "name").unwrap();
    assert_ne!(made.path(), other.path());
    let run = Directory::for_this_run(scratch.path()).unwrap();
    let below = run.subdirectory("below").unwrap();
    below.create_file("file").unwrap();
    let path = run.path().to_owned();
    drop(run);
    assert!(path.exists(), "a part of it is in use");
    drop(below);
    assert!(!path.exists());
}

fn environment(scratch: &Path, cache_home: Option<&str>) -> Environment {
    let below = |name: &str| Some(OsString::from(scratch.join(name)));
    Environment {
        cache_home: cache_home.and_then(below),
        home: None,
        temporary: Some(scratch.into()),
    }
}

/// The user's own directory among temporary files, where no home is known.
#[test]
fn without_a_home_it_is_the_directory_of_the_user() {
    let scratch = fresh();
    let user = rustix::process::geteuid().as_raw();
    let environment = environment(scratch.path(), None);
    let chosen = environment.choose(|_| Ok(())).unwrap();
    let place = scratch.path().join(format!("streamsan-{user}"));
    assert_eq!(chosen.directory.path(), fs::canonicalize(&place).unwrap());
    assert!(chosen.is_kept && chosen.refused.is_empty());
    // A file of another user exists there.
    fs::remove_dir(&place).unwrap();
    symlink("/", &place).unwrap();
    let chosen = environment.choose(|_| Ok(())).unwrap();
    assert!(!chosen.is_kept && chosen.refused.iter().any(Refused::is_suspicious));
    let path = chosen.directory.path().to_owned();
    assert!(path.starts_with(fs::canonicalize(scratch.path()).unwrap()), "{}", path.display());
    drop(chosen);
    assert!(!path.exists());
}

#[test]
fn a_cache_that_cannot_be_made_is_passed_over_silently_and_one_of_others_is_told() {
    let scratch = fresh();
    fs::write(scratch.path().join("file"), "").unwrap();
    let chosen = environment(scratch.path(), Some("file")).choose(|_| Ok(())).unwrap();
    assert!(chosen.is_kept && !chosen.refused.iter().any(Refused::is_suspicious));
    fs::create_dir(scratch.path().join("open")).unwrap();
    mode(&scratch.path().join("open"), 0o777);
    let chosen = environment(scratch.path(), Some("open")).choose(|_| Ok(())).unwrap();
    assert!(chosen.is_kept && chosen.refused.iter().any(Refused::is_suspicious));
    // A directory that `using` cannot use is passed over too.
    let mut first = true;
    let chosen = environment(scratch.path(), Some("cache")).choose(|directory| {
        match std::mem::replace(&mut first, false) {
            true => directory.read("missing", 1).map(drop),
            false => Ok(()),
        }
    });
    let of_user = format!("streamsan-{}", rustix::process::geteuid().as_raw());
    assert!(chosen.unwrap().directory.path().ends_with(of_user));
    // If others can change the directory for temporary files, /tmp is used.
    let environment = Environment {
        temporary: Some(scratch.path().join("open").into()),
        ..environment(scratch.path(), Some("open"))
    };
    let chosen = environment.choose(|_| Ok(())).unwrap();
    assert!(chosen.directory.path().starts_with("/tmp"), "{}", chosen.directory.path().display());
}
