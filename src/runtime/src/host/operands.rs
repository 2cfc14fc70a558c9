//! The memory that a call's copies and memsets name: where it lies, and what is done with it.
//!
//! Two parts want to know: which pages matter to instrumented code ([`super::interest`]), and what
//! is fenced while the device uses it ([`super::fences`]).

use streamsan_wire::Api;

/// The effect of a call on bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    Read,
    Write,
}

/// Bytes that a call names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) does: Does,
    /// Named as memory of the device. Page-locked and managed memory may pass for that.
    pub(crate) of_device: bool,
    /// The source is read before the call returns.
    pub(crate) during_call: bool,
}

impl Operand {
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }
}

/// `CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL`, at the begin of `CUmemcpyAttributes`.
const DURING_CALL: u32 = 2;

/// Tells the operands of a call, in pairs of source and destination where it is a copy. To be called
/// while the program's structures are there: before the call, or at its return.
pub(crate) fn each(api: Api, words: &[u64], tell: &mut dyn FnMut(Operand)) {
    let signature = api.signature();
    let name = api.name();
    let word = |name: &str| signature.index_of(name).and_then(|index| words.get(index)).copied();
    let mut put = |start: u64, len: u64, does, of_device, during_call| {
        if start != 0 && len != 0 {
            tell(Operand { start, len, does, of_device, during_call });
        }
    };
    if name.starts_with("cuMemset") {
        return memset(name, &word, &mut |start, len| put(start, len, Does::Write, true, false));
    }
    let attributes = |at: Option<u64>| match at {
        // SAFETY: the program passes valid pointers, as the driver documents.
        Some(at) if at != 0 => unsafe { (at as *const u32).read_unaligned() == DURING_CALL },
        _ => false,
    };
    if let Some(bytes) = word("ByteCount")
        .or_else(|| name.starts_with("cuMemcpyWithAttributes").then(|| word("size")).flatten())
    {
        let now = attributes(word("attr"));
        for (name, does, of_device) in [
            ("srcHost", Does::Read, false),
            ("src", Does::Read, false),
            ("srcDevice", Does::Read, true),
            ("dstHost", Does::Write, false),
            ("dst", Does::Write, false),
            ("dstDevice", Does::Write, true),
        ] {
            if let Some(start) = word(name) {
                put(start, bytes, does, of_device, now && does == Does::Read);
            }
        }
    }
    // SAFETY: the program passes valid pointers, as the driver documents.
    unsafe {
        match (word("pCopy"), name) {
            (Some(at), name)
                if at != 0 && name.starts_with("cuMemcpy2D") && name.contains("_v2") =>
            {
                each_of_box(at, &PLANE, &mut put);
            }
            (Some(at), name)
                if at != 0
                    && name.starts_with("cuMemcpy3D")
                    && name != "cuMemcpy3D"
                    && name != "cuMemcpy3DAsync" =>
            {
                each_of_box(at, &VOLUME, &mut put);
            }
            (_, name) if name.starts_with("cuMemcpyBatchAsync") => {
                let list = |name| word(name).map(|at| at as *const u64).filter(|at| !at.is_null());
                let (Some(sizes), Some(count)) = (list("sizes"), word("count")) else { return };
                let now = attributes(word("attrs"));
                let ends = [("srcs", Does::Read), ("dsts", Does::Write)];
                for index in 0..count as usize {
                    for (starts, does) in ends {
                        let Some(starts) = list(starts) else { continue };
                        let start = starts.add(index).read_unaligned();
                        let len = sizes.add(index).read_unaligned();
                        put(start, len, does, false, now && does == Does::Read);
                    }
                }
            }
            (_, name) if name.starts_with("cuMemcpy3DBatchAsync") => {
                let (Some(list), Some(count)) = (word("opList"), word("numOps")) else { return };
                for index in 0..if list == 0 { 0 } else { count } {
                    each_of_operation(list + index * OPERATION_BYTES, &mut put);
                }
            }
            (_, name) if name.starts_with("cuMemcpy3DWithAttributesAsync") => {
                if let Some(at) = word("op").filter(|at| *at != 0) {
                    each_of_operation(at, &mut put);
                }
            }
            _ => {}
        }
    }
}

type Put<'a> = &'a mut dyn FnMut(u64, u64, Does, bool, bool);

fn memset(name: &str, word: &dyn Fn(&str) -> Option<u64>, put: &mut dyn FnMut(u64, u64)) {
    let Some(start) = word("dstDevice") else { return };
    let element = match name {
        _ if name.contains("D32") || name.contains("2D32") => 4,
        _ if name.contains("D16") || name.contains("2D16") => 2,
        _ => 1,
    };
    if let Some(count) = word("N") {
        return put(start, count.saturating_mul(element));
    }
    if let (Some(pitch), Some(width), Some(height)) =
        (word("dstPitch"), word("Width"), word("Height"))
        && height > 0
    {
        let rows = pitch.saturating_mul(height - 1);
        put(start, rows.saturating_add(width.saturating_mul(element)));
    }
}

/// Offsets in a copy descriptor: host address, device address, pitch and rows of a slice of both
/// ends, the source first, then depth. `None`: the descriptor has no slices.
pub(crate) struct CopyLayout {
    ends: [(usize, usize, usize, Option<usize>); 2],
    x: [usize; 2],
    y: [usize; 2],
    z: Option<[usize; 2]>,
    kind: [usize; 2],
    width: usize,
    height: usize,
    depth: Option<usize>,
}

