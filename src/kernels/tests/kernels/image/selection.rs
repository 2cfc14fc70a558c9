//! The entry that the driver would choose, as data.

use streamsan_kernels::image::{CodeKind, ComputeCapability, Image, Target, TargetError, select};
use streamsan_testing::images::{CUBIN, FAMILY, PTX, Packing, SPECIFIC, container, entry};

fn device(number: u32) -> ComputeCapability {
    ComputeCapability::from_number(number).expect("a device")
}

#[test]
fn newest_that_fits_is_chosen() {
    // The code that is there (c: cubin, p: PTX), the device, the code that is chosen.
    for (there, on, chosen) in [
        ("c80", 80, Some("c80")),
        ("c80", 86, Some("c80")),
        ("c86", 80, None),
        ("c80", 90, None),
        ("c90", 80, None),
        ("c80 c86", 89, Some("c86")),
        ("c86 c80", 89, Some("c86")),
        ("c80 p80", 80, Some("c80")),
        ("p80 c80", 90, Some("p80")),
        ("p90 c80", 86, Some("c80")),
        ("p50 p80 p70", 120, Some("p80")),
        ("p80", 75, None),
        ("c90 c90a", 90, Some("c90a")),
        ("c90a", 100, None),
        ("p90a", 90, Some("p90a")),
        ("p90a", 100, None),
        ("p90a p80", 100, Some("p80")),
        ("c100f", 100, Some("c100f")),
        ("c100f", 103, Some("c100f")),
        ("c100f c103", 103, Some("c103")),
        ("c103f", 100, None),
        ("c100f", 120, None),
        ("c100a c100f c100", 103, Some("c100f")),
        ("c100 c100f c100a", 100, Some("c100a")),
        ("p100f", 103, Some("p100f")),
        ("p100f", 120, None),
        ("p100", 120, Some("p100")),
        ("c120", 121, Some("c120")),
        ("o90", 90, None),
    ] {
        let entries: Vec<_> = there.split_whitespace().map(parse).collect();
        let fatbin = container(&entries);
        let image = Image::read(&fatbin).expect("an image");
        let found = image.selected(device(on)).next().map(|entry| {
            let kind = if entry.kind == CodeKind::Ptx { "p" } else { "c" };
            let target = entry.target.expect("known").to_string();
            format!("{kind}{}", target.trim_start_matches("sm_"))
        });
        assert_eq!(found.as_deref(), chosen, "{there} on {on}");
    }
}

fn parse(text: &str) -> Vec<u8> {
    let kind = match text.as_bytes()[0] {
        b'p' => PTX,
        b'c' => CUBIN,
        _ => 8,
    };
    let number = text[1..].trim_end_matches(['a', 'f']).parse().expect("a number");
    let flags = match text.as_bytes()[text.len() - 1] {
        b'a' => SPECIFIC,
        b'f' => FAMILY,
        _ => 0,
    };
    entry(kind, number, flags, b"code", Packing::None)
}

#[test]
fn first_of_equals_is_chosen() {
    let entries = [b"first", b"other"].map(|code| entry(CUBIN, 90, 0, code, Packing::None));
    let fatbin = container(&entries);
    let image = Image::read(&fatbin).expect("an image");
    let entry = select(image.entries(), device(90)).expect("one fits");
    assert!(entry.code().expect("not packed").starts_with(b"first"));
}

#[test]
fn targets_are_read_and_written() {
    for text in ["sm_70", "sm_90a", "sm_100f", "sm_121"] {
        assert_eq!(text.parse::<Target>().map(|t| t.to_string()).as_deref(), Ok(text));
    }
    assert_eq!("compute_90a".parse::<Target>(), "sm_90a".parse());
    for text in ["", "sm_", "sm_9", "90", "sm_90b", "sm_a", "sm_99999", "sm_+90", "sm_00"] {
        assert_eq!(text.parse::<Target>(), Err(TargetError), "{text}");
    }
}
