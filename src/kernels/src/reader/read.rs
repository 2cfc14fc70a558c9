//! Reading many kernels at once.

use super::cache::{Cache, Kept, Subject};
use super::parallel::in_parallel;
use super::pieces::{Piece, Pieces};
use crate::access::{KernelAccess, TooLarge, analyse_code, analyse_kernel};
use crate::disassembler::{Disassembler, PACKAGE};
use crate::image::{CodeKind, ComputeCapability, Container, Entry, Image, Target, select};
use crate::sass::{Decoder, RawCode};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use streamsan_directories::Directory;
use xxhash_rust::xxh3::xxh3_128;

/// Requests that are looked up together, at most: their machine code is kept until it is decoded.
const MOST_AT_ONCE: usize = 256;
/// Threads that read, at most. Each has the memory of one analysis.
const MOST_THREADS: usize = 8;
/// How many bytes of machine code are decoded at once, about: it takes many times the memory then.
const MAX_BATCH: usize = 32 << 20;

/// A kernel that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// One image as the driver got it: a fat binary, a cubin, or PTX.
    pub image: &'a [u8],
    /// Where it was loaded.
    pub device: ComputeCapability,
    /// Mangled.
    pub kernel: &'a str,
}

/// The form of the analysed code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CodeForm {
    /// The text that the machine code is, or was, made from.
    Ptx,
    /// Machine code.
    Sass,
}

/// A kernel that was read.
#[derive(Clone, Debug)]
pub struct Read {
    pub access: Arc<KernelAccess>,
    pub source: CodeForm,
    /// The target of the analysed code, where that is known.
    pub target: Option<Target>,
}

/// Why a kernel could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    #[error("the image has no such kernel")]
    NoKernel,
    #[error("the image has no code that a device of {0} can run")]
    NoCode(ComputeCapability),
    #[error(
        "it is machine code without PTX, and there is no nvdisasm to read it with (Python package \
         {PACKAGE})"
    )]
    NoDisassembler,
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// Code that is damaged, or a disassembler that failed.
    #[error("{0}")]
    Failed(String),
}

/// Reads kernels, and keeps what it concludes.
#[derive(Debug)]
pub struct Reader {
    disassembler: Option<Disassembler>,
    cache: Option<Cache>,
    pieces: Pieces,
    decoder: Mutex<Decoder>,
    threads: usize,
}

/// Where the code of a kernel was found.
enum Found {
    Read(Box<Kept>),
    /// Machine code, and what it is for.
    Code(Box<RawCode>, Target),
    /// Machine code that nothing can take apart.
    Closed,
}

/// A kernel of which there is machine code only.
struct Later {
    /// Which request.
    at: usize,
    subject: Subject,
    target: Target,
    code: RawCode,
}

impl Reader {
    /// Conclusions are kept in `cache`; without one nothing is kept.
    /// Half of the processors read, since the program under test needs some too.
    #[must_use]
    pub fn new(disassembler: Option<Disassembler>, cache: Option<Directory>) -> Self {
        Self {
            disassembler,
            cache: cache.map(Cache::new),
            pieces: Pieces::default(),
            decoder: Mutex::default(),
            threads: (available_parallelism().map_or(1, usize::from) / 2).clamp(1, MOST_THREADS),
        }
    }

