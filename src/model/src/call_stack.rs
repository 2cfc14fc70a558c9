//! Host stacks as a reader wants to see them: the program's own frames, without those of the
//! driver, of streamsan and of the start of a thread.
//!
//! The place of a frame's source or image tells whom the frame belongs to. Invariant: frames
//! without a source never count as the program's where other frames certainly do.

use crate::origin::{file_name, is_below_the_call, is_of_the_toolchain, is_system_image, origin};
use crate::{Entities, Finding, Fingerprint, Frame, FramePlace, Origin, SourceFrame, StackId};

/// Number of own frames that make a call site: enough to tell the callers of a helper apart.
const SITE: usize = 3;

/// A stack as reports show it, innermost first: one entry for each function of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallStack<'a> {
    pub frames: Vec<CallFrame<'a>>,
    /// Whether there are frames further out that were not recorded.
    pub truncated: bool,
}

/// One function of a shown stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallFrame<'a> {
    /// Path of the image and virtual address in it; `None` for functions of Python.
    pub image: Option<(&'a str, u64)>,
    /// The function and its line, where known.
    pub source: Option<&'a SourceFrame>,
    /// Whom the function belongs to.
    pub origin: Origin,
}

impl<'a> CallStack<'a> {
    /// Makes the shown stack of a trace's stack; `None` where no stack was recorded, or no frame of
    /// it is worth showing.
    pub fn of(entities: &'a Entities, id: Option<StackId>) -> Option<Self> {
        let stack = entities.stack(id?)?;
        let frames = stack.frames.iter().filter_map(|&id| entities.frame(id));
        let stack = Self::of_frames(frames.map(|frame| &**frame), stack.truncated);
        (!stack.frames.is_empty()).then_some(stack)
    }

    /// Makes the shown stack of frames, innermost first.
    pub fn of_frames(frames: impl IntoIterator<Item = &'a Frame>, truncated: bool) -> Self {
        let mut shown = Vec::new();
        for frame in frames {
            let image = match &frame.place {
                FramePlace::Native { image, offset, .. } => Some((&**image, *offset)),
                FramePlace::Python => None,
            };
            if shown.is_empty() && image.is_some_and(|(image, _)| is_below_the_call(image)) {
                continue;
            }
            if frame.source.is_empty() {
                shown.push(CallFrame { image, source: None, origin: Origin::Library });
            }
            shown.extend(frame.source.iter().map(|source| CallFrame {
                image,
                source: Some(source),
                origin: origin(image.map(|(image, _)| image), source),
            }));
        }
        let mut stack = Self { frames: shown, truncated };
        stack.own_the_nameless();
        stack.cut_the_start();
        stack
    }

    /// Gives functions of images that are not the system's to the program, where no frame has a
    /// file.
    fn own_the_nameless(&mut self) {
        if self.frames.iter().any(|frame| frame.origin == Origin::Program) {
            return;
        }
        for frame in &mut self.frames {
            let Some((image, _)) = frame.image else { continue };
            let function = frame.source.and_then(|source| source.function.as_deref());
            let has_file = frame.source.is_some_and(|source| source.file.is_some());
            if !has_file
                && function.is_some_and(|name| !is_of_the_toolchain(name))
                && !is_system_image(image)
            {
                frame.origin = Origin::Program;
            }
        }
    }

    /// Removes the frames that called the program: the C library's start, the interpreter's main
    /// loop.
    fn cut_the_start(&mut self) {
        let outermost = self.frames.iter().rposition(|frame| frame.origin == Origin::Program);
        match outermost {
            Some(outermost) => self.frames.truncate(outermost + 1),
            None => {
                while self.frames.last().is_some_and(CallFrame::starts_threads) {
                    self.frames.pop();
                }
            }
        }
    }

