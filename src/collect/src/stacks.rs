//! Host stacks: from the keys and addresses of each process to frames and stacks of the trace, each
//! once.
//!
//! Keys and numbers of objects belong to a process; the frames that they lead to are told apart by
//! their contents, so that the processes of a run share them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use streamsan_model::{Entity, Frame, FrameId, FramePlace, SourceFrame, Stack, StackId, TraceItem};
use streamsan_symbols::Symbolizer;
use streamsan_wire::{LoadedObject, ProcessKey, StackFrame, StackFrames};

/// Stacks of a trace at most; calls with others have none. Programs have thousands.
const MOST_STACKS: usize = 1 << 18;

#[derive(Debug)]
struct Object {
    image: Arc<str>,
    build_id: Option<Arc<[u8]>>,
}

/// The stacks of a run.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    objects: HashMap<(ProcessKey, u32), Object>,
    keys: HashMap<(ProcessKey, u64), StackId>,
    /// By place, and for Python by function.
    known: HashMap<(FramePlace, Option<SourceFrame>), FrameId>,
    frames: Vec<Arc<Frame>>,
    stacks: HashMap<(Box<[FrameId]>, bool), StackId>,
    texts: HashSet<Arc<str>>,
    /// Stacks beyond [`MOST_STACKS`].
    left_out: u64,
}

impl Stacks {
    /// The stack that the key of a call stands for.
    pub(crate) fn id(&self, process: ProcessKey, key: u64) -> Option<StackId> {
        if key == 0 { None } else { self.keys.get(&(process, key)).copied() }
    }

    /// How many stacks were left out.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Frames point to an object by this number from now on.
    pub(crate) fn object(&mut self, process: ProcessKey, object: &LoadedObject<'_>) {
        let image = self.text(object.path);
        let build_id = (!object.build_id.is_empty()).then(|| object.build_id.into());
        self.objects.insert((process, object.number), Object { image, build_id });
    }

    /// Calls name a stack by this key from now on. What is new goes to `items`.
    pub(crate) fn stack(
        &mut self,
        process: ProcessKey,
        key: u64,
        truncated: bool,
        frames: StackFrames<'_>,
        items: &mut Vec<TraceItem>,
    ) {
        if self.keys.contains_key(&(process, key)) {
            return;
        }
        let frames: Box<[FrameId]> =
            frames.iter().map(|frame| self.frame(process, &frame, items)).collect();
        if frames.is_empty() {
            return;
        }
        let next = self.stacks.len();
        let id = match self.stacks.get(&(frames.clone(), truncated)) {
            Some(&id) => id,
            None if next == MOST_STACKS => {
                self.left_out += 1;
                return;
            }
            None => {
                let id = StackId(next as u32);
                let stack = Stack { id, frames: frames.to_vec(), truncated };
                items.push(TraceItem::Entity(Entity::Stack(Arc::new(stack))));
                self.stacks.insert((frames, truncated), id);
                id
            }
        };
        self.keys.insert((process, key), id);
    }

    fn frame(
        &mut self,
        process: ProcessKey,
        frame: &StackFrame<'_>,
        items: &mut Vec<TraceItem>,
    ) -> FrameId {
        let (place, source) = match *frame {
            StackFrame::Native { object, offset } => {
                let known = self.objects.get(&(process, object));
                let (image, build_id) = match known {
                    Some(object) => (Arc::clone(&object.image), object.build_id.clone()),
                    None => (self.text(b""), None),
                };
                (FramePlace::Native { image, build_id, offset }, None)
            }
            StackFrame::Python { file, function, line } => {
                let source = SourceFrame {
                    function: Some(self.text(function)),
                    file: Some(self.text(file)),
                    line: (line != 0).then_some(line),
                    inlined: false,
                };
                (FramePlace::Python, Some(source))
            }
        };
        if let Some(&id) = self.known.get(&(place.clone(), source.clone())) {
            return id;
        }
        let id = FrameId(self.frames.len() as u32);
        let source_frames = source.iter().cloned().collect();
        let frame = Arc::new(Frame { id, place: place.clone(), source: source_frames });
        self.known.insert((place, source), id);
        self.frames.push(Arc::clone(&frame));
        items.push(TraceItem::Entity(Entity::Frame(frame)));
        id
    }

