//! The code of kernels, and the knowledge that comes from it, over all processes of the run.
//!
//! A kernel is asked for when its function is looked up, at the latest when it is launched. Kernels
//! that were launched are read first, and the end of the run waits for them alone. The answers come
//! from another thread ([`super::reading`]). Until then launches are known by their words
//! ([`super::launch`]) and are kept here, as far as memory allows.
//!
//! Deliberately absent: reading, and what a launch touches.

use crate::launch::{ByWords, CodeKnown};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use streamsan_kernels::access::{KernelAccess, ParameterMode};
use streamsan_kernels::reader::{CodeForm as Read, Unread};
use streamsan_model::{
    CodeSource, Entity, KernelCode, KernelGlobal, KernelId, KernelWord, Mode, ModuleId, TraceItem,
};

/// Bytes of launches that are kept until the code of their kernel is known and they are looked at
/// again.
const MOST_KEPT: usize = 64 << 20;

/// Where an image can be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ImageSource {
    /// In the run directory.
    Copied { hash: u64, size: u64 },
    /// In a file; all of it where `size` is 0.
    File { path: Arc<str>, offset: u64, size: u64 },
}

/// The images that one call loads, wherever the same ones are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ImagesId(u32);

/// A kernel of certain images on a certain kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CodeId(u32);

/// Major and minor number of a device's compute capability.
pub(crate) type Capability = (u8, u8);

/// A kernel to be read.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) code: CodeId,
    pub(crate) images: Arc<[ImageSource]>,
    pub(crate) kernel: Arc<str>,
    pub(crate) device: Capability,
}

/// The outcome of reading a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) code: CodeId,
    /// Which of the images it was found in.
    pub(crate) image: Option<usize>,
    pub(crate) outcome: Result<(Arc<KernelAccess>, Read), Unread>,
}

/// How much is known.
#[derive(Clone, Debug)]
pub(crate) enum Knowledge {
    /// Being read.
    Asked,
    Known(Arc<KernelAccess>),
    /// It could not be read; whether for want of a disassembler.
    Unread {
        no_disassembler: bool,
    },
}

#[derive(Debug)]
struct ModuleImages {
    sources: Arc<[ImageSource]>,
    modules: Vec<ModuleId>,
}

#[derive(Debug)]
struct Code {
    images: ImagesId,
    kernel: Arc<str>,
    knowledge: Knowledge,
    answer: Option<Answer>,
    /// Its accesses matter.
    launched: bool,
    /// The kernels of the trace that it is.
    told: Vec<KernelId>,
}

/// The kernels' code.
#[derive(Debug)]
pub(crate) struct Codes {
    images: Vec<ModuleImages>,
    by_sources: HashMap<Arc<[ImageSource]>, ImagesId>,
    codes: Vec<Code>,
    by_name: HashMap<(ImagesId, Arc<str>, Capability), CodeId>,
    /// The way of launches, which have no name at hand.
    by_kernel: HashMap<(KernelId, Capability), CodeId>,
    /// Since when which kernels are being read.
    asked: HashMap<ImagesId, HashMap<Arc<str>, Instant>>,
    questions: Vec<Question>,
    /// Those that were launched since they were asked for.
    hurried: Vec<CodeId>,
    /// Launches that are known by their words, and the bytes that they take, with those that were
    /// answered and not looked at again.
    by_words: HashMap<CodeId, Vec<ByWords>>,
    kept_bytes: usize,
    unanswered: usize,
    /// Those of them that were launched.
    awaited: usize,
    /// How many answers came.
    learnt: u64,
    /// Whether exact accesses come from elsewhere.
    pub(crate) exact: bool,
}

impl Codes {
    pub(crate) fn new(exact: bool) -> Self {
        Self {
            images: Vec::new(),
            by_sources: HashMap::new(),
            codes: Vec::new(),
            by_name: HashMap::new(),
            by_kernel: HashMap::new(),
            asked: HashMap::new(),
            questions: Vec::new(),
            hurried: Vec::new(),
            by_words: HashMap::new(),
            kept_bytes: 0,
            unanswered: 0,
            awaited: 0,
            learnt: 0,
            exact,
        }
    }

