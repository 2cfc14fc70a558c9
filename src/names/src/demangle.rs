//! Demangling, within bounds.

use cpp_demangle::{DemangleOptions, Symbol};
use std::fmt::{self, Write};

/// Bytes above which a frame's function name is cut: templates of templates run to many kilobytes.
const LONGEST_FUNCTION: usize = 1000;
/// Bytes above which a mangled name is not demangled.
const LONGEST_MANGLED: usize = 32 * 1024;
/// Bytes above which a readable name is given up: a mangled name refers to its own parts, so that
/// each few of its bytes may double the readable name.
const LONGEST_READABLE: usize = 256 * 1024;

/// The whole readable name of a kernel, with result and parameters: `void fill<float>(float*,
/// int)`. `None` for a name that is not mangled, or is mangled in an unknown way.
pub fn whole(name: &str) -> Option<String> {
    complete(demangled(name, DemangleOptions::new())?)
}

/// The readable name without result and parameters: `fill<float>`. `None` as for [`whole`].
pub fn bare(name: &str) -> Option<String> {
    complete(demangled(name, without_parameters())?)
}

fn without_parameters() -> DemangleOptions {
    DemangleOptions::new().no_params().no_return_type()
}

/// A function's name as in its source: `Tensor::add`, `<Vec<T> as Drop>::drop`. Parameters and
/// return types of C++ names and hashes of Rust names are left out, so that a name is the same in
/// every build. A name that is not mangled is returned unchanged.
pub fn function(name: &str) -> String {
    // A version or another mark of the linker follows an `@`.
    let unversioned = name.split_once('@').map_or(name, |(name, _)| name);
    let readable = demangled(unversioned, without_parameters());
    let mut readable = readable.map_or_else(|| unversioned.to_owned(), |readable| readable.text);
    cut(&mut readable, LONGEST_FUNCTION);
    readable
}

/// Cuts a text to a number of bytes, at a character boundary, and marks the cut.
pub(crate) fn cut(text: &mut String, longest: usize) {
    if text.len() > longest {
        let end = (0..=longest).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
}

fn demangled(name: &str, options: DemangleOptions) -> Option<Bounded> {
    let is_mangled = ["_Z", "__Z", "_R"].iter().any(|prefix| name.starts_with(prefix));
    if !is_mangled || name.len() > LONGEST_MANGLED {
        return None;
    }
    let mut readable = Bounded::default();
    let written = match rustc_demangle::try_demangle(name) {
        Ok(rust) => write!(readable, "{rust:#}"),
        Err(_) => Symbol::new(name).ok()?.structured_demangle(&mut readable, &options),
    };
    (written.is_ok() || readable.is_full).then_some(readable)
}

fn complete(readable: Bounded) -> Option<String> {
    (!readable.is_full && !readable.text.is_empty()).then_some(readable.text)
}

/// A text that refuses to become longer than its bound.
#[derive(Debug, Default)]
struct Bounded {
    text: String,
    /// Whether the text has refused anything.
    is_full: bool,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len() + text.len() > LONGEST_READABLE {
            self.is_full = true;
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{function, whole};

    #[test]
    fn names_of_functions_are_as_in_the_source() {
        for (mangled, expected) in [
            ("main", "main"),
            ("cuMemcpyAsync", "cuMemcpyAsync"),
            ("_ZN4core3ptr4Tree4growEi", "core::ptr::Tree::grow"),
            ("_ZN2at6Tensor3addERKS0_", "at::Tensor::add"),
            ("_ZSt4swapIiEvRT_S1_", "std::swap<int>"),
            ("_ZN3foo3barILi3EEEvv", "foo::bar<3>"),
            ("_ZN4demo4main17h05af221e174051e9E", "demo::main"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("memcpy@GLIBC_2.14", "memcpy"),
            ("_Znot", "_Znot"),
            ("Release", "Release"),
            ("", ""),
        ] {
            assert_eq!(function(mangled), expected, "{mangled}");
        }
    }

    #[test]
    fn long_names_of_functions_are_cut() {
        let long = format!("_ZN{}{}1fEv", 3000, "x".repeat(3000));
        let readable = function(&long);
        assert!(readable.len() <= 1003 && readable.ends_with("..."), "{readable}");
        let umlauts = "ä".repeat(2000);
        assert!(function(&umlauts).ends_with("ä..."));
        // Nested too deep for the demangler: the name does not change.
        let deep = format!("_Z1f{}i", "P".repeat(20_000));
        assert!(function(&deep).starts_with("_Z1fPPP") || function(&deep) == "f");
    }

    #[test]
    fn names_that_double_and_double_are_given_up() {
        // `f<pair<..>, pair<..>>`: each argument is the one before, twice.
        let mut name = "_Z1f1pIiiE".to_owned();
        for n in 0..24 {
            let digit = char::from_digit(n, 36).expect("a digit").to_ascii_uppercase();
            name += &format!("S_IS{digit}_S{digit}_E");
        }
        assert_eq!(whole(&name), None);
        assert!(function(&name).len() <= 1003, "{name}");
    }
}
