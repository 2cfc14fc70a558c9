//! The style sheet and the script of the page, with the hashes by which its policy allows them.

use maud::{Markup, PreEscaped, html};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str =
    concat!(include_str!("page.js"), include_str!("timeline.js"), include_str!("start.js"));
/// A line each: SHA-256 in Base64, of the style sheet and of the script. A test holds it against them,
/// and `BLESS=1` writes it.
const HASHES: &str = include_str!("hashes.txt");

/// The policy: nothing from outside, and nothing inline but the two texts.
pub(super) fn policy() -> String {
    let (style, script) = HASHES.trim_end().split_once('\n').unwrap_or_default();
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri \
         'none'; form-action 'none'"
    )
}

/// The style sheet.
pub(super) fn style() -> Markup {
    html! { style { (PreEscaped(STYLE)) } }
}

/// The script.
pub(super) fn script() -> Markup {
    html! { script { (PreEscaped(SCRIPT)) } }
}

#[cfg(test)]
mod tests {
    use super::{HASHES, SCRIPT, STYLE};
    use std::io::Write;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use streamsan_testing::golden;

    /// The hash by another implementation than the browser's: Python's.
    fn hash(text: &str) -> String {
        let program = "import base64, hashlib, sys; \
                       print(base64.b64encode(hashlib.sha256(sys.stdin.buffer.read()).digest()).decode())";
        let mut python = Command::new("python3")
            .args(["-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python is there");
        let mut input = python.stdin.take().expect("a pipe");
        input.write_all(text.as_bytes()).expect("it reads");
        drop(input);
        let output = python.wait_with_output().expect("it ends");
        String::from_utf8(output.stdout).expect("Base64")
    }

    #[test]
    fn hashes_are_those_of_the_assets() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats/html/hashes.txt");
        golden::check(&file, &(hash(STYLE) + &hash(SCRIPT)));
    }

    #[test]
    fn assets_end_nothing_that_is_around_them() {
        for asset in [STYLE, SCRIPT] {
            assert!(!asset.contains("</") && !asset.contains("<!--"));
            assert!(asset.is_ascii(), "other characters are written as escapes");
        }
        assert_eq!(HASHES.lines().count(), 2);
    }

    #[test]
    fn nothing_is_loaded() {
        for asset in [STYLE, SCRIPT] {
            for word in
                ["http:", "https:", "@import", "url(", "fetch(", "XMLHttpRequest", "import("]
            {
                assert!(!asset.contains(word), "{word}");
            }
        }
    }
}
