//! Images that are known by their address only.

use crate::builder::{PTX, Packing, SAXPY, container, entry, saxpy_cubin};
use std::collections::BTreeMap;
use streamsan_kernels::image::{Image, ImageError, Memory, Part, locate};

/// Memory of pages that end where the data does, rounded up to a page.
#[derive(Default)]
struct Pages(BTreeMap<u64, Vec<u8>>);

impl Pages {
    fn put(&mut self, address: u64, mut data: Vec<u8>) {
        let end = (address + data.len() as u64).next_multiple_of(4096);
        data.resize((end - address) as usize, 0);
        self.0.insert(address, data);
    }
}

impl Memory for Pages {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let Some((start, data)) = self.0.range(..=address).next_back() else { return false };
        let from = (address - start) as usize;
        let Some(data) = data.get(from..from + into.len()) else { return false };
        into.copy_from_slice(data);
        true
    }
}

fn fatbin() -> Vec<u8> {
    container(&[entry(PTX, 80, 0, SAXPY.as_bytes(), Packing::Zstd)])
}

#[test]
fn bare_images_are_as_long_as_they_say() {
    let cubin = saxpy_cubin(90);
    let long = SAXPY.repeat(100).into_bytes();
    for image in [SAXPY.as_bytes().to_vec(), long, cubin, fatbin()] {
        for address in [0x1_0000, 0x1_0f98] {
            let mut memory = Pages::default();
            memory.put(address, image.clone());
            let length = image.len() as u64;
            assert_eq!(locate(&memory, address), Ok(vec![Part { address, length }]));
        }
    }
}

#[test]
fn wrappers_are_followed() {
    let (first, second) = (0x10_0000, 0x20_0000);
    let mut memory = Pages::default();
    memory.put(first, fatbin());
    memory.put(second, saxpy_cubin(90));
    let list = [second, first, 0].map(u64::to_le_bytes).concat();
    memory.put(0x30_0000, list);
    for (version, other, parts) in
        [(1_u32, 0x30_0000_u64, 1), (2, 0, 1), (2, 0x30_0000, 3), (2, 0x30_0008, 2)]
    {
        let mut wrapper = 0x4662_43b1_u32.to_le_bytes().to_vec();
        wrapper.extend(version.to_le_bytes());
        wrapper.extend(first.to_le_bytes());
        wrapper.extend(other.to_le_bytes());
        memory.put(0x40_0000, wrapper);
        let found = locate(&memory, 0x40_0000).expect("a wrapper");
        assert_eq!(found.len(), parts, "version {version}, list at {other:#x}");
        for part in found {
            let mut bytes = vec![0; part.length as usize];
            assert!(memory.read(part.address, &mut bytes));
            assert!(Image::read(&bytes).is_ok());
        }
    }
}

#[test]
fn damage_is_told() {
    let mut memory = Pages::default();
    memory.put(0x1000, vec![0xff; 64]);
    assert_eq!(locate(&memory, 0x1000), Err(ImageError::Unrecognized));
    assert!(matches!(locate(&memory, 0x9000), Err(ImageError::Memory { .. })));
    assert!(matches!(locate(&memory, u64::MAX - 1), Err(ImageError::Memory { .. })));
    // A text that nothing ends.
    memory.put(0x2000, vec![b'x'; 4096]);
    assert_eq!(locate(&memory, 0x2000), Err(ImageError::Memory { address: 0x3000, length: 4096 }));
    let mut huge = container(&[]);
    huge[8..16].copy_from_slice(&(1_u64 << 60).to_le_bytes());
    memory.put(0x4000, huge);
    assert!(matches!(locate(&memory, 0x4000), Err(ImageError::TooLarge { .. })));
    let mut wrapper = 0x4662_43b1_u32.to_le_bytes().to_vec();
    wrapper.extend([3; 20]);
    memory.put(0x5000, wrapper);
    assert!(matches!(locate(&memory, 0x5000), Err(ImageError::Damaged { .. })));
}