    /// The images of one call.
    pub(crate) fn images(&mut self, sources: &[ImageSource], modules: &[ModuleId]) -> ImagesId {
        if let Some(&id) = self.by_sources.get(sources) {
            return id;
        }
        let id = ImagesId(self.images.len() as u32);
        let sources: Arc<[ImageSource]> = sources.into();
        self.by_sources.insert(sources.clone(), id);
        self.images.push(ModuleImages { sources, modules: modules.to_vec() });
        id
    }

    /// A kernel that may be launched soon.
    pub(crate) fn ask(
        &mut self,
        images: ImagesId,
        kernel: &Arc<str>,
        device: Capability,
    ) -> CodeId {
        let key = (images, kernel.clone(), device);
        if let Some(&id) = self.by_name.get(&key) {
            return id;
        }
        let id = CodeId(self.codes.len() as u32);
        self.by_name.insert(key, id);
        self.asked.entry(images).or_default().insert(kernel.clone(), Instant::now());
        self.codes.push(Code {
            images,
            kernel: kernel.clone(),
            knowledge: Knowledge::Asked,
            answer: None,
            launched: false,
            told: Vec::new(),
        });
        let images = self.images[images.0 as usize].sources.clone();
        self.questions.push(Question { code: id, images, kernel: kernel.clone(), device });
        self.unanswered += 1;
        id
    }

    /// The code of a kernel that is launched; declares what is known of it when it is new.
    pub(crate) fn launched(
        &mut self,
        kernel: KernelId,
        name: &str,
        images: ImagesId,
        device: Capability,
        items: &mut Vec<TraceItem>,
    ) -> CodeId {
        if let Some(&id) = self.by_kernel.get(&(kernel, device)) {
            return id;
        }
        let id = self.ask(images, &name.into(), device);
        self.by_kernel.insert((kernel, device), id);
        self.hurry(id);
        let first = !self.by_kernel.keys().any(|&(k, d)| k == kernel && d != device);
        let code = &mut self.codes[id.0 as usize];
        if first && !code.told.contains(&kernel) {
            code.told.push(kernel);
            if code.answer.is_some() {
                items.push(TraceItem::Entity(self.declaration(id, kernel)));
            }
        }
        id
    }

    /// A kernel was launched: others that were only looked up can wait.
    fn hurry(&mut self, id: CodeId) {
        let code = &mut self.codes[id.0 as usize];
        if !std::mem::replace(&mut code.launched, true) && code.answer.is_none() {
            self.awaited += 1;
            self.hurried.push(id);
        }
    }

    /// The images that a kernel comes from.
    pub(crate) fn images_of(&self, code: CodeId) -> ImagesId {
        self.codes[code.0 as usize].images
    }

    /// Whether images lie in NCCL's library. (Other names only mean that more is read.)
    pub(crate) fn is_of_nccl(&self, images: ImagesId) -> bool {
        let sources = &self.images[images.0 as usize].sources;
        let of_nccl = |source: &ImageSource| match source {
            ImageSource::File { path, .. } => {
                path.rsplit('/').next().is_some_and(|name| name.starts_with("libnccl"))
            }
            ImageSource::Copied { .. } => false,
        };
        !sources.is_empty() && sources.iter().all(of_nccl)
    }

    pub(crate) fn knowledge(&self, code: CodeId) -> &Knowledge {
        &self.codes[code.0 as usize].knowledge
    }

    /// Since when the code of a kernel is awaited; `None` where it is not.
    pub(crate) fn asked(&self, images: ImagesId, kernel: &str) -> Option<Instant> {
        self.asked.get(&images)?.get(kernel).copied()
    }

    /// Keeps a launch until its kernel's code is known.
    ///
    /// # Errors
    /// The launch, where too many are kept.
    pub(crate) fn keep(&mut self, launch: Box<ByWords>) -> Result<(), Box<ByWords>> {
        let bytes = launch.bytes();
        if self.kept_bytes + bytes > MOST_KEPT {
            return Err(launch);
        }
        self.kept_bytes += bytes;
        self.by_words.entry(launch.code).or_default().push(*launch);
        Ok(())
    }

    /// The kernels to be read since the last time, and those of all that are to be read first.
    pub(crate) fn questions(&mut self) -> (Vec<Question>, Vec<CodeId>) {
        (std::mem::take(&mut self.questions), std::mem::take(&mut self.hurried))
    }

