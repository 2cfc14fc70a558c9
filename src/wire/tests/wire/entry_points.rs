//! The tables know every entry point of the driver, once.

use std::collections::BTreeSet;

use streamsan_wire::{Api, Effect, effect_of, entry_points, find_entry};

const DRIVER_13_5: &str = include_str!("../data/driver_entry_points_13_5.txt");

#[test]
fn every_entry_point_of_cuda_13_5_is_hooked_or_classified() {
    let names: Vec<_> = DRIVER_13_5.split_whitespace().collect();
    assert_eq!(names.len(), 680);
    for name in names {
        assert!(find_entry(name).is_some(), "{name} is in no table");
        assert_ne!(effect_of(name), Effect::Unknown, "{name}");
    }
}

#[test]
fn no_name_is_listed_twice() {
    let names: BTreeSet<_> = entry_points().map(|entry| entry.name()).collect();
    assert_eq!(names.len(), entry_points().count());
}

#[test]
fn numbers_and_names_lead_back_to_their_entry_point() {
    for entry in entry_points() {
        assert_eq!(find_entry(entry.name()), Some(entry));
        assert_eq!(entry.api().map(Api::name), entry.api().map(|_| entry.name()));
    }
    for (number, api) in Api::ALL.iter().enumerate() {
        assert_eq!(Api::from_u16(number as u16), Some(*api));
    }
    assert_eq!(Api::from_u16(Api::COUNT as u16), None);
}

#[test]
fn effects_tell_what_a_verdict_must_not_ignore() {
    for name in [
        "cuStreamBeginCaptureToCig",
        "cuStreamEndCaptureToCig",
        "cuFabricCpyBatchAsync",
        "cuMemMapArrayAsync",
        "cuGraphicsMapResources",
        "cuTensorMapSetAllocationClass",
    ] {
        assert_eq!(effect_of(name), Effect::OrdersOrTouchesMemory, "{name}");
    }
    for name in
        ["cuInit", "cuDeviceGetAttribute", "cuGraphGetNodes", "cuGraphLaunch", "cuMulticastBindMem"]
    {
        assert_eq!(effect_of(name), Effect::Inert, "{name}");
    }
    assert_eq!(effect_of("cuZebraStripe"), Effect::Unknown);
}

#[test]
fn twins_and_their_base_share_a_signature() {
    for api in Api::ALL {
        let name = api.name();
        let Some(base) = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")) else {
            continue;
        };
        let base = Api::ALL.iter().find(|api| api.name() == base);
        let base = base.unwrap_or_else(|| panic!("{name} has no base"));
        assert_eq!(base.signature().params, api.signature().params, "{name}");
    }
}
