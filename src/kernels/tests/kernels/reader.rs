//! Reading kernels from images: which code is analysed, why none is, and what is kept. A script
//! stands for the disassembler and prints the same instruction for everything.

use crate::conclusions;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use streamsan_kernels::Directory;
use streamsan_kernels::access::TooLarge;
use streamsan_kernels::disassembler::Disassembler;
use streamsan_kernels::image::ComputeCapability;
use streamsan_kernels::ptx;
use streamsan_kernels::reader::{CodeForm, Reader, Request, Unread};
use streamsan_kernels::toolkit::{Origin, Tool};
use streamsan_testing::images::{
    CUBIN, Cubin, PTX, Packing, SAXPY, SPECIFIC, container, entry, saxpy_cubin, saxpy_info,
};

fn device(number: u32) -> ComputeCapability {
    ComputeCapability::from_number(number).expect("a device")
}

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn cache(&self) -> PathBuf {
        self.0.path().join("cache")
    }

    fn directory(&self, name: &str) -> Directory {
        Directory::open(self.0.path(), name).expect("made")
    }

    fn disassembler(&self, remark: &str) -> Disassembler {
        let path = self.0.path().join("nvdisasm");
        let log = self.0.path().join("log");
        let script = format!(
            "#!/bin/sh\n# {remark}\necho $2 >> '{}'\nat=0\nwhile [ $at -lt $(wc -c < $5) ]; do\n\
             printf '/*%04x*/ EXIT ;\\n' $at; at=$((at + 16)); done\n",
            log.display()
        );
        // The same file is the same program: its age counts.
        if fs::read_to_string(&path).ok().as_ref() != Some(&script) {
            // By another process: a file that is written here is open in whatever other tests start
            // at that moment, and cannot be executed as long as it is (ETXTBSY).
            let text = self.0.path().join("text");
            fs::write(&text, script).expect("written");
            let mut install = Command::new("install");
            install.args(["-m", "755"]).args([&text, &path]);
            assert!(install.status().expect("it starts").success());
        }
        let tool = Tool { path, origin: Origin::Variable };
        Disassembler::new(tool, self.directory("scratch"), Duration::from_secs(60))
    }

    /// A reader with the cache and with a disassembler of this remark, if any.
    fn reader(&self, remark: Option<&str>) -> Reader {
        Reader::new(remark.map(|remark| self.disassembler(remark)), Some(self.directory("cache")))
    }

    /// How often the disassembler was run.
    fn runs(&self) -> usize {
        fs::read_to_string(self.0.path().join("log")).unwrap_or_default().lines().count()
    }

    fn kept(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.cache()) else { return Vec::new() };
        entries.map(|entry| entry.expect("readable").path()).collect()
    }
}

fn saxpy_text(target: &str) -> Vec<u8> {
    SAXPY.replace("sm_80", target).into_bytes()
}

#[test]
fn code_is_chosen_as_the_driver_does() {
    let cubin = |number, flags| entry(CUBIN, number, flags, &saxpy_cubin(number), Packing::Zstd);
    let text = |number, flags, target| entry(PTX, number, flags, &saxpy_text(target), Packing::Lz4);
    let at = |source, target| Ok((source, Some(target)));
    for (image, number, expected) in [
        (saxpy_text("sm_80"), 90, at(CodeForm::Ptx, "sm_80")),
        (saxpy_cubin(90), 90, at(CodeForm::Sass, "sm_90")),
        // Machine code, and the text that it was made from.
        (container(&[cubin(90, 0), text(90, 0, "sm_90")]), 90, at(CodeForm::Ptx, "sm_90")),
        // The text of another target may be of other code.
        (container(&[cubin(90, 0), text(80, 0, "sm_80")]), 90, at(CodeForm::Sass, "sm_90")),
        (container(&[cubin(90, SPECIFIC), text(90, 0, "sm_90")]), 90, at(CodeForm::Sass, "sm_90a")),
        (container(&[cubin(80, 0), text(80, 0, "sm_80")]), 90, at(CodeForm::Ptx, "sm_80")),
        (container(&[cubin(90, 0)]), 80, Err(Unread::NoCode(device(80)))),
        (
            container(&[entry(CUBIN, 90, 0, &other_cubin(), Packing::None)]),
            90,
            Err(Unread::NoKernel),
        ),
    ] {
        let bench = Bench::new();
        let reader = bench.reader(Some(""));
        let request = Request { image: &image, device: device(number), kernel: "saxpy" };
        let read = reader.read(&[request]).pop().expect("an outcome");
        let read = read.map(|read| (read.source, read.target.map(|target| target.to_string())));
        let read = read.as_ref().map(|(source, target)| (*source, target.as_deref()));
        assert_eq!(read.map_err(Clone::clone), expected, "{number}");
    }
}

