//! The tools of every check: a context, kernels that pass time, and words in page-locked memory
//! that show how far they are.
//!
//! A kernel that *holds* its stream writes 1 to the word `END` when it ends. Whether something ran,
//! or a call returned, before that is seen by reading `END` afterwards: if it is still 0, it did.

use std::ffi::{CString, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUevent, CUfunction, CUresult, CUstream};

/// A call of the driver that failed, or something that this driver does not have.
#[derive(Clone, Debug)]
pub(crate) struct Failure(pub String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Turns a result of the driver into an error that names it.
#[track_caller]
pub(crate) fn ok(result: CUresult) -> Result<(), Failure> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        error => {
            let at = std::panic::Location::caller();
            Err(Failure(format!("{error:?} at {}:{}", at.file(), at.line())))
        }
    }
}

/// Words of page-locked memory.
pub(crate) const END: usize = 0;
pub(crate) const MARK: usize = 1;
pub(crate) const MIDDLE: usize = 2;
const WORDS: usize = 16;

pub(crate) const LEGACY: CUstream = ptr::without_provenance_mut(1);
pub(crate) const PER_THREAD: CUstream = ptr::without_provenance_mut(2);

/// How long a stream is held.
pub(crate) const HOLD: Duration = Duration::from_millis(20);

/// Kernels by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernels {
    pub(crate) hold: CUfunction,
    pub(crate) trigger_and_hold: CUfunction,
    pub(crate) mark: CUfunction,
    pub(crate) mark_and_trigger: CUfunction,
    pub(crate) wait_and_mark: CUfunction,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) kernels: Kernels,
    pub(crate) context: sys::CUcontext,
    pub(crate) device: i32,
    words: *mut u32,
    streams: Vec<CUstream>,
    events: Vec<CUevent>,
}

impl Lab {
    /// Makes the primary context of device 0 current and loads the kernels.
    pub(crate) fn new() -> Result<Self, Failure> {
        // SAFETY: every pointer leads to a local variable or to the module's text.
        unsafe {
            ok(sys::cuInit(0))?;
            let mut device = 0;
            ok(sys::cuDeviceGet(&raw mut device, 0))?;
            let mut context = ptr::null_mut();
            ok(sys::cuDevicePrimaryCtxRetain(&raw mut context, device))?;
            ok(sys::cuCtxSetCurrent(context))?;
            let text = CString::new(include_str!("kernels.ptx")).expect("no NUL in the text");
            let mut module = ptr::null_mut();
            ok(sys::cuModuleLoadData(&raw mut module, text.as_ptr().cast()))?;
            let function = |name: &str| {
                let name = CString::new(name).expect("no NUL in a name");
                let mut function = ptr::null_mut();
                ok(sys::cuModuleGetFunction(&raw mut function, module, name.as_ptr()))?;
                Ok(function)
            };
            let kernels = Kernels {
                hold: function("hold")?,
                trigger_and_hold: function("trigger_and_hold")?,
                mark: function("mark")?,
                mark_and_trigger: function("mark_and_trigger")?,
                wait_and_mark: function("wait_and_mark")?,
            };
            let mut words = ptr::null_mut::<c_void>();
            ok(sys::cuMemHostAlloc(&raw mut words, WORDS * 4, sys::CU_MEMHOSTALLOC_PORTABLE))?;
            Ok(Self {
                kernels,
                context,
                device,
                words: words.cast(),
                streams: Vec::new(),
                events: Vec::new(),
            })
        }
    }

    /// Address of a word, as a kernel takes it.
    pub(crate) fn address(&self, word: usize) -> u64 {
        self.words as u64 + 4 * word as u64
    }

    /// The present content of a word.
    pub(crate) fn read(&self, word: usize) -> u32 {
        assert!(word < WORDS);
        // SAFETY: the words live as long as the laboratory.
        unsafe { self.words.add(word).read_volatile() }
    }

    /// Sets a word.
    pub(crate) fn write(&self, word: usize, value: u32) {
        assert!(word < WORDS);
        // SAFETY: as in `read`.
        unsafe { self.words.add(word).write_volatile(value) }
    }

    /// Whether the stream is still held.
    pub(crate) fn is_held(&self) -> bool {
        self.read(END) == 0
    }

    /// Ends a trial: everything has run, streams and events are gone, the words are 0.
    pub(crate) fn clean_up(&mut self) -> Result<(), Failure> {
        // SAFETY: the handles were made by this laboratory and are forgotten here.
        unsafe {
            ok(sys::cuCtxSetCurrent(self.context))?;
            ok(sys::cuCtxSynchronize())?;
            for stream in self.streams.drain(..) {
                ok(sys::cuStreamDestroy_v2(stream))?;
            }
            for event in self.events.drain(..) {
                ok(sys::cuEventDestroy_v2(event))?;
            }
        }
        (0..WORDS).for_each(|word| self.write(word, 0));
        Ok(())
    }

    fn stream(&mut self, flags: sys::CUstream_flags) -> Result<CUstream, Failure> {
        let mut stream = ptr::null_mut();
        // SAFETY: the pointer leads to a local variable.
        ok(unsafe { sys::cuStreamCreate(&raw mut stream, flags as u32) })?;
        self.streams.push(stream);
        Ok(stream)
    }

    /// A new blocking stream.
    pub(crate) fn blocking(&mut self) -> Result<CUstream, Failure> {
        self.stream(sys::CUstream_flags::CU_STREAM_DEFAULT)
    }