    /// The kernels that were launched and are still being read: how many, and the first one.
    pub(crate) fn awaited(&self) -> Option<(usize, &str)> {
        let unread = |code: &&Code| code.launched && code.answer.is_none();
        let first = self.codes.iter().find(unread).filter(|_| self.awaited > 0)?;
        Some((self.awaited, &first.kernel))
    }

    /// Whether answers are still to come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.unanswered > 0
    }

    /// Grows with every answer.
    pub(crate) fn learnt(&self) -> u64 {
        self.learnt
    }

    /// Takes an answer; the launches that waited for it.
    pub(crate) fn learn(&mut self, answer: Answer, items: &mut Vec<TraceItem>) -> Vec<CodeKnown> {
        let id = answer.code;
        let code = &mut self.codes[id.0 as usize];
        code.knowledge = match &answer.outcome {
            Ok((access, _)) => Knowledge::Known(access.clone()),
            Err(reason) => Knowledge::Unread { no_disassembler: *reason == Unread::NoDisassembler },
        };
        let known_before = code.answer.replace(answer).is_some();
        self.awaited -= usize::from(code.launched && !known_before);
        if let Some(asked) = self.asked.get_mut(&code.images) {
            asked.remove(&code.kernel);
        }
        self.unanswered -= 1;
        self.learnt += 1;
        for kernel in code.told.clone() {
            items.push(TraceItem::Entity(self.declaration(id, kernel)));
        }
        let launches = self.by_words.remove(&id).unwrap_or_default();
        launches.into_iter().map(ByWords::answered).collect()
    }

    /// Gives back what a launch took that is looked at again now.
    pub(crate) fn release(&mut self, launch: &ByWords) {
        self.kept_bytes = self.kept_bytes.saturating_sub(launch.bytes());
    }

    /// The launches whose kernels nobody will tell of any more.
    pub(crate) fn give_up(&mut self) -> Vec<ByWords> {
        let mut codes: Vec<CodeId> = self.by_words.keys().copied().collect();
        codes.sort_by_key(|code| code.0);
        codes.into_iter().flat_map(|code| self.by_words.remove(&code).unwrap_or_default()).collect()
    }

    fn declaration(&self, id: CodeId, kernel: KernelId) -> Entity {
        let code = &self.codes[id.0 as usize];
        let images = &self.images[code.images.0 as usize];
        let answer = code.answer.as_ref();
        let module = answer.and_then(|answer| images.modules.get(answer.image?).copied());
        let mut declared = KernelCode {
            kernel,
            module,
            source: CodeSource::Unread,
            reason: String::new(),
            waits_on_primary: false,
            words: Vec::new(),
            globals: Vec::new(),
        };
        match answer.map(|answer| &answer.outcome) {
            Some(Ok((access, source))) => {
                declared.source = match source {
                    Read::Ptx => CodeSource::Ptx,
                    Read::Sass => CodeSource::Sass,
                };
                declared.reason = access.reasons();
                declared.waits_on_primary = access.waits_on_primary;
                declared.words = access.pointers.iter().map(word).collect();
                let globals = access.globals.iter().map(|global| KernelGlobal {
                    name: global.name.clone(),
                    mode: mode(global.mode),
                    table: global.table,
                });
                declared.globals = globals.collect();
            }
            Some(Err(reason)) => {
                declared.reason = reason.to_string();
                if *reason == Unread::NoDisassembler {
                    declared.source = CodeSource::NoDisassembler;
                }
            }
            None => {}
        }
        Entity::KernelCode(declared.into())
    }
}

fn word(word: &streamsan_kernels::access::PointerWord) -> KernelWord {
    KernelWord {
        param: word.param,
        offset: word.offset,
        kind: word.kind,
        mode: mode(word.mode),
        table: word.table,
    }
}

/// `None` for no access at all.
pub(crate) fn mode(mode: ParameterMode) -> Option<Mode> {
    match mode {
        ParameterMode::None => None,
        ParameterMode::Read => Some(Mode::Read),
        ParameterMode::Write => Some(Mode::Write),
        ParameterMode::ReadWrite => Some(Mode::ReadWrite),
        ParameterMode::Atomic => Some(Mode::Atomic),
        ParameterMode::Unknown => Some(Mode::MayWrite),
    }
}
