//! The directories of streamsan, on a machine with other users.
//!
//! Files kept for the next run, files that programs load, files that a run shares with its
//! programs, and files for tools lie in directories. Another user must not be able to put anything
//! there, or to lead streamsan elsewhere. One rule holds for all of these directories:
//!
//! 1. A directory of streamsan lies below a *root*: the directory named by `XDG_CACHE_HOME`, `HOME`
//!    or `TMPDIR`, or `/dev/shm` and `/tmp`. The way to the root is walked from `/`, one component
//!    after the other, by descriptor. Each directory on the way belongs to the user or to root, and
//!    only its owner can write to it. A directory that others can write to (`/tmp`) must be sticky,
//!    so that they cannot move the files of others. A link on the way is followed only if it
//!    belongs to the user or to root: no other user can have made or changed such a link.
//! 2. Below the root everything belongs to the user, not to root; neither the group nor others can
//!    write to it, and no link is followed. New directories get mode 0700. A directory that others
//!    could write to is refused and not mended: its contents cannot be trusted.
//! 3. Files are made with `O_EXCL`, and used by their descriptor. A file that is there already is
//!    opened without following links and without waiting (it may be a pipe), and is used if it is a
//!    regular file of the user that nobody else can write to.
//! 4. A directory or file that breaks the rule is refused with the reason; nothing is removed or
//!    changed.
//!
//! The group counts as others: its members are not known here, and access lists (POSIX ACLs) that
//! allow writing show as bits of the group.
//!
//! In a user namespace, files of users outside of it (root among them) all seem to belong to one
//! user, `nobody`. There a directory of that user counts as one of root on the way to a root, and
//! never as one of the user: the maker of the namespace decides what is in it.
//!
//! [`Directory::path`] is for users that need a path, such as the loader. The path has no link in
//! it, and no component that another user can change.
#![forbid(unsafe_code)]

mod cache;
mod directory;
mod owner;
mod refused;
mod walk;

pub use cache::{Chosen, Environment, KEPT};
pub use directory::Directory;
pub use refused::Refused;
pub use walk::check_root;
