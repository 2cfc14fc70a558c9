//! A memory with guard gaps, and launching kernels on it.

use std::cell::RefCell;
use std::ops::Range;

use streamsan_ptx as ptx;

use crate::{AccessLog, Execution, Fault, Launch, LaunchFault, Memory, Program, Progress};

/// Allocations far from each other, so that an access beside one is caught.
#[derive(Default)]
pub(super) struct TestMemory {
    allocations: RefCell<Vec<(u64, Vec<u8>)>>,
}

impl TestMemory {
    fn with<T>(&self, addr: u64, len: usize, f: impl FnOnce(&mut [u8]) -> T) -> Result<T, Fault> {
        for (base, bytes) in self.allocations.borrow_mut().iter_mut() {
            if addr >= *base && addr - *base + len as u64 <= bytes.len() as u64 {
                let at = (addr - *base) as usize;
                return Ok(f(&mut bytes[at..at + len]));
            }
        }
        Err(Fault { address: addr })
    }
}

impl Memory for TestMemory {
    fn load(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        self.with(addr, buf.len(), |bytes| buf.copy_from_slice(bytes))
    }
    fn store(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        self.with(addr, data.len(), |bytes| bytes.copy_from_slice(data))
    }
    fn atomic(&self, addr: u64, size: u8, f: &mut dyn FnMut(u64) -> u64) -> Result<u64, Fault> {
        self.with(addr, usize::from(size), |bytes| {
            let mut old = [0; 8];
            old[..bytes.len()].copy_from_slice(bytes);
            let old = u64::from_le_bytes(old);
            bytes.copy_from_slice(&f(old).to_le_bytes()[..bytes.len()]);
            old
        })
    }
}

/// A kernel argument, packed by the kernel's own layout.
pub(super) enum Arg<'a> {
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
    Bytes(&'a [u8]),
}

pub(super) struct Bench {
    pub(super) program: Program,
    pub(super) memory: TestMemory,
    globals: Vec<u64>,
    pub(super) max_instructions: u64,
}

impl Bench {
    pub(super) fn new(text: &str) -> Bench {
        let module = ptx::parse(text).unwrap();
        let program = Program::lower(&module).unwrap();
        let mut bench = Bench {
            program,
            memory: TestMemory::default(),
            globals: Vec::new(),
            max_instructions: 50_000_000,
        };
        let sizes: Vec<u64> = bench.program.globals().iter().map(|g| g.size).collect();
        bench.globals = sizes.iter().map(|&size| bench.allocate(size as usize)).collect();
        for index in 0..bench.globals.len() {
            let bytes = bench.program.initial_bytes(index, &bench.globals);
            bench.memory.store(bench.globals[index], &bytes).unwrap();
        }
        bench
    }

    pub(super) fn allocate(&self, size: usize) -> u64 {
        let mut allocations = self.memory.allocations.borrow_mut();
        let base = 0x7f00_0000_0000 + allocations.len() as u64 * 0x1000_0000;
        allocations.push((base, vec![0; size]));
        base
    }

    pub(super) fn global(&self, name: &str) -> u64 {
        let at = self.program.globals().iter().position(|g| g.name == name).unwrap();
        self.globals[at]
    }

    /// Allocates and fills with little-endian values.
    pub(super) fn upload<T: Copy, const N: usize>(
        &self,
        values: &[T],
        bytes: impl Fn(T) -> [u8; N],
    ) -> u64 {
        let flat: Vec<u8> = values.iter().flat_map(|&value| bytes(value)).collect();
        let address = self.allocate(flat.len());
        self.memory.store(address, &flat).unwrap();
        address
    }

    pub(super) fn floats(&self, values: &[f32]) -> u64 {
        self.upload(values, f32::to_le_bytes)
    }

    pub(super) fn words(&self, values: &[u32]) -> u64 {
        self.upload(values, u32::to_le_bytes)
    }

    pub(super) fn download<T, const N: usize>(
        &self,
        address: u64,
        count: usize,
        value: impl Fn([u8; N]) -> T,
    ) -> Vec<T> {
        let read = |at: usize| {
            let mut bytes = [0; N];
            self.memory.load(address + (at * N) as u64, &mut bytes).unwrap();
            value(bytes)
        };
        (0..count).map(read).collect()
    }

    pub(super) fn read_floats(&self, address: u64, count: usize) -> Vec<f32> {
        self.download(address, count, f32::from_le_bytes)
    }

    pub(super) fn read_words(&self, address: u64, count: usize) -> Vec<u32> {
        self.download(address, count, u32::from_le_bytes)
    }

    pub(super) fn launch(
        &self,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        args: &[Arg<'_>],
    ) -> Result<AccessLog, LaunchFault> {
        self.launch_with(kernel, grid, block, args, 0, false).1
    }

    /// As `launch`, with dynamic shared memory and cooperation; the log comes even with a fault.
    pub(super) fn launch_with(
        &self,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        args: &[Arg<'_>],
        dynamic_shared: u32,
        cooperative: bool,
    ) -> (AccessLog, Result<AccessLog, LaunchFault>) {
        let id = self.program.kernel(kernel).unwrap();
        let info = self.program.kernel_info(id);
        assert_eq!(info.params.len(), args.len(), "arguments of {kernel}");
        let mut params = vec![0u8; info.params_size as usize];
        for (&(offset, size), arg) in info.params.iter().zip(args) {
            let bytes: Vec<u8> = match arg {
                Arg::U32(v) => v.to_le_bytes().into(),
                Arg::U64(v) => v.to_le_bytes().into(),
                Arg::F32(v) => v.to_le_bytes().into(),
                Arg::F64(v) => v.to_le_bytes().into(),
                Arg::Bytes(v) => (*v).into(),
            };
            assert_eq!(bytes.len(), size as usize, "argument of {kernel} at {offset}");
            params[offset as usize..(offset + size) as usize].copy_from_slice(&bytes);
        }
        let launch = Launch {
            kernel: id,
            grid,
            block,
            dynamic_shared,
            params: &params,
            global_addresses: &self.globals,
            cooperative,
        };
        let mut log = AccessLog::default();
        let limit = self.max_instructions;
        let result = run(&self.program, &launch, &self.memory, &mut log, limit, |_| {});
        let copy = log.clone();
        (copy, result.map(|()| log))
    }
}

/// `[start, start + size)`.
pub(super) fn span(start: u64, size: u64) -> Range<u64> {
    start..start + size
}

/// A module of one kernel `k` with the given parameters and body.
pub(super) fn kernel(params: &str, body: &str) -> String {
    format!(
        ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k({params}) {{\n\
         .reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %rd<40>;\n\
         .reg .f32 %f<20>; .reg .f64 %fd<20>;\n{body}\n}}"
    )
}

/// Runs a launch to its end in steps, or until it has used `limit` instructions; `between` is
/// called between steps with their number.
pub(super) fn run(
    program: &Program,
    launch: &Launch<'_>,
    memory: &TestMemory,
    log: &mut AccessLog,
    limit: u64,
    mut between: impl FnMut(u64),
) -> Result<(), LaunchFault> {
    let step = (limit / 8).clamp(1, 1 << 20);
    let mut execution = Execution::new(program, launch)?;
    for number in 1..=limit.div_ceil(step) {
        if execution.step(program, memory, log, step)? == Progress::Finished {
            return Ok(());
        }
        between(number);
    }
    Err(execution.timeout(program))
}
