//! Images that were changed at random: they may be refused, but nothing panics, and what is read
//! stays within bounds.

use proptest::prelude::*;
use proptest::sample::Index;
use streamsan_kernels::image::{CodeKind, Cubin, Image, MAX_CODE};
use streamsan_testing::images::{
    CUBIN, Elf, PTX, Packing, SAXPY, Section, container, entry, saxpy_cubin, saxpy_info,
};

fn images() -> Vec<Vec<u8>> {
    let cubin = saxpy_cubin(90);
    let text = SAXPY.as_bytes();
    let fatbin = container(&[
        entry(CUBIN, 90, 0, &cubin, Packing::Lz4),
        entry(CUBIN, 80, 0, &cubin, Packing::Zstd),
        entry(PTX, 80, 0, text, Packing::None),
    ]);
    let host = Elf::host(vec![Section::new(".nv_fatbin", fatbin.clone())]).build();
    let headless =
        Elf { headless: true, ..Elf::host(vec![Section::new("x", fatbin.clone())]) }.build();
    vec![cubin, fatbin, host, headless, text.to_vec(), saxpy_info()]
}

/// Reads everything that can be read.
fn exhaust(bytes: &[u8]) {
    let Ok(image) = Image::read(bytes) else { return };
    for entry in image.entries() {
        assert!(entry.size <= MAX_CODE);
        let Ok(code) = entry.code() else { continue };
        if entry.kind == CodeKind::Cubin
            && let Ok(cubin) = Cubin::parse(&code)
        {
            for kernel in &cubin.kernels {
                let _ = cubin.parameters(&kernel.name);
            }
        }
    }
}

proptest! {
    #[test]
    fn changed_bytes_do_not_panic(
        which in any::<Index>(),
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..8),
        cut in any::<Option<Index>>(),
    ) {
        let images = images();
        let mut bytes = which.get(&images).clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        exhaust(&bytes);
    }

    #[test]
    fn changed_words_do_not_panic(
        which in any::<Index>(),
        at in any::<Index>(),
        word in prop::sample::select(vec![0, 1, 0xffff, u64::MAX, 1 << 60, 1 << 31, u64::MAX - 7]),
    ) {
        let images = images();
        let mut bytes = which.get(&images).clone();
        let at = at.index(bytes.len() - 8);
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        exhaust(&bytes);
    }

    #[test]
    fn noise_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..512), magic in 0..4_usize) {
        let magic = [&b""[..], b"\x7fELF\x02\x01", b"\x50\xed\x55\xba\x01\0\x10\0", b".version"][magic];
        exhaust(&[magic, &bytes].concat());
    }

    #[test]
    fn noise_in_descriptions_does_not_panic(info in prop::collection::vec(any::<u8>(), 0..64)) {
        exhaust(&streamsan_testing::images::Cubin::new(90, vec![("k", info)]).build());
    }
}
