//! The programs, by topic.

mod contexts;
mod hosts;
mod launches;

/// Name and text.
pub(crate) type Case = (&'static str, &'static str);

pub(crate) fn all() -> impl Iterator<Item = Case> {
    [contexts::CASES, hosts::CASES, launches::CASES].concat().into_iter()
}
