//! PTX, machine code, fat binaries and host programs that hold them.

use crate::numbers::Numbers;
use std::hint::black_box;
use std::num::NonZeroUsize;
use streamsan_kernels::access::analyse;
use streamsan_kernels::image::{ComputeCapability, Image, Listing};
use streamsan_kernels::reader::{Reader, Request};
use streamsan_kernels::sass::Object;
use streamsan_testing::images::{CUBIN, PTX, container, entry, raw_entry, saxpy_cubin, saxpy_info};
use streamsan_testing::images::{Cubin, Elf, Packing, SAXPY, SPECIFIC, Section};

const DEVICE: ComputeCapability = ComputeCapability { major: 9, minor: 0 };

/// The kernels of the repository's programs.
const PROGRAMS: [&str; 5] = [
    include_str!("../../programs/ptx/columns.ptx"),
    include_str!("../../programs/ptx/elementwise.ptx"),
    include_str!("../../programs/ptx/histogram.ptx"),
    include_str!("../../programs/ptx/pointer_table.ptx"),
    include_str!("../../programs/ptx/touch.ptx"),
];

pub(crate) fn ptx(input: &[u8]) {
    let Ok(module) = streamsan_kernels::ptx::parse(&String::from_utf8_lossy(input)) else { return };
    analyse(&module);
}

pub(crate) fn ptx_seeds() -> Vec<Vec<u8>> {
    PROGRAMS.iter().chain([&SAXPY]).map(|text| text.as_bytes().to_vec()).collect()
}

/// Machine code, taken apart as far as it goes without a disassembler.
pub(crate) fn cubin(input: &[u8]) {
    image(input);
    let Ok(object) = Object::parse(input) else { return };
    black_box(object.target());
    let kernels: Vec<String> = object.kernels().take(16).map(str::to_owned).collect();
    for kernel in kernels {
        if let Ok(Some(code)) = object.kernel(&kernel) {
            black_box(code.size());
        }
    }
}

/// Any image: its kernels, for all devices and for one, and what they touch.
pub(crate) fn image(input: &[u8]) {
    let Ok(image) = Image::read(input) else { return };
    image.selected(DEVICE).count();
    let listing = Listing::new(&image, None);
    black_box(Listing::new(&image, Some(DEVICE)));
    let names = listing.kernels.iter().take(4).map(|kernel| kernel.name.as_str());
    let requests: Vec<Request<'_>> =
        names.map(|kernel| Request { image: input, device: DEVICE, kernel }).collect();
    Reader::new(None, None).with_threads(NonZeroUsize::MIN).read(&requests);
}

/// Packed code: which way, what it claims to be, and its bytes.
pub(crate) fn packed(input: &[u8]) {
    let mut numbers = Numbers(input);
    let (how, claimed) = (numbers.byte(), u64::from(numbers.word()));
    let kind = if how & 1 == 0 { PTX } else { CUBIN };
    let flags = if how & 2 == 0 { 0x2000 } else { 0x8000 };
    let data = numbers.0.to_vec();
    let size = data.len() as u32;
    image(&container(&[raw_entry(kind, 90, flags, size, claimed, data)]));
}

pub(crate) fn packed_seeds() -> Vec<Vec<u8>> {
    let codes = [(0, SAXPY.as_bytes().to_vec()), (1, saxpy_cubin(90)), (0, vec![0; 100_000])];
    let packed = |(kind, code): &(u8, Vec<u8>)| {
        let head = |how: u8| {
            let mut head = vec![*kind | how];
            head.extend((code.len() as u32).to_le_bytes());
            head
        };
        let zstd = ruzstd::encoding::compress_to_vec(
            &code[..],
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        [[head(0), lz4_flex::block::compress(code)].concat(), [head(2), zstd].concat()]
    };
    codes.iter().flat_map(packed).collect()
}

pub(crate) fn cubin_seeds() -> Vec<Vec<u8>> {
    let kernels = vec![("saxpy", saxpy_info()), ("other", saxpy_info())];
    let mut more = Cubin::new(90, kernels);
    more.functions = vec!["device"];
    let relocations =
        Section { kind: 4, link: 2, ..Section::new(".rela.text.saxpy", relocation()) };
    more.more = vec![
        Section::new(".nv.compat", vec![2, 9, 1, 0]),
        Section::new(".nv.constant3", vec![7; 32]),
        Section::new(".nv.constant4.saxpy", vec![0; 16]),
        relocations,
    ];
    vec![saxpy_cubin(90), more.build()]
}

fn relocation() -> Vec<u8> {
    let mut entry = 16_u64.to_le_bytes().to_vec();
    entry.extend((1_u64 << 32 | 2).to_le_bytes());
    entry.extend(8_u64.to_le_bytes());
    entry
}

pub(crate) fn fat_seeds() -> Vec<Vec<u8>> {
    let (cubin, ptx) = (saxpy_cubin(90), SAXPY.as_bytes());
    let plain = |packing| {
        container(&[entry(PTX, 90, 0, ptx, packing), entry(CUBIN, 90, SPECIFIC, &cubin, packing)])
    };
    let wrapper = [0x4662_43b1_u32.to_le_bytes(), [1, 0, 0, 0], [0; 4], [0; 4]].concat();
    vec![
        plain(Packing::None),
        plain(Packing::Lz4),
        plain(Packing::Zstd),
        [plain(Packing::Lz4), plain(Packing::Zstd)].concat(),
        [wrapper, plain(Packing::None)].concat(),
    ]
}

pub(crate) fn host_seeds() -> Vec<Vec<u8>> {
    let fat = || fat_seeds().remove(1);
    let sections = || {
        vec![
            Section::new(".nv_fatbin", [fat(), fat()].concat()),
            Section::new("__nv_relfatbin", fat()),
        ]
    };
    let mut headless = Elf::host(sections());
    headless.headless = true;
    vec![Elf::host(sections()).build(), headless.build()]
}
