//! File names with `%p` and `%q{VAR}`, as compute-sanitizer and nsys take them.

use std::env;

/// Replaces `%p` by the process id, `%q{VAR}` by the variable's value and `%%` by `%`.
///
/// # Errors
/// What is wrong with the name, for the user.
pub(crate) fn expand(name: &str, pid: u32) -> Result<String, String> {
    expand_with(name, pid, |variable| env::var(variable).ok())
}

fn expand_with(
    name: &str,
    pid: u32,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut result = String::new();
    let mut rest = name;
    while let Some(at) = rest.find('%') {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('p') {
            result.push_str(&pid.to_string());
            rest = after;
        } else if let Some(after) = rest.strip_prefix('%') {
            result.push('%');
            rest = after;
        } else if let Some(after) = rest.strip_prefix("q{") {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| "%q{ is not closed by } in a file name".to_owned())?;
            let value = variable(name)
                .ok_or_else(|| format!("%q{{{name}}} in a file name: {name} is not set"))?;
            result.push_str(&value);
            rest = after;
        } else {
            return Err(
                "in a file name % begins %p (process id), %q{VAR} (environment) or %%".to_owned()
            );
        }
    }
    result.push_str(rest);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::expand_with;

    #[test]
    fn macros_are_replaced_once() {
        let env = |name: &str| (name == "JOB").then(|| "%p".to_owned());
        for (name, expanded) in [
            ("a.db", "a.db"),
            ("a-%p-%p.db", "a-7-7.db"),
            ("%q{JOB}.db", "%p.db"),
            ("100%%.db", "100%.db"),
        ] {
            assert_eq!(expand_with(name, 7, env).as_deref(), Ok(expanded));
        }
    }

    #[test]
    fn mistakes_are_named() {
        for name in ["%x", "%", "%q{JOB", "%q{MISSING}"] {
            assert!(expand_with(name, 7, |_| None).is_err(), "{name}");
        }
    }
}
