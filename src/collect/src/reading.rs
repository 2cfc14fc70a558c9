//! Reading the code of kernels, on a thread of its own, so that draining the rings never waits.
//!
//! Questions are answered in batches: the disassembler is slow to start. Kernels that were launched
//! come first. A failure with one kernel is an answer about that kernel.

use super::kernel_code::{Answer, CodeId, ImageSource, Question};
use super::log;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use streamsan_kernels::image::ComputeCapability;
use streamsan_kernels::reader::{Reader, Request, Unread};
use streamsan_wire::image_file;

/// Questions that are answered together, at most.
const BATCH: usize = 256;
/// The same of kernels that were only looked up: those that are launched meanwhile wait for them.
const SMALL_BATCH: usize = 32;
/// Bytes of images that stay in memory between two batches.
const MOST_KEPT: usize = 256 << 20;
/// Reading is no hurry of the program's: it gets the processor first.
const NICENESS: i32 = 5;

/// The kernels that are still to be read.
#[derive(Debug, Default)]
struct ReadingQueue {
    launched: VecDeque<Question>,
    looked_up: VecDeque<Question>,
    /// The thread reads kernels that it was asked for.
    is_reading: bool,
    /// Nobody wants answers any more.
    closed: bool,
}

impl ReadingQueue {
    fn next_batch(&mut self) -> Vec<Question> {
        let (questions, most) = match self.launched.is_empty() {
            true => (&mut self.looked_up, SMALL_BATCH),
            false => (&mut self.launched, BATCH),
        };
        questions.drain(..questions.len().min(most)).collect()
    }

    /// Has kernels read before those that were only looked up.
    fn hurry(&mut self, hurried: &HashSet<CodeId>) {
        if !hurried.is_empty() {
            let all = std::mem::take(&mut self.looked_up);
            let (launched, rest) = all.into_iter().partition(|q| hurried.contains(&q.code));
            self.looked_up = rest;
            self.launched.extend::<VecDeque<_>>(launched);
        }
    }
}

/// The queue, and who waits for questions.
#[derive(Debug, Default)]
struct ReadingState {
    queue: Mutex<ReadingQueue>,
    changed: Condvar,
}

impl ReadingState {
    fn queue(&self) -> MutexGuard<'_, ReadingQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next questions, as soon as there are some; `None` when no more will come.
    fn next_batch(&self) -> Option<Vec<Question>> {
        let mut queue = self.queue();
        loop {
            if queue.closed {
                return None;
            }
            let batch = queue.next_batch();
            if !batch.is_empty() {
                queue.is_reading = true;
                return Some(batch);
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The thread that reads.
#[derive(Debug)]
pub(crate) struct Reading {
    shared: Arc<ReadingState>,
    answers: Receiver<Vec<Answer>>,
    /// Taken by the end.
    thread: Option<JoinHandle<()>>,
}

impl Reading {
    /// `directory` is that of the run, where copied images lie.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(reader: Reader, directory: &Path) -> io::Result<Self> {
        let shared = Arc::new(ReadingState::default());
        let (answered, answers) = channel();
        let images =
            ImageBytes { directory: directory.to_owned(), known: HashMap::new(), bytes: 0 };
        let asked = shared.clone();
        let run = move || {
            // Where that is not allowed it is as urgent as everything else. Threads that this one
            // starts have the same.
            let _ = rustix::process::nice(NICENESS);
            serve(&reader, images, &asked, &answered);
        };
        let thread = thread::Builder::new().name("kernel reader".to_owned()).spawn(run)?;
        Ok(Self { shared, answers, thread: Some(thread) })
    }

    /// Has kernels read; those that are `hurried`, of these or of earlier ones, come first. A thread
    /// that is gone answers nothing: its launches stay as they are.
    pub(crate) fn ask(&self, questions: Vec<Question>, hurried: Vec<CodeId>) {
        if questions.is_empty() && hurried.is_empty() {
            return;
        }
        let mut queue = self.shared.queue();
        queue.looked_up.extend(questions);
        queue.hurry(&hurried.into_iter().collect());
        self.shared.changed.notify_one();
    }

    /// The run has ended: kernels that were only looked up need not be read any more.
    pub(crate) fn only_launched(&self) {
        self.shared.queue().looked_up.clear();
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

impl Drop for Reading {
    /// Waits for the end of the thread, so that the directories which its reader holds go before the
    /// process ends. A kernel that is still being read may take long, and nobody wants it any more:
    /// the thread is left alone with it.
    fn drop(&mut self) {
        let is_reading = {
            let mut queue = self.shared.queue();
            queue.closed = true;
            queue.is_reading
        };
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take().filter(|_| !is_reading) {
            // A thread that panicked has ended, too, and the panic has been told.
            let _ = thread.join();
        }
    }
}

fn serve(
    reader: &Reader,
    mut images: ImageBytes,
    asked: &ReadingState,
    answered: &Sender<Vec<Answer>>,
) {
    while let Some(batch) = asked.next_batch() {
        let answers = answer(reader, &mut images, &batch);
        // Before the answers go, so that whoever ends after the last of them waits for the thread.
        asked.queue().is_reading = false;
        if answered.send(answers).is_err() {
            return;
        }
    }
}

/// An image of a question, and its bytes or why they cannot be read.
type Candidate = (usize, Result<Arc<[u8]>, String>);

fn answer(reader: &Reader, images: &mut ImageBytes, batch: &[Question]) -> Vec<Answer> {
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
        log::kernel(&question.kernel, best.as_ref().map(|read| read.source));
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
struct ImageBytes {
    directory: PathBuf,
    known: HashMap<ImageSource, Arc<[u8]>>,
    bytes: usize,
}

impl ImageBytes {
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