    /// The program's own frames, innermost first; for a Python program its Python frames.
    pub fn own(&self) -> impl Iterator<Item = &CallFrame<'a>> {
        let has_python = self.frames.iter().any(|f| f.is_own() && f.image.is_none());
        self.frames.iter().filter(move |f| f.is_own() && (!has_python || f.image.is_none()))
    }

    /// The place of the call: the innermost of the program's own frames.
    pub fn place(&self) -> Option<&CallFrame<'a>> {
        self.own().next()
    }

    /// The call site as fingerprints use it: the functions and file names of the innermost own
    /// frames. Lines are left out, because every edit above moves them; directories are left out,
    /// because they differ between checkouts. Empty where no frame is the program's.
    pub fn site(&self) -> String {
        let mut site = String::new();
        for source in self.own().filter_map(|frame| frame.source).take(SITE) {
            let file = source.file.as_deref().map_or("", file_name);
            site.push_str(source.function.as_deref().unwrap_or(""));
            site.push('@');
            site.push_str(file);
            site.push('\u{1e}');
        }
        site
    }
}

impl<'a> CallFrame<'a> {
    /// Whether the frame belongs to the program.
    pub fn is_own(&self) -> bool {
        self.origin == Origin::Program
    }

    /// The function's name, where it is known.
    pub fn function(&self) -> Option<&'a str> {
        self.source?.function.as_deref()
    }

    /// The source file, where there is one; `<string>` and the like are not files.
    pub fn file(&self) -> Option<&'a str> {
        self.source?.file.as_deref().filter(|file| !file.starts_with('<'))
    }

    /// The line in [`CallFrame::file`].
    pub fn line(&self) -> Option<u32> {
        self.source?.line
    }

    /// A line of text: `src/main.cc:88 in step`, `copy_ (libtorch_cuda.so)`, `libapp.so+0x1200`. A
    /// path below `directory` is printed relative to it.
    pub fn description(&self, directory: Option<&str>) -> String {
        let source = self.source;
        let function = source.and_then(|source| source.function.as_deref());
        let file = source.and_then(|source| source.file.as_deref());
        let file = file.map(|file| shown_path(file, directory));
        match (file, source.and_then(|source| source.line), function, self.image) {
            (Some(file), Some(line), Some(function), _) => format!("{file}:{line} in {function}"),
            (Some(file), Some(line), None, _) => format!("{file}:{line}"),
            (Some(file), None, Some(function), _) => format!("{file} in {function}"),
            (Some(file), None, None, _) => file,
            (None, _, Some(function), Some((image, _))) => {
                format!("{function} ({})", file_name(image))
            }
            (None, _, Some(function), None) => function.to_owned(),
            (None, _, None, Some(("", offset))) => format!("{offset:#x}"),
            (None, _, None, Some((image, offset))) => format!("{}+{offset:#x}", file_name(image)),
            (None, _, None, None) => "?".to_owned(),
        }
    }

    /// The C library's start of a program or a thread.
    fn starts_threads(&self) -> bool {
        let image = self.image.map_or("", |(image, _)| file_name(image));
        let is_libc = ["libc.so", "libc-2", "libpthread", "ld-linux", "ld-2"]
            .iter()
            .any(|name| image.starts_with(name));
        is_libc || self.function() == Some("_start")
    }
}

/// A path as reports show it: relative to `directory` if it lies below, without redundant `.` and
/// `..`.
pub fn shown_path(path: &str, directory: Option<&str>) -> String {
    let path = without_detours(path);
    let below = directory.filter(|directory| *directory != "/").and_then(|directory| {
        path.strip_prefix(directory.trim_end_matches('/'))?.strip_prefix('/')
    });
    below.map(str::to_owned).unwrap_or(path)
}

