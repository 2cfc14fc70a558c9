//! Reading the kernels of a library as a run would: once with nothing known, and once more with
//! what was kept. `STREAMSAN_IMAGES` names a library, a fat binary, or a directory of images.
//! `STREAMSAN_DEVICE` is the number of the device (90), `STREAMSAN_KERNELS` how many kernels (1000),
//! `STREAMSAN_BATCH` how many are asked for at once (all). Times are those of the processor, the
//! disassembler's included.

use std::collections::HashMap;
use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use streamsan_kernels::Directory;
use streamsan_kernels::access::{KernelAccess, Launch, Shapes, Workspace, analyse_code};
use streamsan_kernels::disassembler::Disassembler;
use streamsan_kernels::image::{CodeKind, ComputeCapability, Image, Target, select};
use streamsan_kernels::reader::{CodeForm, Reader, Request};
use streamsan_kernels::sass::{Decoder, Object, RawCode};
use streamsan_kernels::toolkit::Places;

/// As the command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn number(variable: &str, otherwise: usize) -> usize {
    let set = std::env::var(variable).ok();
    set.map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

/// The processor's time of this process and of those that it has waited for.
struct Clock(Duration);

impl Clock {
    fn read() -> Duration {
        let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
        // Behind the name, which may hold anything; then utime, stime, cutime and cstime.
        let fields = stat.rsplit_once(')').expect("a name").1.split_whitespace();
        let ticks: u64 =
            fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
        // A tick is 10 ms for programs, whatever the kernel's own is.
        Duration::from_millis(ticks * 10)
    }

    fn now() -> Self {
        Self(Self::read())
    }

    fn elapsed(&self) -> Duration {
        Self::read() - self.0
    }
}

/// The processor's time of this thread, finer than [`Clock`].
fn on_processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = stat.split_whitespace().next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

fn main() -> Outcome<()> {
    let Some(path) = std::env::var_os("STREAMSAN_IMAGES").map(PathBuf::from) else {
        println!("STREAMSAN_IMAGES is not set, so there is nothing to read");
        return Ok(());
    };
    let device = number("STREAMSAN_DEVICE", 90) as u32;
    let device = ComputeCapability::from_number(device).ok_or("no such device")?;
    let files = files(&path)?;
    let mut images = Vec::new();
    for file in &files {
        // Files that are no image may lie among them.
        let Ok(image) = Image::read(file) else { continue };
        for container in image.containers {
            let (start, size) = (container.offset as usize, container.size as usize);
            images.push(&file[start..start + size]);
        }
    }
    let chosen = chosen(&images, device, number("STREAMSAN_KERNELS", 1000))?;
    let bytes: usize = images.iter().map(|image| image.len()).sum();
    println!("{} images of {} MiB, {} kernels chosen", images.len(), bytes >> 20, chosen.len());

    let tool = Disassembler::locate(&Places::of_this_process(None))?;
    let scratch = Directory::for_this_run(&std::env::temp_dir())?;
    let own = scratch.subdirectory("scratch")?;
    let disassembler = tool.map(|tool| Disassembler::new(tool, own, Duration::from_secs(600)));
    if let Some(disassembler) = &disassembler {
        stages(&images, &chosen, device, disassembler)?;
    }
    let batch = number("STREAMSAN_BATCH", chosen.len()).max(1);
    for run in ["first run", "second run"] {
        let reader = Reader::new(disassembler.clone(), Some(scratch.subdirectory("kernels")?));
        let begun = Clock::now();
        let mut outcomes = Vec::new();
        for kernels in chosen.chunks(batch) {
            let requests: Vec<_> = kernels
                .iter()
                .map(|(image, kernel)| Request { image: images[*image], device, kernel })
                .collect();
            outcomes.extend(reader.read(&requests));
        }
        println!("{run}: {:.2} s in batches of {batch}", begun.elapsed().as_secs_f64());
        let read = |source| outcomes.iter().flatten().filter(|r| r.source == source).count();
        println!("  by PTX {}, by machine code {}", read(CodeForm::Ptx), read(CodeForm::Sass));
        let mut reasons: HashMap<String, usize> = HashMap::new();
        for reason in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            *reasons.entry(reason.to_string()).or_default() += 1;
        }
        for (reason, count) in reasons {
            println!("  {count} not read: {reason}");
        }
        let known = outcomes.iter().flatten().filter(|read| read.access.unknown.is_empty());
        println!("  {} without anything unknown", known.count());
        if run == "second run" {
            launches(outcomes.iter().flatten().map(|read| &*read.access));
        }
    }
    Ok(())
}

