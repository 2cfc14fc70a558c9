//! A recorded call that owns what it was recorded with, so that it can wait for its return.

use super::read_back::ReadBack;
use streamsan_model::StackId;
use streamsan_wire::{
    Api, BlobTag, Blobs, Image, ImageOrigin, ParamKind, ProcessKey, ThreadKey, Words,
};

/// The longest hooked signature has 16 parameters, the longest result 128 bytes (a tensor map).
const MAX_WORDS: usize = 16;

/// A few words without an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FewWords {
    words: [u64; MAX_WORDS],
    len: usize,
}

impl FewWords {
    pub(crate) fn new(words: impl IntoIterator<Item = u64>) -> Self {
        let mut few = Self::default();
        for word in words.into_iter().take(MAX_WORDS) {
            few.words[few.len] = word;
            few.len += 1;
        }
        few
    }

    /// The word at `index`, `None` beyond the end.
    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        self.words[..self.len].get(index).copied()
    }
}

/// Code that a call has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadedImage {
    /// How to get at it.
    pub(crate) origin: ImageOrigin,
    /// XXH3 of its bytes, where they were copied.
    pub(crate) hash: u64,
    /// Bytes in front of it in its file.
    pub(crate) offset: u64,
    /// Bytes, 0 for all of its file.
    pub(crate) size: u64,
    /// Its file.
    pub(crate) path: Box<[u8]>,
}

impl From<&Image<'_>> for LoadedImage {
    fn from(image: &Image<'_>) -> Self {
        let Image { origin, hash, offset, size, path } = *image;
        Self { origin, hash, offset, size, path: path.into() }
    }
}

/// How a call came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Return {
    /// Global index at the return.
    pub(crate) exit: u64,
    /// Host time.
    pub(crate) end_ns: u64,
    /// The driver's `CUresult`.
    pub(crate) result: i32,
    /// Values behind the out parameters, in order; none after a failure.
    pub(crate) outs: FewWords,
}

/// A hooked driver call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Global index at entry.
    pub(crate) g: u64,
    pub(crate) process: ProcessKey,
    pub(crate) thread: ThreadKey,
    pub(crate) tid: u32,
    pub(crate) api: Api,
    /// Handle of the context that was current at entry, 0 for none.
    pub(crate) context: u64,
    pub(crate) start_ns: u64,
    /// The C parameters.
    pub(crate) args: FewWords,
    /// The target of the only parameter that is read through: a descriptor, a name.
    pub(crate) pointee: Option<Box<[u8]>>,
    /// All that parameters point to with their tags, where several are read through.
    pub(crate) inputs: Vec<(u32, Box<[u8]>)>,
    /// The launched kernel's parameters at their offsets.
    pub(crate) kernel_params: Option<Box<[u8]>>,
    /// The attributes of an extended launch.
    pub(crate) launch_attributes: Option<Box<[u8]>>,
    /// The stack of the calling thread, where it was recorded.
    pub(crate) stack: Option<StackId>,
    /// Whether a library made it for a collective operation that is recorded itself.
    pub(crate) of_library: bool,
    /// The code that it has loaded.
    pub(crate) images: Vec<LoadedImage>,
    /// The graphs that were read back for it.
    pub(crate) read_back: Option<Box<ReadBack>>,
    /// `None` while it runs, and for ever if its process died in it.
    pub(crate) returned: Option<Return>,
}

/// Where a call came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) process: ProcessKey,
    pub(crate) thread: ThreadKey,
    pub(crate) tid: u32,
}

impl Call {
    /// A call that was just entered.
    pub(crate) fn begin(
        g: u64,
        t_ns: u64,
        origin: Origin,
        api: Api,
        context: u64,
        args: Words<'_>,
        blobs: Blobs<'_>,
    ) -> Self {
        let signature = api.signature();
        let several = signature.inputs > 1;
        let read_through = (signature.inputs == 1).then(|| {
            signature.params.iter().position(|p| {
                matches!(
                    p.kind,
                    ParamKind::InStruct(_)
                        | ParamKind::InString
                        | ParamKind::LaunchConfig
                        | ParamKind::InOut(_)
                        | ParamKind::InArray { .. }
                        | ParamKind::InBytes { .. }
                )
            })
        });
        let inputs =
            several.then(|| blobs.iter().map(|(tag, bytes)| (tag, bytes.into())).collect());
        Self {
            context,
            start_ns: t_ns,
            args: FewWords::new(args.iter()),
            pointee: read_through.flatten().and_then(|i| blobs.get(i)).map(Box::from),
            inputs: inputs.unwrap_or_default(),
            kernel_params: blobs.kernel_params().map(Box::from),
            launch_attributes: blobs.launch_attributes().map(Box::from),
            ..Self::bare(g, origin, api)
        }
    }

    /// Stands for the call at `g`, of which nothing but its place is asked for.
    pub(crate) fn at(g: u64, process: ProcessKey) -> Self {
        let origin = Origin { process, thread: ThreadKey(0), tid: 0 };
        Self::bare(g, origin, Api::cuLaunchKernel)
    }

    /// A call at host time 0 with nothing recorded: no context, no parameter, no return.
    pub(crate) fn bare(g: u64, origin: Origin, api: Api) -> Self {
        Self {
            g,
            process: origin.process,
            thread: origin.thread,
            tid: origin.tid,
            api,
            context: 0,
            start_ns: 0,
            args: FewWords::default(),
            pointee: None,
            inputs: Vec::new(),
            kernel_params: None,
            launch_attributes: None,
            stack: None,
            of_library: false,
            images: Vec::new(),
            read_back: None,
            returned: None,
        }
    }

    /// The C parameter at `index`, 0 where the record lacks it.
    pub(crate) fn arg(&self, index: usize) -> u64 {
        self.args.get(index).unwrap_or(0)
    }

    /// The target of parameter `index`, of a call with several parameters that are read through.
    pub(crate) fn input(&self, index: usize) -> Option<&[u8]> {
        self.tagged(u32::try_from(index).ok()?)
    }

    /// The parameters of kernel `index` of a launch on several devices.
    pub(crate) fn member_params(&self, index: usize) -> Option<&[u8]> {
        self.tagged(BlobTag::MEMBER_PARAMS.checked_add(u32::try_from(index).ok()?)?)
    }

    fn tagged(&self, tag: u32) -> Option<&[u8]> {
        self.inputs.iter().find(|(t, _)| *t == tag).map(|(_, bytes)| &**bytes)
    }

    /// The value behind the out parameter number `index`, after success.
    pub(crate) fn out(&self, index: usize) -> Option<u64> {
        self.returned.as_ref()?.outs.get(index)
    }

    /// The result; success while it is running.
    pub(crate) fn result(&self) -> i32 {
        self.returned.map_or(0, |r| r.result)
    }

    /// Whether it did what it says, as far as is known.
    pub(crate) fn succeeded(&self) -> bool {
        self.result() == 0
    }
}