    /// Has so many threads read. What is concluded does not depend on it.
    #[must_use]
    pub fn with_threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads.get();
        self
    }

    /// The accesses of each kernel, in the order of the requests.
    ///
    /// # Errors
    ///
    /// For each kernel on its own, why its code was not read.
    pub fn read(&self, requests: &[Request<'_>]) -> Vec<Result<Read, Unread>> {
        let identity = self.disassembler.as_ref().and_then(Disassembler::identity);
        let (mut images, hashes) = (Images::default(), Hashes::default());
        requests.iter().for_each(|request| images.read(request.image));
        let mut outcomes: Vec<Option<Result<Read, Unread>>> = vec![None; requests.len()];
        let (mut later, mut waiting) = (Vec::new(), 0);
        for (chunk, first) in requests.chunks(MOST_AT_ONCE).zip((0..).step_by(MOST_AT_ONCE)) {
            let mut looked_up =
                in_parallel(self.threads, chunk.iter().enumerate(), |(at, request)| {
                    (first + at, self.look_up(&images, &hashes, identity, request))
                });
            // Whoever looked first: the decoder sees the kernels in the order of the requests.
            looked_up.sort_unstable_by_key(|(at, _)| *at);
            for (at, (subject, found)) in looked_up {
                match found {
                    Ok(Found::Read(kept)) => outcomes[at] = Some((*kept).into()),
                    Ok(Found::Code(code, target)) => {
                        waiting += code.size();
                        later.push(Later { at, subject, target, code: *code });
                    }
                    Ok(Found::Closed) => outcomes[at] = Some(Err(Unread::NoDisassembler)),
                    Err(reason) => outcomes[at] = Some(Err(reason)),
                }
                if waiting >= MAX_BATCH {
                    waiting = 0;
                    for (at, answer) in self.machine_code(std::mem::take(&mut later), identity) {
                        outcomes[at] = Some(answer);
                    }
                }
            }
        }
        for (at, answer) in self.machine_code(later, identity) {
            outcomes[at] = Some(answer);
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or(Err(Unread::NoKernel))).collect()
    }

    /// The kept conclusion of a kernel, or the place of its code.
    fn look_up(
        &self,
        images: &Images<'_>,
        hashes: &Hashes,
        identity: Option<u64>,
        request: &Request<'_>,
    ) -> (Subject, Result<Found, Unread>) {
        let subject = Subject::new(hashes.of(request.image), request);
        let kept = self.cache.as_ref().and_then(|cache| cache.load(&subject, identity));
        let found = match kept {
            Some(kept) => Ok(Found::Read(Box::new(kept))),
            None => self.find(images, hashes, request).map(|found| match found {
                Found::Read(kept) => Found::Read(Box::new(self.keep(&subject, *kept))),
                other => other,
            }),
        };
        (subject, found)
    }

    /// Kernels in machine code, those of one target together.
    fn machine_code(
        &self,
        later: Vec<Later>,
        identity: Option<u64>,
    ) -> Vec<(usize, Result<Read, Unread>)> {
        // Without one, nothing came here.
        let Some(disassembler) = &self.disassembler else { return Vec::new() };
        let mut batches: BTreeMap<Target, Vec<Later>> = BTreeMap::new();
        for kernel in later {
            batches.entry(kernel.target).or_default().push(kernel);
        }
        let read = batches
            .into_iter()
            .flat_map(|(target, kernels)| self.batch(disassembler, identity, target, kernels));
        read.collect()
    }

    fn batch(
        &self,
        disassembler: &Disassembler,
        identity: Option<u64>,
        target: Target,
        kernels: Vec<Later>,
    ) -> Vec<(usize, Result<Read, Unread>)> {
        let (kernels, codes): (Vec<_>, Vec<_>) =
            kernels.into_iter().map(|kernel| ((kernel.at, kernel.subject), kernel.code)).unzip();
        let mut decoder = self.decoder.lock().unwrap_or_else(PoisonError::into_inner);
        let codes = match decoder.decode_each(disassembler, target, codes) {
            Ok(codes) => codes,
            Err(error) => {
                let reason = Unread::Failed(error.to_string());
                return kernels.into_iter().map(|(at, _)| (at, Err(reason.clone()))).collect();
            }
        };
        in_parallel(self.threads, kernels.into_iter().zip(codes), |((at, subject), code)| {
            let access = analyse_code(&code);
            drop(code);
            let source = CodeForm::Sass;
            let kept = Kept { access, source, target: Some(target), disassembler: identity };
            (at, self.keep(&subject, kept).into())
        })
    }

    /// Keeps a conclusion, on disk too. It goes on as it was packed: what an analysis leaves lies
    /// scattered over all the memory that the analysis took, and the next one would have to take
    /// more instead of the same again.
    fn keep(&self, subject: &Subject, kept: Kept) -> Kept {
        let Some(plain) = kept.pack() else { return kept };
        if let Some(cache) = &self.cache {
            cache.store(subject, &plain);
        }
        match Kept::unpack(&plain) {
            Some(packed) => {
                drop(kept);
                packed
            }
            None => kept,
        }
    }

    /// The kernel in the containers of an image. Code that has to be linked first is looked at
    /// last.
    fn find<'a>(
        &self,
        images: &Images<'a>,
        hashes: &Hashes,
        request: &Request<'a>,
    ) -> Result<Found, Unread> {
        let image = images.get(request.image)?;
        let mut reason = Unread::NoCode(request.device);
        for relocatable in [false, true] {
            for container in image.containers.iter().filter(|c| c.relocatable == relocatable) {
                let Some(chosen) = select(&container.entries, request.device) else { continue };
                match self.find_in(container, chosen, hashes, request.kernel) {
                    Ok(Some(found)) => return Ok(found),
                    Ok(None) if matches!(reason, Unread::NoCode(_)) => reason = Unread::NoKernel,
                    Ok(None) => {}
                    Err(why) => reason = Unread::Failed(why),
                }
            }
        }
        Err(reason)
    }

    fn find_in(
        &self,
        container: &Container<'_>,
        chosen: &Entry<'_>,
        hashes: &Hashes,
        kernel: &str,
    ) -> Result<Option<Found>, String> {
        let made_from = |entry: &&Entry<'_>| {
            entry.kind == CodeKind::Ptx && entry.target == chosen.target && chosen.target.is_some()
        };
        let beside = container.entries.iter().find(made_from);
        if let Some(entry) = beside.filter(|_| chosen.kind == CodeKind::Cubin)
            && let Ok(piece) = self.pieces.get(entry, hashes.of(entry.packed()))
            && let Some(found) = by_ptx(&piece, entry, kernel)
        {
            return Ok(Some(found));
        }
        let piece = self.pieces.get(chosen, hashes.of(chosen.packed()))?;
        let Piece::Cubin(cubin) = &*piece else { return Ok(by_ptx(&piece, chosen, kernel)) };
        let object = cubin.object(chosen)?;
        if self.disassembler.is_none() && object.has(kernel) {
            return Ok(Some(Found::Closed));
        }
        let Some(code) = object.kernel(kernel).map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let target = chosen.target.or(object.target());
        let target = target.ok_or("machine code that does not tell what it is for")?;
        Ok(Some(Found::Code(Box::new(code), target)))
    }
}