/// Removes redundant `.` and `..`: compilers join the directory in which they ran and the path that
/// they were given.
fn without_detours(path: &str) -> String {
    let is_detour = |part: &str| part == "." || part == "..";
    if path.starts_with('<') || !path.split('/').any(is_detour) {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty() && *last != "..") => {
                parts.pop();
            }
            ".." if parts == [""] => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

impl Fingerprint {
    /// The fingerprint of a mistake at these call sites; where no site is known the fingerprint
    /// does not change. The analysis does not know the sites: names of functions are looked up at
    /// the end of a run.
    pub fn at_sites(self, entities: &Entities, stacks: &[Option<StackId>]) -> Self {
        let site = |stack: &Option<StackId>| {
            CallStack::of(entities, *stack).map_or_else(String::new, |stack| stack.site())
        };
        let sites: Vec<String> = stacks.iter().map(site).collect();
        if sites.iter().all(String::is_empty) {
            return self;
        }
        let own = format!("{:016x}", self.0);
        Self::of(std::iter::once(own.as_str()).chain(sites.iter().map(String::as_str)))
    }
}

impl Finding {
    /// The fingerprint with the call sites of both accesses and of the allocation.
    pub fn fingerprint_at_sites(&self, entities: &Entities) -> Fingerprint {
        let allocation = entities.allocation(self.allocation).and_then(|a| a.stack);
        self.fingerprint.at_sites(entities, &[self.first.stack, self.second.stack, allocation])
    }
}

#[cfg(test)]
mod tests {
    use super::{CallStack, shown_path};
    use crate::{Frame, FrameId, FramePlace, SourceFrame};

    fn source(text: &str, inlined: bool) -> SourceFrame {
        let (function, file) = text.split_once('@').unwrap_or((text, ""));
        let (file, line) = file.rsplit_once(':').unwrap_or((file, ""));
        SourceFrame {
            function: (!function.is_empty()).then(|| function.into()),
            file: (!file.is_empty()).then(|| file.into()),
            line: line.parse().ok(),
            inlined,
        }
    }

    /// `py function@file:line`, or `image function@file:line` with `|` between inlined functions.
    fn frame(text: &str) -> Frame {
        let (image, sources) = text.split_once(' ').unwrap_or((text, ""));
        let sources: Vec<&str> = sources.split('|').filter(|text| !text.is_empty()).collect();
        let last = sources.len().saturating_sub(1);
        let source = sources.iter().enumerate().map(|(at, text)| source(text, at < last)).collect();
        let place = match image {
            "py" => FramePlace::Python,
            image => FramePlace::Native { image: image.into(), build_id: None, offset: 0x40 },
        };
        Frame { id: FrameId(0), place, source }
    }

    fn shown(frames: &[&str]) -> (Vec<String>, Option<String>) {
        let frames: Vec<Frame> = frames.iter().map(|text| frame(text)).collect();
        let stack = CallStack::of_frames(&frames, false);
        let place = stack.place().map(|frame| frame.description(None));
        let mark = |frame: &super::CallFrame<'_>| {
            let own = if frame.is_own() { "*" } else { "" };
            format!("{own}{}", frame.description(None))
        };
        (stack.frames.iter().map(mark).collect(), place)
    }

    #[test]
    fn the_place_is_the_programs_own() {
        let cases: &[(&[&str], &[&str], Option<&str>)] = &[
            // A kernel's stub, which nvcc writes into a file of its own.
            (
                &[
                    "/proj/app cudaLaunchKernel",
                    "/proj/app __device_stub__Z4FillPfi@/tmp/tmpxft_1_0-6_a.cudafe1.stub.c:13",
                    "/proj/app produce@/proj/a.cu:11",
                ],
                &[
                    "cudaLaunchKernel (app)",
                    "/tmp/tmpxft_1_0-6_a.cudafe1.stub.c:13 in __device_stub__Z4FillPfi",
                    "*/proj/a.cu:11 in produce",
                ],
                Some("/proj/a.cu:11 in produce"),
            ),
            // A program in C++ with the runtime linked statically.
            (
                &[
                    "/tmp/x/libstreamsan_runtime.so capture",
                    "/proj/app cudart::cudaApiLaunchKernel",
                    "/proj/app launch@/usr/local/cuda/include/cuda_runtime.h:90|refill@/proj/pool.cc:40",
                    "/proj/app step@/proj/main.cc:88",
                    "/lib/x86_64-linux-gnu/libc.so.6 __libc_start_main",
                    "/proj/app _start",
                ],
                &[
                    "cudart::cudaApiLaunchKernel (app)",
                    "/usr/local/cuda/include/cuda_runtime.h:90 in launch",
                    "*/proj/pool.cc:40 in refill",
                    "*/proj/main.cc:88 in step",
                ],
                Some("/proj/pool.cc:40 in refill"),
            ),
            // Python: installed packages and the interpreter are not the user's.
            (
                &[
                    "/v/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so at::copy_",
                    "py Tensor.to@/v/lib/python3.11/site-packages/torch/_tensor.py:9",
                    "py step@/proj/train.py:12",
                    "py <module>@/proj/train.py:31",
                    "/usr/bin/python3.11 Py_RunMain",
                    "/lib/x86_64-linux-gnu/libc.so.6",
                ],
                &[
                    "at::copy_ (libtorch_cuda.so)",
                    "/v/lib/python3.11/site-packages/torch/_tensor.py:9 in Tensor.to",
                    "*/proj/train.py:12 in step",
                    "*/proj/train.py:31 in <module>",
                ],
                Some("/proj/train.py:12 in step"),
            ),
            // An extension of the user's, called from a script of the user's.
            (
                &["/proj/ext.so run@/proj/ext.cc:5", "py step@train.py:12"],
                &["*/proj/ext.cc:5 in run", "*train.py:12 in step"],
                Some("train.py:12 in step"),
            ),
            // No debug information anywhere.
            (
                &[
                    "/proj/app cudaMemcpyAsync",
                    "/proj/app refill",
                    "/lib/libc.so.6",
                    "/proj/app _start",
                ],
                &["cudaMemcpyAsync (app)", "*refill (app)"],
                Some("refill (app)"),
            ),
            // Nothing is known of the program.
            (
                &["/proj/app", "/usr/lib/libx.so work", "/lib/libc.so.6 clone"],
                &["app+0x40", "work (libx.so)"],
                None,
            ),
            (
                &[
                    "/w/app go@/rustc/abc/library/std/src/rt.rs:1|add@/r/.cargo/registry/src/x/cudarc/a.rs:1",
                ],
                &[
                    "/rustc/abc/library/std/src/rt.rs:1 in go",
                    "/r/.cargo/registry/src/x/cudarc/a.rs:1 in add",
                ],
                None,
            ),
            (
                &["py f@<string>:1", "py g@<frozen runpy>:2"],
                &["*<string>:1 in f"],
                Some("<string>:1 in f"),
            ),
            (&["/usr/lib/libcuda.so.1 x", "/t/libstreamsan_runtime.so y"], &[], None),
        ];
        for (frames, expected, place) in cases {
            let (found, found_place) = shown(frames);
            assert_eq!(found, *expected);
            assert_eq!(found_place.as_deref(), *place);
        }
    }

    #[test]
    fn a_call_site_has_neither_lines_nor_directories() {
        let site = |file: &str, function: &str| {
            let frames = [frame(&format!("/proj/app {function}@{file}"))];
            CallStack::of_frames(&frames, false).site()
        };
        assert_eq!(site("/a/main.cc:12", "step"), site("/b/src/main.cc:90", "step"));
        assert_ne!(site("/a/main.cc:12", "step"), site("/a/main.cc:12", "run"));
        assert_ne!(site("/a/main.cc:12", "step"), site("/a/other.cc:12", "step"));
        assert_eq!(site("/usr/include/x.h:1", "step"), "");
    }

    #[test]
    fn paths_below_a_directory_are_relative_to_it() {
        for (path, directory, expected) in [
            ("/proj/a/b.cc", Some("/proj"), "a/b.cc"),
            ("/proj/a/b.cc", Some("/proj/"), "a/b.cc"),
            ("/projects/b.cc", Some("/proj"), "/projects/b.cc"),
            ("/proj/b.cc", Some("/"), "/proj/b.cc"),
            ("/proj/b.cc", None, "/proj/b.cc"),
            ("b.cc", Some("/proj"), "b.cc"),
            ("/proj/build/../src/./b.cc", Some("/proj"), "src/b.cc"),
            ("/../proj/b.cc", Some("/proj"), "b.cc"),
            ("./b.cc", None, "b.cc"),
            ("../b.cc", None, "../b.cc"),
            ("<string>", Some("/proj"), "<string>"),
        ] {
            assert_eq!(shown_path(path, directory), expected);
        }
    }
}