/// The cost of a launch: of a shape that was not seen before, and with other pointers than one that
/// was. Each kernel once, with arguments made up, the best of some launches: everything else that
/// they need was used just before.
fn launches<'a>(kernels: impl Iterator<Item = &'a KernelAccess>) {
    let params: Vec<u8> = std::iter::repeat_n(1024_u32.to_le_bytes(), 1024).flatten().collect();
    let (mut new, mut moved, mut again) = (Vec::new(), Vec::new(), 0);
    let mut workspace = Workspace::default();
    for kernel in kernels {
        let mut shapes = Shapes::new(kernel);
        let mut best = |params: &mut dyn FnMut(u64) -> Vec<u8>, forget: bool| {
            let launches = (1..=ROUNDS).map(|round| {
                let params = params(round);
                let launch = Launch { grid: [64, 1, 1], block: [128, 1, 1], params: &params };
                if forget {
                    shapes.clear();
                }
                let begun = Instant::now();
                black_box(shapes.launch(kernel, &launch, &mut workspace));
                begun.elapsed()
            });
            (launches.min().unwrap_or_default(), shapes.size())
        };
        let (time, size) = best(&mut |_| params.clone(), true);
        new.push((time, &*kernel.name));
        let (time, more) = best(&mut |round| with_pointers(kernel, &params, 256 * round), false);
        moved.push((time, &*kernel.name));
        again += usize::from(more != size);
    }
    for (what, mut times) in [("of a new shape", new), ("with other pointers", moved)] {
        times.sort();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100].0.as_secs_f64() * 1e6;
        let [median, most, nearly_all, slowest] = [50, 90, 99, 100].map(at);
        println!(
            "a launch {what}: median {median:.1} µs, 90% {most:.1}, 99% {nearly_all:.1}, \
             slowest {slowest:.0}"
        );
    }
    println!("  {again} kernels with other pointers were of new shapes");
}

/// How often each launch is timed.
const ROUNDS: u64 = 7;

/// The arguments, with all pointers so much further.
fn with_pointers(kernel: &KernelAccess, params: &[u8], by: u64) -> Vec<u8> {
    let mut params = params.to_vec();
    for word in &kernel.pointers {
        let at = word.block_offset as usize;
        if let Some(bytes) = params.get_mut(at..at + 8) {
            let value = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            bytes.copy_from_slice(&value.wrapping_add(by).to_le_bytes());
        }
    }
    params
}

fn files(path: &Path) -> Outcome<Vec<Vec<u8>>> {
    if !path.is_dir() {
        return Ok(vec![std::fs::read(path)?]);
    }
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(path)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths.iter().map(std::fs::read).collect::<Result<_, _>>()?)
}

/// Kernels from all over the images: which image, and its name.
fn chosen(
    images: &[&[u8]],
    device: ComputeCapability,
    count: usize,
) -> Outcome<Vec<(usize, String)>> {
    let mut all = Vec::new();
    for (number, image) in images.iter().enumerate() {
        for entry in Image::read(image)?.selected(device) {
            if entry.kind == CodeKind::Cubin {
                let object = Object::parse(entry.code()?)?;
                let mut names: Vec<_> = object.kernels().map(str::to_owned).collect();
                names.sort_unstable();
                all.extend(names.into_iter().map(|name| (number, name)));
            }
        }
    }
    let every = all.len().div_ceil(count).max(1);
    println!("{} kernels in all", all.len());
    Ok(all.into_iter().step_by(every).collect())
}

/// Each stage for itself.
fn stages(
    images: &[&[u8]],
    chosen: &[(usize, String)],
    device: ComputeCapability,
    disassembler: &Disassembler,
) -> Outcome<()> {
    let (mut unpacking, mut tables, mut taking) = <(Duration, Duration, Duration)>::default();
    let mut kernels: HashMap<Target, Vec<RawCode>> = HashMap::new();
    let mut object: Option<(usize, Target, Object)> = None;
    for (number, name) in chosen {
        if object.as_ref().is_none_or(|(other, ..)| other != number) {
            let begun = Instant::now();
            let image = Image::read(images[*number])?;
            let entry = image.entries();
            let entry = select(entry, device).ok_or("nothing for the device")?;
            let code = entry.code()?;
            unpacking += begun.elapsed();
            let begun = Instant::now();
            let read = Object::parse(code)?;
            let target = entry.target.or(read.target()).ok_or("no target")?;
            object = Some((*number, target, read));
            tables += begun.elapsed();
        }
        let begun = Instant::now();
        let Some((_, target, object)) = &object else { continue };
        kernels.entry(*target).or_default().extend(object.kernel(name)?);
        taking += begun.elapsed();
    }
    let bytes: usize = kernels.values().flatten().map(RawCode::size).sum();
    println!("{} instructions", bytes / 16);
    for (stage, time) in [("unpacking", unpacking), ("tables", tables), ("code", taking)] {
        println!("  {stage}: {:.2} s", time.as_secs_f64());
    }
    let mut decoder = Decoder::default();
    let (mut decoding, mut slowest) = (Duration::ZERO, Vec::new());
    for (target, kernels) in kernels {
        let begun = Clock::now();
        let mut codes = decoder.decode_each(disassembler, target, kernels)?;
        decoding += begun.elapsed();
        loop {
            let begun = on_processor();
            let Some(code) = codes.next() else { break };
            let made = on_processor();
            decoding += made - begun;
            let access = analyse_code(&code).expect("it is not too large");
            slowest.push((on_processor() - made, access.name));
        }
    }
    println!("  decoding: {:.2} s", decoding.as_secs_f64());
    let all: Duration = slowest.iter().map(|(time, _)| *time).sum();
    println!("  analysis: {:.2} s", all.as_secs_f64());
    slowest.sort();
    for percent in [50, 90, 99] {
        let (fast, slow) = slowest.split_at(slowest.len() * percent / 100);
        let share = slow.iter().map(|(time, _)| *time).sum::<Duration>().as_secs_f64();
        let at = fast.last().map_or(0.0, |(time, _)| time.as_secs_f64());
        let share = 100.0 * share / all.as_secs_f64();
        println!("    {percent}% in up to {:.4} s, the others take {share:.0}% of it", at);
    }
    for (time, name) in slowest.iter().rev().take(3) {
        println!("    {:.3} s: {name}", time.as_secs_f64());
    }
    Ok(())
}
