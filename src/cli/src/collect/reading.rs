//! Reading the code of kernels, on a thread of its own, so that draining the rings never waits.
//!
//! Questions are answered in batches: the disassembler is slow to start. Whatever goes wrong with
//! one kernel is an answer about that kernel.

use super::kernel_code::{Answer, ImageSource, Question};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use streamsan_kernels::image::ComputeCapability;
use streamsan_kernels::reader::{Reader, Request, Unread};
use streamsan_wire::image_file;

/// Questions that are answered together, at most.
const BATCH: usize = 256;
/// Bytes of images that stay in memory between two batches.
const MOST_KEPT: usize = 256 << 20;
/// Reading is no hurry of the program's: it gets the processor first.
const NICENESS: i32 = 5;

/// The thread that reads.
#[derive(Debug)]
pub(crate) struct Reading {
    questions: Sender<Vec<Question>>,
    answers: Receiver<Vec<Answer>>,
}

impl Reading {
    /// `directory` is that of the run, where copied images lie.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(reader: Reader, directory: &Path) -> io::Result<Self> {
        let (questions, asked) = channel();
        let (answered, answers) = channel();
        let images = Images { directory: directory.to_owned(), known: HashMap::new(), bytes: 0 };
        let run = move || {
            // Where that is not allowed it is as urgent as everything else.
            let _ = rustix::process::nice(NICENESS);
            serve(&reader, images, &asked, &answered);
        };
        thread::Builder::new().name("kernel reader".to_owned()).spawn(run)?;
        Ok(Self { questions, answers })
    }

    pub(crate) fn ask(&self, questions: Vec<Question>) {
        // A thread that is gone answers nothing: its launches stay as they are.
        let _ = self.questions.send(questions);
    }

    /// The answers that are there.
    pub(crate) fn answers(&self) -> Vec<Answer> {
        self.answers.try_iter().flatten().collect()
    }

    /// The next answers; none after `patience`. `None` when no more will ever come.
    pub(crate) fn wait(&self, patience: Duration) -> Option<Vec<Answer>> {
        match self.answers.recv_timeout(patience) {
            Ok(answers) => Some(answers),
            Err(RecvTimeoutError::Timeout) => Some(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }
}

fn serve(
    reader: &Reader,
    mut images: Images,
    asked: &Receiver<Vec<Question>>,
    answered: &Sender<Vec<Answer>>,
) {
    while let Ok(mut questions) = asked.recv() {
        questions.extend(asked.try_iter().flatten());
        for batch in questions.chunks(BATCH) {
            let answers = answer(reader, &mut images, batch);
            if answered.send(answers).is_err() {
                return;
            }
        }
    }
}

/// An image of a question, and its bytes or why they cannot be read.
type Candidate = (usize, Result<Arc<[u8]>, String>);

fn answer(reader: &Reader, images: &mut Images, batch: &[Question]) -> Vec<Answer> {
    let candidates: Vec<Vec<Candidate>> = batch
        .iter()
        .map(|question| {
            question.images.iter().map(|source| images.get(source)).enumerate().collect()
        })
        .collect();
    let mut requests: Vec<Request<'_>> = Vec::new();
    for (question, candidates) in batch.iter().zip(&candidates) {
        let (major, minor) = question.device;
        let device = ComputeCapability { major: major.into(), minor: minor.into() };
        let readable = candidates.iter().filter_map(|(_, bytes)| bytes.as_deref().ok());
        requests.extend(readable.map(|image| Request { image, device, kernel: &question.kernel }));
    }
    let mut outcomes = read(reader, &requests).into_iter();
    let mut answers = Vec::with_capacity(batch.len());
    for (question, candidates) in batch.iter().zip(&candidates) {
        let mut best = Err(Unread::Failed("its code was not seen being loaded".to_owned()));
        let mut found = None;
        for (index, bytes) in candidates {
            let outcome = match bytes {
                Ok(_) => outcomes.next().unwrap_or(Err(Unread::NoKernel)),
                Err(reason) => Err(Unread::Failed(reason.clone())),
            };
            if best.is_ok() {
                continue;
            }
            let there = !matches!(outcome, Err(Unread::NoKernel | Unread::NoCode(_)));
            if there || found.is_none() {
                found = there.then_some(*index);
                best = outcome;
            }
        }
        let outcome = best.map(|read| (read.access, read.source));
        answers.push(Answer { code: question.code, image: found, outcome });
    }
    answers
}

/// Reads; a kernel that the reader stumbles over takes no other one with it.
fn read(
    reader: &Reader,
    requests: &[Request<'_>],
) -> Vec<Result<streamsan_kernels::reader::Read, Unread>> {
    if requests.is_empty() {
        return Vec::new();
    }
    if let Ok(outcomes) = catch_unwind(AssertUnwindSafe(|| reader.read(requests))) {
        return outcomes;
    }
    let one = |request: &Request<'_>| {
        let outcome = catch_unwind(AssertUnwindSafe(|| reader.read(&[*request]).pop()));
        let failed = || Err(Unread::Failed("its code could not be analysed".to_owned()));
        outcome.ok().flatten().unwrap_or_else(failed)
    };
    requests.iter().map(one).collect()
}

/// The bytes of images.
struct Images {
    directory: PathBuf,
    known: HashMap<ImageSource, Arc<[u8]>>,
    bytes: usize,
}

impl Images {
    fn get(&mut self, source: &ImageSource) -> Result<Arc<[u8]>, String> {
        if let Some(bytes) = self.known.get(source) {
            return Ok(bytes.clone());
        }
        let bytes: Arc<[u8]> = self.load(source)?.into();
        if self.bytes + bytes.len() > MOST_KEPT {
            self.known.clear();
            self.bytes = 0;
        }
        self.bytes += bytes.len();
        self.known.insert(source.clone(), bytes.clone());
        Ok(bytes)
    }

    fn load(&self, source: &ImageSource) -> Result<Vec<u8>, String> {
        let (path, offset, size) = match source {
            ImageSource::Copied { hash, size } => {
                let place = image_file(self.directory.display(), *hash, *size);
                let place = place.ok_or("the path of the run directory is too long")?;
                (PathBuf::from(place.as_str()), 0, *size)
            }
            ImageSource::File { path, offset, size } => (PathBuf::from(&**path), *offset, *size),
        };
        part(&path, offset, size).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Bytes of a file, all of them from `offset` on where `size` is 0.
fn part(path: &Path, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    let limit = if size == 0 { u64::MAX } else { size };
    file.take(limit).read_to_end(&mut bytes)?;
    if size != 0 && bytes.len() as u64 != size {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}
