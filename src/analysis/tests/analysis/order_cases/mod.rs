//! The programs, by topic.

mod contexts;
mod files;
mod hosts;
mod launches;
mod lints;
mod signals;

/// Name and text.
pub(crate) type Case = (&'static str, &'static str);

pub(crate) fn all() -> impl Iterator<Item = Case> {
    [contexts::CASES, files::CASES, hosts::CASES, launches::CASES, lints::CASES, signals::CASES]
        .concat()
        .into_iter()
}
