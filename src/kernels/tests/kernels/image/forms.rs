//! Every form of image, and what it must not be taken for.

use streamsan_kernels::image::{CodeKind, Compression, Image, ImageError, Listing, MAX_CODE};
use streamsan_testing::images::{
    CUBIN, Cubin, Elf, FAMILY, PTX, Packing, SAXPY, SPECIFIC, Section, container, entry, raw_entry,
    saxpy_cubin,
};

/// Kind, target and code of every entry.
fn pieces(image: &[u8]) -> Vec<(CodeKind, String, Vec<u8>)> {
    let image = Image::read(image).expect("an image");
    let piece = |entry: &streamsan_kernels::image::Entry<'_>| {
        let target = entry.target.map(|target| target.to_string()).unwrap_or_default();
        (entry.kind, target, entry.code().expect("unpacks").into_owned())
    };
    image.entries().map(piece).collect()
}

fn ptx(target: &str) -> (CodeKind, String, Vec<u8>) {
    (CodeKind::Ptx, target.to_owned(), SAXPY.as_bytes().to_vec())
}

#[test]
fn ptx_ends_with_its_file_or_with_nul() {
    for tail in ["", "\0", "\0\0\0garbage"] {
        let image = [SAXPY.as_bytes(), tail.as_bytes()].concat();
        assert_eq!(pieces(&image), [ptx("sm_80")], "{tail:?}");
    }
}

#[test]
fn target_of_ptx_is_the_directive() {
    for (head, target) in [
        (".version 8.0\n.target sm_90a, texmode_independent\n", Some("sm_90a")),
        ("/* .target sm_10 */ .version 8.0\n\t.target\tsm_100f// x\n", Some("sm_100f")),
        ("\n// x\n.version 1.0\n.target something\n", None),
        (".version 1.0", None),
    ] {
        let image = Image::read(head.as_bytes()).expect("PTX");
        let found = image.entries().next().and_then(|entry| entry.target);
        assert_eq!(found.map(|target| target.to_string()).as_deref(), target, "{head}");
    }
}

#[test]
fn entries_are_unpacked() {
    let cubin = saxpy_cubin(90);
    let text = [SAXPY.as_bytes(), b"\0"].concat();
    for (packing, compression) in [
        (Packing::None, Compression::None),
        (Packing::Lz4, Compression::Lz4),
        (Packing::Zstd, Compression::Zstd),
    ] {
        let fatbin = container(&[
            entry(CUBIN, 90, SPECIFIC, &cubin, packing),
            entry(PTX, 80, 0x11, &text, packing),
            entry(CUBIN, 100, FAMILY, &cubin, packing),
            entry(16, 90, 0, b"other", Packing::None),
        ]);
        let pieces = pieces(&fatbin);
        assert_eq!(pieces[0], (CodeKind::Cubin, "sm_90a".to_owned(), cubin.clone()));
        assert_eq!(pieces[1], ptx("sm_80"));
        assert_eq!(pieces[2].1, "sm_100f");
        assert_eq!(pieces[3].0, CodeKind::Other(16));
        let image = Image::read(&fatbin).expect("an image");
        assert!(image.entries().take(3).all(|entry| entry.compression == compression));
    }
}

#[test]
fn several_fat_binaries_stand_behind_one_another() {
    let one = container(&[entry(PTX, 80, 0, SAXPY.as_bytes(), Packing::None)]);
    let mut file = one.clone();
    file.extend([0; 16]);
    file.extend(&one);
    assert_eq!(pieces(&file), [ptx("sm_80"), ptx("sm_80")]);
}

#[test]
fn host_programs_are_searched_by_section_and_without_headers() {
    let fatbin = container(&[entry(PTX, 80, 0, SAXPY.as_bytes(), Packing::Zstd)]);
    let sections = |name: &str| {
        vec![
            Section::new(".text", vec![0x90; 40]),
            Section::new(name, [&[0; 8][..], &fatbin, &[0; 24], &fatbin].concat()),
        ]
    };
    for (name, headless, relocatable) in [
        (".nv_fatbin", false, false),
        ("__nv_relfatbin", false, true),
        (".rodata", false, false),
        (".nv_fatbin", true, false),
    ] {
        let file = Elf { headless, ..Elf::host(sections(name)) }.build();
        assert_eq!(pieces(&file), [ptx("sm_80"), ptx("sm_80")], "{name} {headless}");
        let image = Image::read(&file).expect("an image");
        assert!(image.containers.iter().all(|container| container.relocatable == relocatable));
        let places: Vec<_> = image.containers.iter().map(|c| c.offset as usize).collect();
        assert!(places.iter().all(|&at| file[at..].starts_with(&fatbin)), "{places:?}");
    }
}

#[test]
fn wrapper_in_a_file_is_followed_by_its_fat_binary() {
    let fatbin = container(&[entry(PTX, 80, 0, SAXPY.as_bytes(), Packing::Lz4)]);
    let mut file = 0x4662_43b1_u32.to_le_bytes().to_vec();
    file.extend([1, 0, 0, 0]);
    file.extend([0; 16]);
    file.extend(fatbin);
    assert_eq!(pieces(&file), [ptx("sm_80")]);
}

#[test]
fn cubin_is_one_piece() {
    let cubin = saxpy_cubin(120);
    assert_eq!(pieces(&cubin), [(CodeKind::Cubin, "sm_120".to_owned(), cubin.clone())]);
    let relocatable = Cubin { relocatable: true, ..Cubin::new(90, Vec::new()) }.build();
    assert!(Image::read(&relocatable).expect("an image").containers[0].relocatable);
}

