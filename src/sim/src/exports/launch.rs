//! Kernel launches.

use super::args::In;
use super::enter::{api, twins};
use crate::driver::{Call, DefaultStream, LaunchSpec, Parameters};
use crate::errors::{CuError, Outcome};

/// CUlaunchConfig.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct LaunchConfig {
    grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) dynamic_shared: u32,
    stream: u64,
    attributes: In<LaunchAttribute>,
    count: u32,
}

/// CUlaunchAttribute.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
struct LaunchAttribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

const _: () = assert!(size_of::<LaunchConfig>() == 56 && size_of::<LaunchAttribute>() == 72);

impl LaunchAttribute {
    /// The value as a handle, which is not null.
    fn handle(&self) -> Outcome<u64> {
        let handle = u64::from(self.value[0]) | u64::from(self.value[1]) << 32;
        if handle == 0 { Err(CuError::INVALID_HANDLE) } else { Ok(handle) }
    }
}

const COOPERATIVE: u32 = 2;
const CLUSTER_DIMENSION: u32 = 4;
const PROGRAMMATIC: u32 = 6;
const PROGRAMMATIC_EVENT: u32 = 7;
const LAUNCH_COMPLETION_EVENT: u32 = 12;
const LAST_ATTRIBUTE: u32 = 18;

/// The parameters of a launch as the program passed them: an array of pointers, or a packed block
/// named in `extra`.
pub(super) struct Passed {
    pub(super) pointers: In<In<u8>>,
    pub(super) extra: In<u64>,
}

const EXTRA_END: u64 = 0;
const EXTRA_POINTER: u64 = 1;
const EXTRA_SIZE: u64 = 2;
/// Words of `extra` that are looked at: more than its two pairs and its end.
const EXTRA_WORDS: usize = 16;

fn read_into(bytes: &mut [u8], from: In<u8>) -> Outcome {
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = from.at(index)?;
    }
    Ok(())
}

impl Passed {
    fn packed(&self, block: &mut [u8]) -> Outcome {
        let (mut pointer, mut size) = (None, None);
        let mut at = 0;
        loop {
            match self.extra.at(at)? {
                EXTRA_END => break,
                EXTRA_POINTER => pointer = Some(self.extra.at(at + 1)?),
                EXTRA_SIZE => size = Some(self.extra.at(at + 1)?),
                _ => return Err(CuError::INVALID_VALUE),
            }
            at += 2;
            if at >= EXTRA_WORDS {
                return Err(CuError::INVALID_VALUE);
            }
        }
        let (pointer, size) = pointer.zip(size).ok_or(CuError::INVALID_VALUE)?;
        let size = In::<u64>::from_address(size).get()? as usize;
        if size < block.len() {
            return Err(CuError::INVALID_VALUE);
        }
        read_into(block, In::from_address(pointer))
    }
}

impl Parameters for Passed {
    fn read(&self, layout: &[(u32, u32)], size: u32) -> Outcome<Vec<u8>> {
        let mut block = vec![0; size as usize];
        if !self.extra.is_null() {
            if !self.pointers.is_null() {
                return Err(CuError::INVALID_VALUE);
            }
            self.packed(&mut block)?;
            return Ok(block);
        }
        for (index, (offset, length)) in layout.iter().enumerate() {
            let range = *offset as usize..(*offset + *length) as usize;
            let into = block.get_mut(range).ok_or(CuError::INVALID_VALUE)?;
            read_into(into, self.pointers.at(index)?)?;
        }
        Ok(block)
    }
}

fn extended(
    call: &Call,
    config: In<LaunchConfig>,
    function: u64,
    passed: &Passed,
    default: DefaultStream,
) -> Outcome {
    let config = config.get()?;
    let (mut cooperative, mut programmatic, mut events) = (false, false, [0; 2]);
    let mut at_block_start = false;
    for index in 0..config.count as usize {
        let attribute = config.attributes.at(index)?;
        match attribute.id {
            COOPERATIVE => cooperative = attribute.value[0] != 0,
            CLUSTER_DIMENSION if attribute.value[..3].iter().any(|size| *size > 1) => {
                return Err(CuError::NOT_SUPPORTED);
            }
            PROGRAMMATIC => programmatic = attribute.value[0] != 0,
            PROGRAMMATIC_EVENT => {
                // Behind the handle: flags, triggerAtBlockStart.
                (events[0], at_block_start) = (attribute.handle()?, attribute.value[3] != 0);
            }
            LAUNCH_COMPLETION_EVENT => events[1] = attribute.handle()?,
            // Hints and priorities have no effect on what a launch computes.
            0..=LAST_ATTRIBUTE => {}
            _ => return Err(CuError::INVALID_VALUE),
        }
    }
    let plain = LaunchSpec::new(function, config.grid, config.block, config.dynamic_shared);
    let stream = config.stream;
    let plain = LaunchSpec { at_block_start, ..plain };
    let spec = LaunchSpec { stream, default, cooperative, programmatic, events, ..plain };
    call.launch(&spec, passed)
}

/// CUDA_LAUNCH_PARAMS.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct LaunchParams {
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    stream: u64,
    pointers: In<In<u8>>,
}

const _: () = assert!(size_of::<LaunchParams>() == 56);

/// CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC and _NO_POST_LAUNCH_SYNC.
const NO_PRE: u32 = 1;
const NO_POST: u32 = 2;

api! { TABLE;
    fn cuLaunchCooperativeKernelMultiDevice(
        list: In<LaunchParams>,
        count: u32,
        flags: u32,
    ) |call| {
        if count == 0 || flags & !(NO_PRE | NO_POST) != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        let params: Vec<LaunchParams> =
            (0..count as usize).map(|index| list.at(index)).collect::<Outcome<_>>()?;
        let passed: Vec<Passed> = params
            .iter()
            .map(|params| Passed { pointers: params.pointers, extra: In::NULL })
            .collect();
        let launches: Vec<(LaunchSpec, &dyn Parameters)> = params
            .iter()
            .zip(&passed)
            .map(|(of, passed)| {
                let plain = LaunchSpec::new(of.function, of.grid, of.block, of.dynamic_shared);
                let spec = LaunchSpec { stream: of.stream, cooperative: true, ..plain };
                (spec, passed as &dyn Parameters)
            })
            .collect();
        call.launch_multi(&launches, flags & NO_PRE == 0, flags & NO_POST == 0)
    }
}

twins! { TWINS;
    fn cuLaunchKernel / cuLaunchKernel_ptsz(
        function: u64,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        dynamic_shared: u32,
        stream: u64,
        pointers: In<In<u8>>,
        extra: In<u64>,
    ) |call, default| {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let plain = LaunchSpec::new(function, grid, block, dynamic_shared);
        let spec = LaunchSpec { stream, default, cooperative: false, ..plain };
        call.launch(&spec, &Passed { pointers, extra })
    }
    fn cuLaunchCooperativeKernel / cuLaunchCooperativeKernel_ptsz(
        function: u64,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        dynamic_shared: u32,
        stream: u64,
        pointers: In<In<u8>>,
    ) |call, default| {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let plain = LaunchSpec::new(function, grid, block, dynamic_shared);
        let spec = LaunchSpec { stream, default, cooperative: true, ..plain };
        call.launch(&spec, &Passed { pointers, extra: In::NULL })
    }
    fn cuLaunchKernelEx / cuLaunchKernelEx_ptsz(
        config: In<LaunchConfig>,
        function: u64,
        pointers: In<In<u8>>,
        extra: In<u64>,
    ) |call, default| { extended(call, config, function, &Passed { pointers, extra }, default) }
}