/// `CUDA_MEMCPY2D`.
const PLANE: CopyLayout = CopyLayout {
    ends: [(24, 32, 48, None), (80, 88, 104, None)],
    x: [0, 56],
    y: [8, 64],
    z: None,
    kind: [16, 72],
    width: 112,
    height: 120,
    depth: None,
};

/// `CUDA_MEMCPY3D`, `CUDA_MEMCPY3D_PEER`.
pub(crate) const VOLUME: CopyLayout = CopyLayout {
    ends: [(40, 48, 72, Some(80)), (128, 136, 160, Some(168))],
    x: [0, 88],
    y: [8, 96],
    z: Some([16, 104]),
    kind: [32, 120],
    width: 176,
    height: 184,
    depth: Some(192),
};

/// `CU_MEMORYTYPE_HOST`, `..._DEVICE`, `..._UNIFIED`: what the ends of a descriptor are.
const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;

/// Tells both ends of a descriptor: from the first byte copied to the end of the last row.
///
/// # Safety
/// `at` points to a descriptor of this layout.
pub(crate) unsafe fn each_of_box(at: u64, layout: &CopyLayout, put: Put<'_>) {
    // SAFETY: inside the descriptor (caller).
    let field =
        |offset: usize| unsafe { (at as *const u8).add(offset).cast::<u64>().read_unaligned() };
    let (width, height) = (field(layout.width), field(layout.height));
    let depth = layout.depth.map_or(1, field);
    if width == 0 || height == 0 || depth == 0 {
        return;
    }
    for (index, (host, device, pitch, rows)) in layout.ends.into_iter().enumerate() {
        // In the upper half: padding.
        let (base, of_device) = match field(layout.kind[index]) as u32 {
            HOST => (field(host), false),
            DEVICE => (field(device), true),
            UNIFIED => (field(device), false),
            // An array.
            _ => continue,
        };
        let pitch = field(pitch).max(width);
        let slice = rows.map_or(0, field).max(height).saturating_mul(pitch);
        let z = layout.z.map_or(0, |z| field(z[index]));
        let first = slice
            .saturating_mul(z)
            .saturating_add(pitch.saturating_mul(field(layout.y[index])))
            .saturating_add(field(layout.x[index]));
        let len = slice
            .saturating_mul(depth - 1)
            .saturating_add(pitch.saturating_mul(height - 1))
            .saturating_add(width);
        let does = if index == 0 { Does::Read } else { Does::Write };
        put(base.saturating_add(first), len, does, of_device, false);
    }
}

/// Bytes of `CUDA_MEMCPY3D_BATCH_OP`.
const OPERATION_BYTES: u64 = 112;
/// Its `srcAccessOrder`.
const OPERATION_ORDER: usize = 104;

/// Tells both operands of an operation: each is a type (1: an address), an address, the length of a
/// row and the rows of a layer; the extent follows.
///
/// # Safety
/// `at` points to a `CUDA_MEMCPY3D_BATCH_OP`.
unsafe fn each_of_operation(at: u64, put: Put<'_>) {
    // SAFETY: inside the operation (caller).
    let field =
        |offset: usize| unsafe { (at as *const u8).add(offset).cast::<u64>().read_unaligned() };
    let (width, height, depth) = (field(80), field(88), field(96));
    let during_call = field(OPERATION_ORDER) as u32 == DURING_CALL;
    for (operand, does) in [(0, Does::Read), (40, Does::Write)] {
        if field(operand) as u32 == 1 {
            let row = field(operand + 16).max(width);
            let layer = row.saturating_mul(field(operand + 24).max(height));
            let len = layer.saturating_mul(depth.max(1));
            put(field(operand + 8), len, does, false, during_call && does == Does::Read);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(api: Api, words: &[u64]) -> Vec<(u64, u64, Does)> {
        let mut found = Vec::new();
        each(api, words, &mut |operand| found.push((operand.start, operand.len, operand.does)));
        found
    }

    #[test]
    fn copies_and_memsets_say_what_they_do_with_which_bytes() {
        assert_eq!(
            of(Api::cuMemcpyDtoHAsync_v2, &[0x1000, 0x9000, 64, 5]),
            [(0x9000, 64, Does::Read), (0x1000, 64, Does::Write)]
        );
        assert_eq!(of(Api::cuMemsetD32Async, &[0x1000, 7, 16, 5]), [(0x1000, 64, Does::Write)]);
        // Pitch, value, width in elements, height.
        assert_eq!(
            of(Api::cuMemsetD2D16_v2, &[0x1000, 100, 7, 8, 3]),
            [(0x1000, 216, Does::Write)]
        );
        assert_eq!(of(Api::cuMemcpyHtoDAsync_v2, &[0x1000, 0x9000, 0, 5]), []);
    }

    #[test]
    fn a_box_reaches_from_its_first_byte_to_the_end_of_its_last_row() {
        let mut descriptor = [0u64; 16];
        // Source: host, x 4, y 2, pitch 32; destination: device. Width 8, height 3.
        descriptor[0] = 4;
        descriptor[1] = 2;
        descriptor[2] = u64::from(HOST);
        descriptor[3] = 0x1000;
        descriptor[6] = 32;
        descriptor[9] = u64::from(DEVICE);
        descriptor[11] = 0x9000;
        descriptor[13] = 64;
        descriptor[14] = 8;
        descriptor[15] = 3;
        assert_eq!(
            of(Api::cuMemcpy2DAsync_v2, &[descriptor.as_ptr() as u64, 5]),
            [(0x1000 + 64 + 4, 72, Does::Read), (0x9000, 136, Does::Write)]
        );
    }
}
