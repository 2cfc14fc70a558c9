//! The run directory: created and read by the collector, joined by every traced process.

mod places;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::api::Api;
use crate::clock::{Calibration, dependable_source};
use crate::control::{ABI_VERSION, CONTROL_FILE, CONTROL_MAGIC, Control};
use crate::entry::entry_points;
use crate::fences::FenceCounts;
use crate::guard::Guarded;
use crate::leftover::remove_leftovers;
use crate::liveness::{pid_namespace, pid_seen_from_here, process_alive, thread_alive};
use crate::map::{map_existing, map_new};
use crate::merge::{Bounds, Merger, RingView};
use crate::process::{PROCESS_BYTES, ProcessFile};
use crate::python::PythonRefusal;
use crate::record::{Envelope, ProcessKey, Record};
use crate::stack::StackMode;
use places::{c_path, create_directory, default_parent, process_name, ring_name};

/// Interval at which the life of processes is checked while records flow.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(50);

/// A collector that has done nothing for so long is stopped, or its disk hangs. A busy machine takes
/// fractions of a second to give it a processor.
const PATIENCE: Duration = Duration::from_secs(10);

/// Processes that may be saying hello at once. The count lies in memory that programs can write
/// over: it must not decide how much is kept here.
const MOST_MISSING: usize = 4096;

/// Where and how large.
#[derive(Debug, Clone)]
pub struct RingOptions {
    /// Data bytes of each ring, a power of two of at least 64 KiB.
    pub ring_bytes: u64,
    /// Directory to create the run directory in; `None`: `/dev/shm` where it has 64 MiB free,
    /// else the directory for temporary files.
    pub parent: Option<PathBuf>,
    /// The stacks that are recorded.
    pub stacks: StackMode,
    /// How long the collector may do nothing before programs drop records instead of waiting for it.
    pub patience: Duration,
    /// Whether host memory is fenced while the device uses it.
    pub fences: bool,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self {
            // A program that makes small calls without a pause fills 1 MiB in 20 ms, which a collector
            // that is busy elsewhere needs now and then (docs/performance.md, "A race in a loop").
            ring_bytes: 4 << 20,
            parent: None,
            stacks: StackMode::OFF,
            patience: PATIENCE,
            fences: false,
        }
    }
}

/// A traced process.
#[derive(Debug, Clone)]
pub struct ProcessInfo {
    /// Its key within the run.
    pub key: ProcessKey,
    /// Process id, as seen by the collector.
    pub pid: u32,
    /// Process id of its parent when it said hello, as seen by the process.
    pub parent: u32,
    /// Path of its executable.
    pub exe: String,
    /// Its arguments, the program's name first.
    pub args: Vec<String>,
    /// Start in clock ticks since boot.
    pub start_time: u64,
    /// Whether the process still runs, as of the last [`RunDirectory::drain`].
    pub alive: bool,
    /// Records that it could not write.
    pub dropped: u64,
    /// How long its threads waited for room, all together.
    pub waited: Duration,
    /// How much host memory was fenced.
    pub fences: FenceCounts,
    /// Rings that it overwrote with bytes that are no record; what they held is lost.
    pub corrupted: u32,
}

#[derive(Debug)]
struct ProcessView {
    mapping: Guarded,
    number: u32,
    rings_opened: u32,
    reclaimed: bool,
    /// Whether the process is in another PID namespace, so that its thread ids have no meaning
    /// here.
    foreign: bool,
    /// Its file was cut.
    torn: bool,
}

impl ProcessView {
    fn file(&self) -> &ProcessFile {
        // SAFETY: discovered only with the full length; unmapped only when dropped. Plain fields
        // were written before the file got its name and do not change.
        unsafe { self.mapping.start().cast::<ProcessFile>().as_ref() }
    }
}

/// A run's directory; removed when dropped.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    control: Guarded,
    /// Process numbers whose file was not seen yet.
    missing: Vec<u32>,
    numbers_seen: u32,
    views: Vec<ProcessView>,
    infos: Vec<ProcessInfo>,
    rings: Vec<Option<RingView>>,
    merger: Merger,
    hooked_calls: Vec<u64>,
    liveness_checked: Option<Instant>,
}

// SAFETY: the mappings are owned by the value and only used through it.
unsafe impl Send for RunDirectory {}

