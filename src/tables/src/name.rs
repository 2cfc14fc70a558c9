//! The names of traces in paths.

use std::collections::BTreeSet;
use std::path::Path;

/// A name for each trace, of the files' names: with nothing that a path, a shell or an engine takes for
/// something else, each another than all others, and none that an engine takes for a number or a date.
pub fn partition_names(files: &[impl AsRef<Path>]) -> Vec<String> {
    let files: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
    let common = common_directory(&files);
    let mut taken = BTreeSet::new();
    let mut names = Vec::new();
    for file in files {
        let below = file.strip_prefix(&common).unwrap_or(file).with_extension("");
        let name = plain(&below.to_string_lossy());
        let mut free = name.clone();
        let mut number = 2;
        while !taken.insert(free.clone()) {
            free = format!("{name}-{number}");
            number += 1;
        }
        names.push(free);
    }
    names
}

/// The directory that all files are below.
fn common_directory(files: &[&Path]) -> std::path::PathBuf {
    let mut directories = files.iter().map(|file| file.parent().unwrap_or(Path::new("")));
    let Some(first) = directories.next() else { return Default::default() };
    directories.fold(first.to_owned(), |common, directory| {
        let both = common.components().zip(directory.components());
        both.take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
    })
}

fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let plain = plain.trim_start_matches(['.', '_', '-']);
    // Engines guess the type of what stands in a path; `1e5` and `nan` are numbers too.
    let is_number = !plain.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_number || plain.parse::<f64>().is_ok() {
        format!("trace-{plain}")
    } else {
        plain.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::partition_names;

    #[test]
    fn names_are_plain_and_each_another() {
        for (files, names) in [
            (&["traces/rank-0.db", "traces/rank-1.db"][..], &["rank-0", "rank-1"][..]),
            (&["t/a/0.db", "t/b/0.db"], &["a_0", "b_0"]),
            (
                &["0.db", "2026-11-25.db", "1e5.db", "nan.db"],
                &["trace-0", "trace-2026-11-25", "trace-1e5", "trace-nan"],
            ),
            (&["a b=c%.db", "ä.db", "../up.db"], &["a_b_c_", "trace-", "up"]),
            (&["/x/one.db"], &["one"]),
            (&["/x/one.db", "one.trace", "/x/one.db"], &["x_one", "one", "x_one-2"]),
            (&[], &[]),
        ] {
            assert_eq!(partition_names(files), names, "{files:?}");
        }
    }
}
