//! Kernels of whole images: where each is, and who describes it.

use streamsan_kernels::image::{ComputeCapability, Image, ListedKernel, Listing};
use streamsan_testing::images::{
    CUBIN, Cubin, Elf, PTX, Packing, SAXPY, Section, bank, container, entry, parameter, saxpy_cubin,
};

const OTHER: &str = ".version 7.0\n.target sm_70\n.address_size 64\n\
    .visible .entry saxpy(.param .u64 a) { ret; }\n\
    .visible .entry other(.param .u8 c, .param .u64 a) { ret; }\n\
    .extern .entry declared(.param .u64 a);\n.func helper() { ret; }\n";

fn sources(kernel: &ListedKernel) -> String {
    let text = kernel.sources.iter().map(|source| {
        let size = source.code_size.map(|size| format!(" {size}")).unwrap_or_default();
        let target = source.target.map(|target| target.to_string()).unwrap_or_default();
        let linked = if source.relocatable { " to be linked" } else { "" };
        format!("{:?} {target}{size}{linked}", source.kind)
    });
    text.collect::<Vec<_>>().join(", ")
}

/// Name, sources and the offsets of the parameters of each kernel.
fn listed(image: &[u8], device: Option<u32>) -> Vec<(String, String, Vec<u32>)> {
    let image = Image::read(image).expect("an image");
    let device = device.and_then(ComputeCapability::from_number);
    let listing = Listing::new(&image, device);
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    let row = |kernel: &ListedKernel| {
        let parameters = kernel.parameters.as_ref().expect("described");
        let offsets = parameters.iter().map(|parameter| parameter.offset).collect();
        (kernel.name.clone(), sources(kernel), offsets)
    };
    listing.kernels.iter().map(row).collect()
}

fn row(name: &str, sources: &str, offsets: &[u32]) -> (String, String, Vec<u32>) {
    (name.to_owned(), sources.to_owned(), offsets.to_vec())
}

#[test]
fn kernels_are_listed_once_and_described_by_their_newest_ptx() {
    let wide = [parameter(0, 0, 8, false), bank(0x210, 8)].concat();
    let cubin = Cubin::new(86, vec![("saxpy", wide.clone()), ("only", wide)]).build();
    let fatbin = container(&[
        entry(CUBIN, 86, 0, &cubin, Packing::Lz4),
        entry(PTX, 70, 0, OTHER.as_bytes(), Packing::Zstd),
        entry(PTX, 80, 0, SAXPY.as_bytes(), Packing::None),
        entry(8, 80, 0, b"for the linker", Packing::None),
    ]);
    assert_eq!(
        listed(&fatbin, None),
        [
            row("saxpy", "Cubin sm_86 128, Ptx sm_70, Ptx sm_80", &[0, 8, 16, 20]),
            row("only", "Cubin sm_86 128", &[0]),
            row("other", "Ptx sm_70", &[0, 8]),
        ]
    );
    assert_eq!(
        listed(&fatbin, Some(86)),
        [row("saxpy", "Cubin sm_86 128", &[0, 8, 16, 20]), row("only", "Cubin sm_86 128", &[0])]
    );
    assert_eq!(
        listed(&fatbin, Some(75)),
        [row("saxpy", "Ptx sm_70", &[0]), row("other", "Ptx sm_70", &[0, 8])]
    );
    assert_eq!(listed(&fatbin, Some(60)), []);
}

#[test]
fn code_to_be_linked_counts_where_there_is_no_other() {
    let linked = container(&[entry(CUBIN, 90, 0, &saxpy_cubin(90), Packing::None)]);
    let to_link = container(&[entry(PTX, 70, 0, OTHER.as_bytes(), Packing::None)]);
    let sections =
        vec![Section::new("__nv_relfatbin", to_link), Section::new(".nv_fatbin", linked)];
    assert_eq!(
        listed(&Elf::host(sections).build(), None),
        [
            row("saxpy", "Cubin sm_90 128", &[0, 8, 16, 20]),
            row("other", "Ptx sm_70 to be linked", &[0, 8]),
        ]
    );
}

#[test]
fn unreadable_pieces_are_told_beside_the_others() {
    let fatbin = container(&[
        entry(PTX, 90, 0, b".version 8.0\n.target sm_90\nnonsense", Packing::Lz4),
        entry(CUBIN, 90, 0, b"no machine code", Packing::Zstd),
        entry(PTX, 80, 0, SAXPY.as_bytes(), Packing::None),
    ]);
    let image = Image::read(&fatbin).expect("an image");
    let listing = Listing::new(&image, None);
    assert_eq!(listing.kernels.len(), 1);
    let reasons: Vec<_> = listing.problems.iter().map(|p| p.reason.to_string()).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].starts_with("line 3"), "{reasons:?}");
}