#[test]
fn what_is_no_image_is_told() {
    let narrow = [b"\x7fELF\x01\x01\x01", &[0; 57][..]].concat();
    let host = Elf::host(vec![Section::new(".text", vec![0x90; 40])]).build();
    for (image, error) in [
        (&b""[..], ImageError::Unrecognized),
        (b"int main() {}", ImageError::Unrecognized),
        (b"// only a comment", ImageError::Unrecognized),
        (&narrow, ImageError::Class),
        (&host, ImageError::NoCode),
        (&container(&[]), ImageError::NoCode),
    ] {
        assert_eq!(Image::read(image).map(|_| ()), Err(error));
    }
}

/// A frame whose blocks stand for 128 KiB of zeros with four bytes each (RFC 8878, 3.1.1).
fn zeros(mebibytes: u32) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend((mebibytes << 20).to_le_bytes());
    let blocks = mebibytes * 8;
    for block in 1..=blocks {
        let header = (128 << 10) << 3 | 1 << 1 | u32::from(block == blocks);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

#[test]
fn what_a_few_bytes_unpack_to_is_bounded() {
    let unpacked = |mebibytes: u32| {
        let frame = zeros(mebibytes);
        let (size, claimed) = (frame.len() as u32, u64::from(mebibytes) << 20);
        let fatbin = container(&[raw_entry(CUBIN, 90, 0x8000, size, claimed, frame)]);
        let image = Image::read(&fatbin).expect("headers are well");
        image.entries().next().expect("an entry").code().map(|code| code.len())
    };
    assert_eq!(unpacked(16), Ok(16 << 20));
    let limit = 16 << 20;
    assert_eq!(unpacked(512), Err(ImageError::TooLarge { claimed: 512 << 20, limit }));
}

/// Each piece is taken, all of them are not: what was parsed of them is kept.
#[test]
fn ptx_of_an_image_is_bounded_together() {
    let text = format!("{SAXPY}{}", "//".repeat(4 << 20));
    let piece = entry(PTX, 80, 0, text.as_bytes(), Packing::Zstd);
    let fatbin = container(&vec![piece; 8]);
    let image = Image::read(&fatbin).expect("headers are well");
    let listing = Listing::new(&image, None);
    assert!(!listing.modules.is_empty() && !listing.problems.is_empty());
    assert_eq!(listing.modules.len() + listing.problems.len(), 8);
}

#[test]
fn sections_and_names_that_lie_over_each_other_are_damage() {
    let cubin = saxpy_cubin(90);
    assert!(Image::read(&cubin).is_ok());
    // The section headers are the last bytes; the size of each is at 32.
    let mut over = cubin.clone();
    let first = over.len() - 64 * u16::from_le_bytes([over[60], over[61]]) as usize;
    for header in over[first + 64..].chunks_exact_mut(64) {
        let offset = u64::from_le_bytes(header[24..32].try_into().expect("8 bytes"));
        header[32..40].copy_from_slice(&(cubin.len() as u64 - offset).to_le_bytes());
    }
    let what = "sections that lie over each other";
    assert_eq!(Image::read(&over).map(|_| ()), Err(ImageError::Damaged { what, offset: 0 }));
}

#[test]
fn claims_are_checked_before_memory_is_taken() {
    let huge = 1 << 60;
    for (flags, claimed) in [(0x2000, huge), (0x8000, huge), (0x2000, MAX_CODE + 1)] {
        let fatbin = container(&[raw_entry(PTX, 80, flags, 8, claimed, vec![0; 8])]);
        let error = Image::read(&fatbin).map(|_| ()).expect_err("refused");
        assert_eq!(error, ImageError::TooLarge { claimed, limit: MAX_CODE });
    }
    // Below the general bound, but more than eight bytes can stand for.
    for (flags, limit) in [(0x2000, 8 * 255), (0x8000, 8 * 32769)] {
        let claimed = MAX_CODE;
        let fatbin = container(&[raw_entry(PTX, 80, flags, 8, claimed, vec![0; 8])]);
        let image = Image::read(&fatbin).expect("headers are well");
        let error = image.entries().next().expect("an entry").code().expect_err("refused");
        assert_eq!(error, ImageError::TooLarge { claimed, limit });
    }
}

#[test]
fn packed_code_must_unpack_to_its_size() {
    let packed = lz4_flex::block::compress(SAXPY.as_bytes());
    for size in [SAXPY.len() as u64 - 1, SAXPY.len() as u64 + 1] {
        for (flags, data) in [
            (0x2000, packed.clone()),
            (0x8000, entry(PTX, 80, 0, SAXPY.as_bytes(), Packing::Zstd)[80..].to_vec()),
        ] {
            let length = data.len() as u32;
            let fatbin = container(&[raw_entry(PTX, 80, flags, length, size, data)]);
            let image = Image::read(&fatbin).expect("headers are well");
            let code = image.entries().next().expect("an entry").code();
            assert!(matches!(code, Err(ImageError::Packed { .. })), "{flags:#x} {size} {code:?}");
        }
    }
}

#[test]
fn offset_of_an_empty_section_means_nothing() {
    let mut host = Elf::host(vec![Section::new(".nv_fatbin", Vec::new())]).build();
    let headers = u64::from_le_bytes(host[0x28..0x30].try_into().expect("8 bytes")) as usize;
    // The first header is the null section's; the offset is the fifth field.
    let offset = headers + 64 + 24;
    let outside = host.len() as u64 * 2;
    host[offset..offset + 8].copy_from_slice(&outside.to_le_bytes());
    assert_eq!(Image::read(&host).map(|_| ()), Err(ImageError::NoCode));
}