    /// One copy of each text.
    fn text(&mut self, bytes: &[u8]) -> Arc<str> {
        let text = String::from_utf8_lossy(bytes);
        if let Some(known) = self.texts.get(&*text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&text));
        text
    }

    /// Looks up what native frames are in the source, for at most so long, and declares them anew.
    /// `stopped` is told how many frames are left and says whether the user wants no more. Answers how many there was no time for, and the images whose DWARF is too large.
    pub(crate) fn symbolize(
        &self,
        patience: Duration,
        stopped: &mut dyn FnMut(usize) -> bool,
        items: &mut Vec<TraceItem>,
    ) -> (u64, Vec<PathBuf>) {
        let end = Instant::now() + patience;
        let mut symbolizer = Symbolizer::new();
        let (mut skipped, mut is_over) = (0, false);
        for (at, frame) in self.frames.iter().enumerate() {
            let FramePlace::Native { image, build_id, offset } = &frame.place else { continue };
            if image.is_empty() {
                continue;
            }
            is_over = is_over || Instant::now() >= end || stopped(self.frames.len() - at);
            if is_over {
                skipped += 1;
                continue;
            }
            let source = symbolizer.source(Path::new(&**image), build_id.as_deref(), *offset);
            if !source.is_empty() {
                let frame = Frame { source, ..(**frame).clone() };
                items.push(TraceItem::Entity(Entity::Frame(Arc::new(frame))));
            }
        }
        (skipped, symbolizer.too_large().into_iter().map(Path::to_owned).collect())
    }

    /// Whether there is anything to look up.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(
        stacks: &mut Stacks,
        (process, key): (u32, u64),
        truncated: bool,
        frames: &[StackFrame<'_>],
    ) -> (Option<StackId>, usize) {
        let mut items = Vec::new();
        let bytes = StackFrame::written(frames);
        let frames = StackFrames::new(&bytes);
        stacks.stack(ProcessKey(process), key, truncated, frames, &mut items);
        (stacks.id(ProcessKey(process), key), items.len())
    }

    fn load(stacks: &mut Stacks, process: u32, number: u32, path: &[u8]) {
        stacks.object(ProcessKey(process), &LoadedObject { number, build_id: &[7], path });
    }

    #[test]
    fn processes_share_frames_and_not_numbers() {
        let mut stacks = Stacks::default();
        load(&mut stacks, 0, 1, b"/bin/a");
        load(&mut stacks, 1, 1, b"/bin/b");
        load(&mut stacks, 1, 2, b"/bin/a");
        let frame = |object, offset| StackFrame::Native { object, offset };
        let python = StackFrame::Python { file: b"x.py", function: b"f", line: 3 };
        // Two frames and the stack.
        assert_eq!(add(&mut stacks, (0, 5), false, &[frame(1, 16), python]), (Some(StackId(0)), 3));
        // The same again in the other process, by other numbers.
        assert_eq!(add(&mut stacks, (1, 9), false, &[frame(2, 16), python]), (Some(StackId(0)), 0));
        // The same key, another program.
        assert_eq!(add(&mut stacks, (1, 5), false, &[frame(1, 16), python]), (Some(StackId(1)), 2));
        // Cut is another stack; another line another frame.
        assert_eq!(add(&mut stacks, (1, 6), true, &[frame(1, 16), python]), (Some(StackId(2)), 1));
        let later = StackFrame::Python { file: b"x.py", function: b"f", line: 4 };
        assert_eq!(add(&mut stacks, (1, 7), false, &[later]), (Some(StackId(3)), 2));
        // Told again.
        assert_eq!(add(&mut stacks, (1, 7), false, &[python]), (Some(StackId(3)), 0));
        assert_eq!(add(&mut stacks, (1, 8), false, &[]), (None, 0));
        assert_eq!(stacks.id(ProcessKey(0), 0), None);
    }

    #[test]
    fn native_frames_are_looked_up_where_their_image_is_there() {
        let mut stacks = Stacks::default();
        load(&mut stacks, 0, 1, b"/nowhere/libgone.so");
        add(&mut stacks, (0, 1), false, &[StackFrame::Native { object: 1, offset: 16 }]);
        let mut items = Vec::new();
        let long = Duration::from_secs(60);
        assert_eq!(stacks.symbolize(long, &mut |_| false, &mut items), (0, vec![]));
        assert_eq!(items, []);
        // No time at all, and a user who does not want to wait.
        assert_eq!(stacks.symbolize(Duration::ZERO, &mut |_| false, &mut items), (1, vec![]));
        assert_eq!(stacks.symbolize(long, &mut |left| left == 1, &mut items), (1, vec![]));
    }
}