    /// A new non-blocking stream.
    pub(crate) fn nonblocking(&mut self) -> Result<CUstream, Failure> {
        self.stream(sys::CUstream_flags::CU_STREAM_NON_BLOCKING)
    }

    /// A new event.
    pub(crate) fn event(&mut self) -> Result<CUevent, Failure> {
        let mut event = ptr::null_mut();
        // SAFETY: the pointer leads to a local variable.
        ok(unsafe { sys::cuEventCreate(&raw mut event, 2) })?;
        self.events.push(event);
        Ok(event)
    }

    /// Launches a kernel of one thread.
    pub(crate) fn launch(
        &self,
        kernel: CUfunction,
        stream: CUstream,
        arguments: &[u64],
    ) -> Result<(), Failure> {
        let mut pointers: Vec<*mut c_void> =
            arguments.iter().map(|argument| ptr::from_ref(argument).cast_mut().cast()).collect();
        // SAFETY: the arguments are what the kernels take, and live until the call returns.
        ok(unsafe {
            sys::cuLaunchKernel(
                kernel,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                stream,
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            )
        })
    }

    /// Launches a kernel of one thread with launch attributes.
    pub(crate) fn launch_with(
        &self,
        kernel: CUfunction,
        stream: CUstream,
        arguments: &[u64],
        attributes: &mut [sys::CUlaunchAttribute],
    ) -> Result<(), Failure> {
        let mut pointers: Vec<*mut c_void> =
            arguments.iter().map(|argument| ptr::from_ref(argument).cast_mut().cast()).collect();
        let config = sys::CUlaunchConfig {
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 1,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        // SAFETY: as in `launch`; the attributes live until the call returns.
        ok(unsafe {
            sys::cuLaunchKernelEx(&raw const config, kernel, pointers.as_mut_ptr(), ptr::null_mut())
        })
    }

    /// Holds a stream for [`HOLD`].
    pub(crate) fn hold(&self, stream: CUstream) -> Result<(), Failure> {
        self.hold_for(stream, HOLD)
    }

    /// Holds a stream for a while.
    pub(crate) fn hold_for(&self, stream: CUstream, time: Duration) -> Result<(), Failure> {
        let nanoseconds = time.as_nanos() as u64;
        self.launch(self.kernels.hold, stream, &[nanoseconds, self.address(END)])
    }

    /// Leaves a mark in stream order.
    pub(crate) fn mark(&self, stream: CUstream) -> Result<(), Failure> {
        self.launch(self.kernels.mark, stream, &[self.address(MARK)])
    }

    /// Whether the mark waits for the end of the hold: watches until both are there.
    pub(crate) fn mark_waits(&self) -> Result<bool, Failure> {
        let begin = Instant::now();
        loop {
            // In this order: a mark that is there while the hold goes on came before its end.
            if self.read(MARK) != 0 {
                return Ok(!self.is_held());
            }
            if begin.elapsed() > Duration::from_secs(5) {
                return Err(Failure("the mark never came".to_owned()));
            }
            std::hint::spin_loop();
        }
    }

    /// Records an event.
    pub(crate) fn record(&self, event: CUevent, stream: CUstream) -> Result<(), Failure> {
        // SAFETY: both are alive.
        ok(unsafe { sys::cuEventRecord(event, stream) })
    }

    /// Makes a stream wait for an event.
    pub(crate) fn wait(&self, stream: CUstream, event: CUevent) -> Result<(), Failure> {
        // SAFETY: both are alive.
        ok(unsafe { sys::cuStreamWaitEvent(stream, event, 0) })
    }
}

/// Memory that is freed at the end of a trial.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) address: u64,
    free: unsafe fn(u64) -> CUresult,
}

impl Memory {
    pub(crate) fn device(bytes: usize) -> Result<Self, Failure> {
        let mut address = 0;
        // SAFETY: the pointer leads to a local variable.
        ok(unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes) })?;
        Ok(Self { address, free: sys::cuMemFree_v2 })
    }

    pub(crate) fn managed(bytes: usize) -> Result<Self, Failure> {
        let mut address = 0;
        // SAFETY: the pointer leads to a local variable; 1 is CU_MEM_ATTACH_GLOBAL.
        ok(unsafe { sys::cuMemAllocManaged(&raw mut address, bytes, 1) })?;
        Ok(Self { address, free: sys::cuMemFree_v2 })
    }

    pub(crate) fn pinned(bytes: usize) -> Result<Self, Failure> {
        unsafe fn free(address: u64) -> CUresult {
            // SAFETY: the address came from `cuMemHostAlloc`.
            unsafe { sys::cuMemFreeHost(ptr::with_exposed_provenance_mut(address as usize)) }
        }
        let mut memory = ptr::null_mut::<c_void>();
        // SAFETY: the pointer leads to a local variable.
        ok(unsafe { sys::cuMemHostAlloc(&raw mut memory, bytes, 0) })?;
        Ok(Self { address: memory.expose_provenance() as u64, free })
    }

    /// As a pointer of the host.
    pub(crate) fn host<T>(&self) -> *mut T {
        ptr::with_exposed_provenance_mut(self.address as usize)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: nothing uses the memory any more: checks end by synchronising the context. A
        // failure leaves the memory to the end of the process.
        unsafe {
            let _ = sys::cuCtxSynchronize();
            let _ = (self.free)(self.address);
        }
    }
}