/// The conclusion from PTX, if it has the kernel.
fn by_ptx(piece: &Piece, entry: &Entry<'_>, kernel: &str) -> Option<Found> {
    let Piece::Ptx(module) = piece else { return None };
    let access = analyse_kernel(module, kernel)?;
    let (source, target) = (CodeForm::Ptx, entry.target);
    Some(Found::Read(Box::new(Kept { access, source, target, disassembler: None })))
}

impl From<Kept> for Result<Read, Unread> {
    fn from(kept: Kept) -> Self {
        let Kept { access, source, target, .. } = kept;
        Ok(Read { access: Arc::new(access?), source, target })
    }
}

/// Which bytes of the images of a batch they are: all its requests are alive together.
type BytesKey = (usize, usize);

fn place(bytes: &[u8]) -> BytesKey {
    (bytes.as_ptr().addr(), bytes.len())
}

/// Hashes of images and of what lies in them. Most kernels of a batch are of a few.
#[derive(Default)]
struct Hashes(Mutex<HashMap<BytesKey, u128>>);

impl Hashes {
    fn of(&self, bytes: &[u8]) -> u128 {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = known().get(&place(bytes)).copied();
        kept.unwrap_or_else(|| {
            let hash = xxh3_128(bytes);
            known().insert(place(bytes), hash);
            hash
        })
    }
}

/// The images of a batch.
#[derive(Default)]
struct Images<'a> {
    read: HashMap<BytesKey, Result<Image<'a>, Unread>>,
}

impl<'a> Images<'a> {
    fn read(&mut self, image: &'a [u8]) {
        self.read.entry(place(image)).or_insert_with(|| {
            Image::read(image).map_err(|error| Unread::Failed(error.to_string()))
        });
    }

    fn get(&self, image: &[u8]) -> Result<&Image<'a>, Unread> {
        let read = self.read.get(&place(image)).map(Result::as_ref);
        read.unwrap_or(Err(&Unread::NoKernel)).map_err(Clone::clone)
    }
}
