//! Mangled names made readable.

use cpp_demangle::{DemangleOptions, Symbol};

/// Longer names are cut: templates of templates run to many kilobytes.
const LONGEST: usize = 1000;
/// Longer mangled names are not tried.
const LONGEST_MANGLED: usize = 32 * 1024;

/// A function's name as its source has it: `Tensor::add`, `<Vec<T> as Drop>::drop`. Of C++ names
/// neither parameters nor return type are kept, of Rust names no hash, so that a name is the same
/// in every build. A name that is not mangled is handed back as it is.
pub fn demangled(name: &str) -> String {
    // A version or the like of the linker's follows an `@`, a clone's suffix a dot.
    let bare = name.split_once('@').map_or(name, |(bare, _)| bare);
    let mut readable = readable(bare).unwrap_or_else(|| bare.to_owned());
    if readable.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|&end| readable.is_char_boundary(end)).unwrap_or(0);
        readable.truncate(end);
        readable.push_str("...");
    }
    readable
}

fn readable(name: &str) -> Option<String> {
    if name.len() > LONGEST_MANGLED {
        return None;
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return Some(format!("{rust:#}"));
    }
    if !name.starts_with("_Z") && !name.starts_with("__Z") {
        return None;
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    Symbol::new(name).ok()?.demangle_with_options(&options).ok()
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn names_are_as_in_the_source() {
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
            ("", ""),
        ] {
            assert_eq!(demangled(mangled), expected, "{mangled}");
        }
    }

    #[test]
    fn long_names_are_cut() {
        let long = format!("_ZN{}{}1fEv", 3000, "x".repeat(3000));
        let readable = demangled(&long);
        assert!(readable.len() <= 1003 && readable.ends_with("..."), "{readable}");
        let umlauts = "ä".repeat(2000);
        assert!(demangled(&umlauts).ends_with("ä..."));
        // Nested too deep for the demangler: it stays as it is.
        let deep = format!("_Z1f{}i", "P".repeat(20_000));
        assert!(demangled(&deep).starts_with("_Z1fPPP") || demangled(&deep) == "f");
    }
}
