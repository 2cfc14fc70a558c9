//! Links the library so that it is never unloaded: the program keeps pointers to its functions.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
