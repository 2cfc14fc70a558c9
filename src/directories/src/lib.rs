//! The directories that are ours, on a machine that others use too.
//!
//! What is kept for the next run, what programs load, what a run shares with its programs, and what
//! is handed to tools lies in directories. Another user must not be able to put anything there, or
//! to lead us elsewhere. One rule holds for all of them:
//!
//! 1. A directory of ours lies below a *root*: what `XDG_CACHE_HOME`, `HOME` or `TMPDIR` names, or
//!    `/dev/shm` and `/tmp`. The way to the root is walked from `/`, one component after the other,
//!    by descriptor. Each directory on it belongs to the user or to root, and nobody else can write
//!    to it; where others can (`/tmp`), it is sticky, so that they cannot move what is not theirs.
//!    A link on the way is followed only if it belongs to the user or to root: nobody else can have
//!    made it, and nobody else can change it.
//! 2. Below the root everything is ours: it belongs to the user, not to root, neither the group nor
//!    others can write to it, and no link is followed. What is made gets mode 0700. A directory that
//!    others could write to is refused and not mended: who knows what they have put there.
//! 3. Files are made with `O_EXCL`, and used by their descriptor. A file that is there already is
//!    opened without following links and without waiting (it may be a pipe), and is used if it is a
//!    regular file of the user that nobody else can write to.
//! 4. What breaks the rule is refused with the reason; nothing is removed or changed.
//!
//! The group counts as others: who is in it is not known here, and access lists (POSIX ACLs) that
//! let somebody write show as bits of the group.
//!
//! In a user namespace, files of users outside of it (root among them) all seem to belong to one
//! user, `nobody`. There a directory of that user counts as one of root on the way to a root, and
//! never as one of ours: whoever made the namespace decides what is in it.
//!
//! [`Directory::path`] is for those that take nothing but a path, such as the loader. It has no link
//! in it, and no component that anybody else can change.
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