impl RunDirectory {
    /// Creates the directory and its control file, owned by the calling process as collector.
    ///
    /// # Errors
    /// The directory or the file cannot be created, its path is not UTF-8, or the ring size is no
    /// power of two of at least 64 KiB.
    pub fn create(options: RingOptions) -> io::Result<Self> {
        if !options.ring_bytes.is_power_of_two() || options.ring_bytes < 64 << 10 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the ring size must be a power of two of at least 64 KiB",
            ));
        }
        let parent = options.parent.unwrap_or_else(default_parent);
        remove_leftovers(&parent);
        let path = create_directory(&parent)?;
        let control = match map_new(&c_path(&path.join(CONTROL_FILE))?, Control::BYTES) {
            Ok(control) => control,
            Err(errno) => {
                let _ = std::fs::remove_dir_all(&path);
                return Err(io::Error::from_raw_os_error(errno));
            }
        };
        let source = dependable_source();
        // SAFETY: a fresh zeroed mapping of the right size that nobody else knows yet; all fields
        // of `Control` are valid as zeroes.
        unsafe {
            let control = control.start.cast::<Control>().as_mut();
            control.version = ABI_VERSION;
            control.collector = std::process::id();
            control.collector_namespace = pid_namespace();
            control.ring_bytes = options.ring_bytes;
            control.clock = source as u32;
            control.host_accesses = u32::from(options.fences);
            control.stacks = options.stacks.to_word();
            control.patience_ms = u32::try_from(options.patience.as_millis()).unwrap_or(u32::MAX);
            *control.g.get_mut() = 1;
            control.magic = CONTROL_MAGIC;
        }
        Ok(Self {
            path,
            control: Guarded::new(control),
            missing: Vec::new(),
            numbers_seen: 0,
            views: Vec::new(),
            infos: Vec::new(),
            rings: Vec::new(),
            merger: Merger::new(Calibration::new(source)),
            hooked_calls: vec![0; Api::COUNT],
            liveness_checked: None,
        })
    }

    /// The directory, absolute; the runtime finds it in [`crate::RUN_DIR_VARIABLE`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn control(&self) -> &Control {
        // SAFETY: mapped by the constructor until dropped.
        unsafe { self.control.start().cast::<Control>().as_ref() }
    }

    /// Tells the programs that no collector makes room for them any more. Records that they still
    /// publish fill their rings; then they drop records without waiting. Returns the first index
    /// that belongs to no record published before.
    pub fn close(&self) -> u64 {
        self.control().closed.store(1, Ordering::Release);
        self.next_index()
    }

    /// The next index. A control file that was truncated counts no more, and every published record
    /// is below.
    fn next_index(&self) -> u64 {
        let g = self.control().g.load(Ordering::Acquire);
        if self.control.is_torn() { u64::MAX } else { g }
    }

    /// The collector gets on: programs that wait for room go on waiting. [`RunDirectory::drain`] says
    /// so itself where it hands records out.
    pub fn note_progress(&self) {
        self.control().progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Index of the record handed out last, 0 before the first.
    pub fn handed_out(&self) -> u64 {
        self.merger.last()
    }

    /// Discovers processes and rings, closes gaps of dead processes, then hands out at most `max`
    /// records below the watermark, their `g` strictly increasing over the run. Returns how many.
    ///
    /// # Errors
    /// A file of the run directory that exists cannot be mapped.
    pub fn drain(&mut self, max: usize, sink: &mut dyn FnMut(Envelope<'_>)) -> io::Result<usize> {
        // The order of these steps is what `ring.rs` proves the watermark with.
        let g = self.next_index();
        self.discover()?;
        self.refresh_liveness();
        let watermark = self.watermark(g);
        for ring in self.rings.iter_mut().flatten() {
            ring.refresh();
        }
        // Every record behind the heads just read took its index before now.
        let taken = self.next_index();
        let hooked_calls = &mut self.hooked_calls;
        let bounds = Bounds { watermark, taken, max };
        let count = self.merger.drain(&mut self.rings, bounds, &mut |envelope| {
            if let Record::Begin { api, .. } = envelope.record {
                hooked_calls[api as usize] += 1;
            }
            sink(envelope);
        });
        if count > 0 {
            self.note_progress();
        }
        self.refresh_losses();
        Ok(count)
    }

    /// Everything handed out so far is needed in the rings no longer: frees it, and the rings of
    /// processes that ended.
    pub fn release(&mut self) {
        for ring in self.rings.iter().flatten() {
            ring.release();
        }
        for (info, view) in self.infos.iter().zip(&mut self.views) {
            if info.alive || view.reclaimed {
                continue;
            }
            let mut own = self
                .rings
                .iter_mut()
                .filter(|slot| slot.as_ref().is_some_and(|ring| ring.process == info.key));
            if own.all(|slot| slot.as_ref().is_none_or(RingView::is_drained)) {
                for slot in &mut self.rings {
                    if slot.as_ref().is_some_and(|ring| ring.process == info.key) {
                        *slot = None;
                    }
                }
                view.reclaimed = true;
            }
        }
    }

    /// Used share of the fullest ring in `0.0..=1.0`, unreleased bytes included.
    pub fn pressure(&self) -> f64 {
        self.rings.iter().flatten().map(RingView::fill).fold(0.0, f64::max)
    }

    /// All processes that said hello, as of the last [`RunDirectory::drain`].
    pub fn processes(&self) -> &[ProcessInfo] {
        &self.infos
    }

    /// Whether host memory is fenced while the device uses it.
    pub fn has_fences(&self) -> bool {
        self.control().fences()
    }

    /// Whether a process that said hello still runs, looked up now.
    pub fn any_alive(&self) -> bool {
        self.infos.iter().any(|info| info.alive && process_alive(info.pid, info.start_time))
    }

    /// Number of processes that found the directory and could not register: their calls are not
    /// recorded. The number is not known where the control file was truncated.
    pub fn attach_failures(&self) -> u32 {
        let failed = self.control().failed.load(Ordering::Acquire);
        failed.saturating_add(u32::from(self.control.is_torn()))
    }

    /// Calls of each entry point over all processes, those without calls left out: hooked ones as
    /// their records were handed out, the others as the processes counted them.
    pub fn coverage(&self) -> Vec<(String, u64)> {
        let mut coverage = std::collections::BTreeMap::<String, u64>::new();
        for entry in entry_points() {
            let calls = match entry.api() {
                Some(api) => self.hooked_calls[api as usize],
                None => self
                    .views
                    .iter()
                    .map(|view| view.file().counters[entry.index()].load(Ordering::Relaxed))
                    .sum(),
            };
            if calls > 0 {
                coverage.insert(entry.name().to_owned(), calls);
            }
        }
        for view in &self.views {
            for (name, calls) in view.file().unknown_calls().filter(|(_, calls)| *calls > 0) {
                *coverage.entry(String::from_utf8_lossy(name).into_owned()).or_default() += calls;
            }
        }
        coverage.into_iter().collect()
    }

    /// Unknown entry points that were looked up beyond what a process can count by name.
    pub fn unknown_overflow(&self) -> u64 {
        self.views.iter().map(|v| v.file().unknown_overflow.load(Ordering::Relaxed)).sum()
    }

    /// Processes whose Python frames are not read, and why.
    pub fn python_refusals(&self) -> impl Iterator<Item = (&ProcessInfo, PythonRefusal)> {
        let refusal = |view: &ProcessView| view.file().python_refusal();
        let both = self.infos.iter().zip(&self.views);
        both.filter_map(move |(info, view)| Some((info, refusal(view)?)))
    }

    fn discover(&mut self) -> io::Result<()> {
        let room = MOST_MISSING.saturating_sub(self.missing.len()) as u32;
        let numbers = self.control().processes.load(Ordering::Acquire);
        let numbers = numbers.min(self.numbers_seen.saturating_add(room));
        self.missing.extend(self.numbers_seen..numbers);
        self.numbers_seen = self.numbers_seen.max(numbers);
        let missing = std::mem::take(&mut self.missing);
        for number in missing {
            let name = self.path.join(process_name(number));
            match map_existing(&c_path(&name)?) {
                Ok(mapping) => {
                    // A file without a name cannot be cut by its name.
                    let _ = std::fs::remove_file(&name);
                    self.add_process(Guarded::new(mapping), number);
                }
                Err(libc::ENOENT) => self.missing.push(number),
                Err(errno) => return Err(io::Error::from_raw_os_error(errno)),
            }
        }
        for (info, view) in self.infos.iter_mut().zip(&mut self.views) {
            let rings = view.file().rings.load(Ordering::Acquire);
            while view.rings_opened < rings {
                let name = self.path.join(ring_name(view.number, view.rings_opened));
                match map_existing(&c_path(&name)?) {
                    Ok(mapping) => {
                        let _ = std::fs::remove_file(&name);
                        let ring = RingView::new(Guarded::new(mapping), info.key);
                        info.corrupted += u32::from(ring.is_none());
                        match self.rings.iter_mut().find(|slot| slot.is_none()) {
                            Some(slot) => *slot = ring,
                            None => self.rings.push(ring),
                        }
                    }
                    // The counter was overwritten: no such ring was ever made.
                    Err(libc::ENOENT) => break,
                    Err(errno) => return Err(io::Error::from_raw_os_error(errno)),
                }
                view.rings_opened += 1;
            }
        }
        Ok(())
    }

    fn add_process(&mut self, mapping: Guarded, number: u32) {
        let (foreign, torn) = (false, false);
        let mut view =
            ProcessView { mapping, number, rings_opened: 0, reclaimed: false, foreign, torn };
        if view.mapping.len() < PROCESS_BYTES || !view.file().usable() {
            // Calls of such a process are not recorded.
            self.control().failed.fetch_add(1, Ordering::AcqRel);
            return;
        }
        let namespace = view.file().pid_namespace;
        view.foreign = namespace != 0 && namespace != self.control().collector_namespace;
        let file = view.file();
        let seen = |pid| pid_seen_from_here(pid, file.start_time).unwrap_or(0);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let info = ProcessInfo {
            key: ProcessKey(self.infos.len() as u32),
            // 0, which no process has, for one that has ended.
            pid: if view.foreign { seen(file.pid) } else { file.pid },
            parent: file.parent,
            exe: text(file.exe()),
            args: file.args().map(text).collect(),
            start_time: file.start_time,
            alive: true,
            dropped: 0,
            waited: Duration::ZERO,
            fences: FenceCounts::default(),
            corrupted: 0,
        };
        // exec keeps process id and start time, but nothing of the old image runs any more.
        for old in &mut self.infos {
            if old.pid == info.pid && old.start_time == info.start_time {
                old.alive = false;
            }
        }
        self.infos.push(info);
        self.views.push(view);
    }

    fn refresh_liveness(&mut self) {
        let due = self.liveness_checked.is_none_or(|at| at.elapsed() >= LIVENESS_INTERVAL);
        if !due {
            return;
        }
        self.liveness_checked = Some(Instant::now());
        for info in self.infos.iter_mut().filter(|info| info.alive) {
            info.alive = process_alive(info.pid, info.start_time);
        }
    }

    fn refresh_losses(&mut self) {
        for (info, view) in self.infos.iter_mut().zip(&mut self.views) {
            let dropped = view.file().dropped.load(Ordering::Relaxed);
            let waited = Duration::from_nanos(view.file().waited_ns.load(Ordering::Relaxed));
            if !view.mapping.is_torn() {
                (info.dropped, info.waited) = (dropped, waited);
                info.fences = view.file().fences.read();
            } else if !std::mem::replace(&mut view.torn, true) {
                info.corrupted += 1;
            }
        }
        for ring in &mut self.rings {
            if let Some(broken) = ring.take_if(|ring| ring.broken) {
                self.infos[broken.process.0 as usize].corrupted += 1;
            }
        }
    }

    /// The lowest index that may still appear. A publication that a dead process or thread left
    /// half-way never completes: its gap is closed.
    fn watermark(&self, g: u64) -> u64 {
        self.rings
            .iter()
            .flatten()
            .filter_map(|ring| {
                let (pending, tid) = ring.pending()?;
                let info = &self.infos[ring.process.0 as usize];
                let view = &self.views[ring.process.0 as usize];
                if pending >= g {
                    return None;
                }
                let alive = info.alive
                    && process_alive(info.pid, info.start_time)
                    && (view.foreign || thread_alive(info.pid, tid));
                alive.then_some(pending)
            })
            .fold(g, u64::min)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        self.control().closed.store(1, Ordering::Release);
        self.rings.clear();
        self.views.clear();
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