fn other_cubin() -> Vec<u8> {
    Cubin::new(90, vec![("other", saxpy_info())]).build()
}

#[test]
fn many_kernels_are_one_run() {
    let bench = Bench::new();
    let (first, second) = (saxpy_cubin(90), other_cubin());
    let device = device(90);
    let requests = [
        Request { image: &first, device, kernel: "saxpy" },
        Request { image: &second, device, kernel: "other" },
        Request { image: &second, device, kernel: "none" },
        Request { image: b"text", device, kernel: "none" },
    ];
    let outcomes = bench.reader(Some("")).read(&requests);
    let names: Vec<_> = outcomes.iter().flatten().map(|read| read.access.name.as_str()).collect();
    assert_eq!(names, ["saxpy", "other"]);
    assert_eq!(outcomes[2].as_ref().err(), Some(&Unread::NoKernel));
    assert!(matches!(&outcomes[3], Err(Unread::Failed(reason)) if reason.contains("neither PTX")));
    assert_eq!((bench.runs(), bench.kept().len()), (1, 2));
    // Nobody but the user sees what was run.
    let mode = fs::metadata(bench.cache()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn conclusions_are_kept() {
    let bench = Bench::new();
    let image = saxpy_cubin(90);
    let request = [Request { image: &image, device: device(90), kernel: "saxpy" }];
    let read = |remark: Option<&str>| bench.reader(remark).read(&request).pop().expect("one");
    assert_eq!(read(None).err(), Some(Unread::NoDisassembler));
    assert_eq!((bench.runs(), bench.kept().len()), (0, 0), "failures are not kept");
    let first = read(Some("old")).expect("read");
    for (remark, runs) in [(Some("old"), 1), (None, 1), (Some("newer"), 2), (Some("newer"), 2)] {
        let again = read(remark).expect("read");
        assert_eq!((&again.access, again.source), (&first.access, CodeForm::Sass));
        assert_eq!(again.target, first.target);
        assert_eq!(bench.runs(), runs, "{remark:?}");
    }
    let [kept] = bench.kept().try_into().expect("one file");
    let whole = fs::read(&kept).expect("there");
    let mut flipped = whole.clone();
    flipped[20] ^= 1;
    for (count, damage) in [&b""[..], &whole[..30], &flipped, &[0xff; 100]].iter().enumerate() {
        fs::write(&kept, damage).expect("written");
        assert_eq!(read(Some("newer")).expect("read").access, first.access);
        assert_eq!(bench.runs(), 3 + count);
        assert_eq!(fs::read(&kept).expect("there"), whole);
    }
}

#[test]
fn reasons_name_the_package() {
    assert!(Unread::NoDisassembler.to_string().contains("nvidia-cuda-nvdisasm"));
}

/// A kernel in which every place goes to every other one. The list of the targets is not there.
fn tangled(places: usize) -> Vec<u8> {
    let mut text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry tangled(\
                    .param .u64 out)\n{\n.reg .u32 %r<2>;\nmov.u32 %r1, %tid.x;\n"
        .to_owned();
    for place in 0..places {
        text.push_str(&format!("L{place}:\nbrx.idx %r1, nowhere;\n"));
    }
    text.push_str("ret;\n}\n");
    text.into_bytes()
}

#[test]
fn kernels_that_are_too_large_say_so_and_are_not_read_again() {
    let bench = Bench::new();
    let (small, large) = (tangled(20), tangled(2000));
    let request = |image| Request { image, device: device(80), kernel: "tangled" };
    let read = |image| bench.reader(None).read(&[request(image)]).remove(0);
    assert!(read(&small).is_ok());
    assert_eq!(bench.kept().len(), 1);
    let reason = read(&large).expect_err("it has a bound");
    assert!(matches!(reason, Unread::TooLarge(TooLarge::Work(_))), "{reason}");
    let said = "its code is too large: reading it was given up after 100 million steps";
    assert_eq!(reason.to_string(), said);
    assert_eq!(bench.kept().len(), 2, "what took long is kept");
    assert_eq!(read(&large).expect_err("it is kept"), reason);
}

#[test]
fn what_is_concluded_does_not_depend_on_the_number_of_threads() {
    let files = conclusions::files("tests/access", "ptx");
    let images: Vec<_> = files.iter().map(|path| fs::read(path).expect("readable")).collect();
    let modules = images.iter().map(|image| ptx::parse(&String::from_utf8_lossy(image)));
    let kernels: Vec<(usize, String)> = modules
        .enumerate()
        .flat_map(|(at, module)| {
            let functions = module.expect("PTX").functions.into_iter().filter(|f| f.is_entry);
            functions.map(move |function| (at, function.name))
        })
        .collect();
    assert!(kernels.len() > 20, "{}", kernels.len());
    let read = |threads: usize| {
        let threads = NonZeroUsize::new(threads).expect("not none");
        let reader = Reader::new(None, None).with_threads(threads);
        let requests: Vec<_> = kernels
            .iter()
            .map(|(at, kernel)| Request { image: &images[*at], device: device(120), kernel })
            .collect();
        reader.read(&requests).iter().map(|outcome| format!("{outcome:?}")).collect::<Vec<_>>()
    };
    let alone = read(1);
    assert!(alone.iter().any(|outcome| outcome.starts_with("Ok")), "{alone:?}");
    assert_eq!(read(4), alone);
    assert_eq!(read(7), alone);
}

/// A file in the place of a conclusion that is none of ours is not read: a link, a pipe that
/// nobody writes to, a file that others can change, one of another user, and the conclusion of
/// another kernel.
#[test]
fn conclusions_that_somebody_else_may_have_put_there_are_not_believed() {
    let bench = Bench::new();
    let (first, second) = (saxpy_cubin(90), other_cubin());
    let request = |image, kernel| Request { image, device: device(90), kernel };
    let read = |request| bench.reader(Some("")).read(&[request]).pop().expect("one");
    let saxpy = read(request(&first, "saxpy")).expect("read").access;
    let [kept] = bench.kept().try_into().expect("one file");
    let other = read(request(&second, "other")).expect("read").access;
    let forged = bench.kept().into_iter().find(|path| *path != kept).expect("another file");
    let (whole, forged) = (fs::read(&kept).expect("there"), fs::read(forged).expect("there"));
    assert_ne!(saxpy.name, other.name);

    let elsewhere = bench.0.path().join("elsewhere");
    fs::write(&elsewhere, &whole).expect("written");
    let tricks: [&dyn Fn(); 4] = [
        &|| fs::write(&kept, &forged).expect("written"),
        &|| std::os::unix::fs::symlink(&elsewhere, &kept).expect("made"),
        &|| {
            let owner = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, &kept, FileType::Fifo, owner, 0).expect("made");
        },
        &|| {
            fs::write(&kept, &whole).expect("written");
            fs::set_permissions(&kept, fs::Permissions::from_mode(0o660)).expect("set");
        },
    ];
    for (number, trick) in tricks.into_iter().enumerate() {
        fs::remove_file(&kept).expect("there");
        trick();
        let before = bench.runs();
        assert_eq!(read(request(&first, "saxpy")).expect("read").access, saxpy);
        assert_eq!(bench.runs(), before + 1, "trick {number}");
        assert_eq!(fs::read(&kept).expect("there"), whole, "a conclusion of ours, trick {number}");
        assert!(fs::symlink_metadata(&kept).expect("there").is_file());
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&kept, Some(4242), None).expect("given away");
        let before = bench.runs();
        assert_eq!(read(request(&first, "saxpy")).expect("read").access, saxpy);
        assert_eq!(bench.runs(), before + 1);
    }
}
