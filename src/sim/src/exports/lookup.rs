//! `cuGetProcAddress`: from a base name, a CUDA version and flags to an exported function.

use super::args::{Out, Text};
use super::start::DRIVER_VERSION;
use super::versions::VERSIONS;
use super::{Entry, TABLES};
use crate::errors::{CuError, Outcome};
use crate::exports::enter::early;

/// CU_GET_PROC_ADDRESS_LEGACY_STREAM and _PER_THREAD_DEFAULT_STREAM.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;
/// First CUDA version whose per-thread twins exist.
const TWINS_SINCE: i32 = 7000;

/// CUdriverProcAddressQueryResult.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Found(&'static Entry),
    NotFound,
    VersionTooLow,
}

/// The exported function of exactly this name.
fn exported(name: &str) -> Option<&'static Entry> {
    TABLES.iter().copied().flatten().find(|entry| entry.name == name)
}

/// The function that a program built for CUDA `version` means by `base`.
fn find(base: &str, version: i32, flags: u64) -> Answer {
    let Some((_, suffix, variants)) = VERSIONS.iter().find(|row| row.0 == base) else {
        return Answer::NotFound;
    };
    let known = || variants.iter().filter(|variant| variant.0 <= DRIVER_VERSION);
    if known().next().is_none() {
        return Answer::NotFound;
    }
    let Some((_, name)) = known().rfind(|variant| variant.0 <= version) else {
        return Answer::VersionTooLow;
    };
    let wants_twin = flags & PER_THREAD != 0 && version >= TWINS_SINCE && !suffix.is_empty();
    let twin = wants_twin.then(|| exported(&format!("{name}{suffix}"))).flatten();
    twin.or_else(|| exported(name)).map_or(Answer::NotFound, Answer::Found)
}

fn answer(symbol: Text, function: Out<u64>, version: i32, flags: u64, status: Out<u32>) -> Outcome {
    function.check()?;
    let symbol = symbol.get()?;
    if flags & !(LEGACY | PER_THREAD) != 0 || flags == LEGACY | PER_THREAD {
        return Err(CuError::INVALID_VALUE);
    }
    let (address, code) = match find(&symbol, version, flags) {
        Answer::Found(entry) => (entry.address as u64, 0),
        Answer::NotFound => (0, 1),
        Answer::VersionTooLow => (0, 2),
    };
    status.set_if_wanted(code);
    function.set(address)?;
    if code == 0 { Ok(()) } else { Err(CuError::NOT_FOUND) }
}

macro_rules! lookup {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {
        $(
            #[cfg_attr(not(test), unsafe(no_mangle))]
            extern "C" fn $name($($argument: $kind),*) -> u32 {
                early(stringify!($name), move || $body)
            }
        )*
        pub(super) const TABLE: &[Entry] =
            &[$(Entry { name: stringify!($name), address: $name as *const () },)*];
    };
}

lookup! {
    fn cuGetProcAddress(symbol: Text, function: Out<u64>, version: i32, flags: u64) {
        answer(symbol, function, version, flags, Out::NULL)
    }
    fn cuGetProcAddress_v2(
        symbol: Text,
        function: Out<u64>,
        version: i32,
        flags: u64,
        status: Out<u32>,
    ) {
        answer(symbol, function, version, flags, status)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn name(base: &str, version: i32, flags: u64) -> Option<&'static str> {
        match find(base, version, flags) {
            Answer::Found(entry) => Some(entry.name),
            _ => None,
        }
    }

    #[test]
    fn the_variant_follows_from_version_and_flags() {
        let cases = [
            ("cuMemAlloc", 12_080, 0, Some("cuMemAlloc_v2")),
            ("cuMemAlloc", 3020, 0, Some("cuMemAlloc_v2")),
            ("cuMemAlloc", 2000, 0, Some("cuMemAlloc")),
            ("cuMemAlloc", 1000, 0, None),
            ("cuMemcpyHtoD", 12_000, 0, Some("cuMemcpyHtoD_v2")),
            ("cuMemcpyHtoD", 12_000, PER_THREAD, Some("cuMemcpyHtoD_v2_ptds")),
            ("cuMemcpyHtoD", 6050, PER_THREAD, Some("cuMemcpyHtoD_v2")),
            ("cuLaunchKernel", 12_000, PER_THREAD, Some("cuLaunchKernel_ptsz")),
            ("cuLaunchKernel", 12_000, LEGACY, Some("cuLaunchKernel")),
            ("cuLaunchHostFunc", 13_010, 0, Some("cuLaunchHostFunc")),
            ("cuEventElapsedTime", 12_080, 0, Some("cuEventElapsedTime_v2")),
            ("cuCtxCreate", 11_040, 0, Some("cuCtxCreate_v3")),
            ("cuGetProcAddress", 11_030, 0, Some("cuGetProcAddress")),
            ("cuGetProcAddress", 12_000, 0, Some("cuGetProcAddress_v2")),
            ("cuEventCreate", 12_000, PER_THREAD, Some("cuEventCreate")),
            ("cuGraphLaunch", 12_000, PER_THREAD, Some("cuGraphLaunch_ptsz")),
            ("cuNoSuchThing", 12_000, 0, None),
            ("", 0, 0, None),
        ];
        for (base, version, flags, expected) in cases {
            assert_eq!(name(base, version, flags), expected, "{base} {version} {flags}");
        }
        assert!(matches!(find("cuMemAlloc", 1000, 0), Answer::VersionTooLow));
        let newer = find("cuMemGetMemPool", 13_000, 0);
        assert!(matches!(newer, Answer::NotFound), "newer than the driver");
    }

    #[test]
    fn every_export_has_one_name_and_every_name_of_the_table_is_exported() {
        let names: Vec<&str> = TABLES.iter().copied().flatten().map(|entry| entry.name).collect();
        let unique: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len());
        for (base, suffix, variants) in VERSIONS {
            assert!(variants.is_sorted_by_key(|variant| variant.0), "{base}");
            for (version, name) in *variants {
                if *version <= DRIVER_VERSION {
                    assert!(unique.contains(name), "{base}: {name}");
                }
            }
            let newest = variants.iter().rfind(|variant| variant.0 <= DRIVER_VERSION);
            if let Some((_, name)) = newest.filter(|_| !suffix.is_empty()) {
                assert!(unique.contains(&*format!("{name}{suffix}")), "{name}{suffix}");
            }
        }
    }
}
