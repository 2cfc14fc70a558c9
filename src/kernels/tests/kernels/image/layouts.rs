//! Kernels of cubins and the layouts of their parameters.

use streamsan_kernels::image::{Cubin as Read, ImageError, Parameter};
use streamsan_testing::images::{Cubin, Section, attribute, bank, parameter, saxpy_info};

fn triples(parameters: &[Parameter]) -> Vec<(u32, u32, u32)> {
    parameters.iter().map(|p| (p.index, p.offset, p.size)).collect()
}

#[test]
fn kernels_are_the_functions_marked_as_such() {
    let mut built = Cubin::new(90, vec![("_Z1kPf", saxpy_info()), ("other", Vec::new())]);
    built.functions = vec!["helper"];
    built.more = vec![
        Section::new(".nv.merc.nv.info._Z1kPf", vec![9, 9, 9]),
        Section::new(".nv.capmerc.text._Z1kPf", vec![9]),
    ];
    let bytes = built.build();
    let cubin = Read::parse(&bytes).expect("a cubin");
    let kernels: Vec<_> = cubin.kernels.iter().map(|k| (k.name.as_str(), k.code_size)).collect();
    assert_eq!(kernels, [("_Z1kPf", 128), ("other", 128)]);
    let layout = cubin.parameters("_Z1kPf").expect("described");
    assert_eq!(triples(&layout.parameters), [(0, 0, 8), (1, 8, 8), (2, 16, 4), (3, 20, 4)]);
    assert_eq!((layout.size, layout.bank_offset), (24, Some(0x210)));
    assert_eq!(cubin.parameters("other").map(|layout| layout.size), Ok(0));
    let unknown = cubin.parameters("helper");
    assert_eq!(unknown, Err(ImageError::NoParameters("helper".to_owned())));
}

#[test]
fn both_forms_of_parameters_are_read() {
    let info = [parameter(0, 0, 20_000, true), parameter(1, 20_000, 8, false), bank(0x380, 20_008)];
    let bytes = Cubin::new(100, vec![("k", info.concat())]).build();
    let layout = Read::parse(&bytes).expect("a cubin").parameters("k").expect("described");
    assert_eq!(triples(&layout.parameters), [(0, 0, 20_000), (1, 20_000, 8)]);
    assert_eq!((layout.size, layout.bank_offset), (20_008, Some(0x380)));
}

#[test]
fn target_is_told_by_the_flags_of_both_conventions() {
    let specific = || vec![Section::new(".nv.compat", vec![2, 9, 1, 0, 2, 12, 0, 0])];
    let portable = || vec![Section::new(".nv.compat", vec![2, 9, 0, 0, 2, 12, 1, 0])];
    for (abi_version, flags, more, target) in [
        (7, 0x0032_0546, vec![], Some("sm_70")),
        (7, 0x0032_055a, vec![], Some("sm_90")),
        (7, 0x005a_0d5a, vec![], Some("sm_90a")),
        (8, 0x0600_4b04, vec![], Some("sm_75")),
        (8, 0x0600_5a04, portable(), Some("sm_90")),
        (8, 0x0600_5a04, specific(), Some("sm_90a")),
        (8, 0x0600_7802, specific(), Some("sm_120a")),
        (8, 0x0600_6e0a, vec![], Some("sm_110a")),
        (8, 0, vec![], None),
    ] {
        let built = Cubin { flags, abi_version, more, ..Cubin::new(0, Vec::new()) };
        let bytes = built.build();
        let found = Read::parse(&bytes).expect("a cubin").target.map(|target| target.to_string());
        assert_eq!(found.as_deref(), target, "{abi_version} {flags:#x}");
    }
}

#[test]
fn damaged_descriptions_are_told() {
    for (name, info) in [
        ("cut", vec![4, 0x17, 12, 0, 0]),
        ("cut inside its header", vec![4]),
        ("of an unknown format", vec![7, 0x17, 0, 0]),
        ("too short", attribute(0x17, &[0; 8])),
        ("bank too short", attribute(0x0a, &[0; 6])),
        ("gap", [parameter(0, 0, 8, false), parameter(2, 8, 8, false), bank(0, 16)].concat()),
        ("twice", [parameter(0, 0, 8, false), parameter(0, 8, 8, false), bank(0, 16)].concat()),
        ("outside", [parameter(0, 0xfff8, 16, true), bank(0, 16)].concat()),
    ] {
        let bytes = Cubin::new(90, vec![("k", info)]).build();
        let layout = Read::parse(&bytes).expect("a cubin").parameters("k");
        assert!(matches!(layout, Err(ImageError::Damaged { .. })), "{name}: {layout:?}");
    }
}

#[test]
fn host_code_is_no_cubin() {
    let host = streamsan_testing::images::Elf::host(Vec::new()).build();
    assert_eq!(Read::parse(&host).map(|_| ()), Err(ImageError::NotCubin));
}
