//! Link arguments of the simulated driver.
//!
//! The library stands in for NVIDIA's, so it bears that library's name whatever the file is called
//! (a program that links `-lcuda` asks for `libcuda.so.1`). `-Bsymbolic` keeps the addresses that
//! `cuGetProcAddress` hands out inside this library when something preloaded exports the same
//! names, as the driver's own addresses are. `-z nodelete` keeps the code mapped after `dlclose`,
//! because the library may own running threads.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in ["-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-Wl,-z,nodelete"] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
