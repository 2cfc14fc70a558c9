//! The loop: events and answers in, frames out.

use crate::editor::{self, Editor};
use crate::live::Run;
use crate::query::{Answer, Numbered, Source, Worker};
use crate::scene::Scene;
use crate::state::{Changes, Effect, Label, SourceLine};
use crate::{IsKnownUpstream, Pair, State, Theme, view};
use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, DisableMouseCapture, EnableMouseCapture, Event, KeyEventKind};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks at a run that goes on.
const LOOK: Duration = Duration::from_millis(150);
/// The longest that a change of size waits to be seen.
const KEY_WAIT: Duration = Duration::from_millis(50);
/// Between two looks at whether the reader of the terminal has ended.
const LEAVING: Duration = Duration::from_millis(2);

/// The messages that the loop waits for.
enum AppMessage {
    Event(io::Result<Event>),
    /// Of the worker of a side.
    Answer(usize, Numbered<Answer>),
}

/// A worker whose answers are messages of the loop.
fn worker(sources: Vec<Source>, side: usize, messages: &Sender<AppMessage>) -> io::Result<Worker> {
    let messages = messages.clone();
    Worker::start(sources, move |answer| messages.send(AppMessage::Answer(side, answer)).is_ok())
}

/// A trace to show.
#[derive(Debug)]
pub struct Trace {
    /// The trace.
    pub source: Source,
    /// What it is called.
    pub label: Label,
}

/// What to show, and how.
pub struct Viewer {
    /// The traces, at least one.
    pub traces: Vec<Trace>,
    /// The clock by which several traces are aligned, in words.
    pub clock: String,
    /// Which races do not count.
    pub is_known_upstream: IsKnownUpstream,
    /// Colours and glyphs.
    pub theme: Theme,
    /// A finding to begin with, by its id in reports.
    pub race: Option<String>,
    /// Panic once this many frames are drawn: for the test that the terminal is restored then.
    pub panic_after: Option<u32>,
    /// The run, while it goes on.
    pub run: Option<Arc<dyn Run>>,
}

impl std::fmt::Debug for Viewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Viewer").field("traces", &self.traces).finish_non_exhaustive()
    }
}

/// The terminal in the viewer's modes. Restored when this ends, also by a panic.
struct TerminalScreen {
    /// Never dropped: the drop would report a lost terminal on a standard error that may be lost
    /// too, which is a panic.
    terminal: ManuallyDrop<ratatui::DefaultTerminal>,
}

impl TerminalScreen {
    /// Gives the terminal to another program until it ends, and takes it back.
    fn lend(&mut self, borrower: impl FnOnce()) -> io::Result<()> {
        execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen, Show)?;
        disable_raw_mode()?;
        borrower();
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        // Nothing of what was drawn is there any more.
        self.terminal.clear()
    }

    fn enter() -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        // The hook that is there now leaves the alternate screen, but knows nothing of the mouse.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // A frame that another thread draws must not come between the words of the panic.
            let drawn = !IS_DRAWING.get();
            let _drawn = drawn.then(|| DRAWING.lock().unwrap_or_else(PoisonError::into_inner));
            let _ = execute!(io::stdout(), DisableMouseCapture);
            hook(panic);
            IS_RESTORED.store(true, Ordering::Release);
        }));
        IS_RESTORED.store(false, Ordering::Release);
        let screen = Self { terminal: ManuallyDrop::new(terminal) };
        execute!(io::stdout(), EnableMouseCapture)?;
        Ok(screen)
    }
}

/// Held while a frame is drawn, and while the panic hook restores the terminal and prints.
static DRAWING: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread draws a frame.
    static IS_DRAWING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the panic hook has restored the terminal. A second restoration would put the cursor back
/// to its place before the viewer, over the text printed since.
static IS_RESTORED: AtomicBool = AtomicBool::new(false);

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        let _ = self.terminal.show_cursor();
        if IS_RESTORED.swap(true, Ordering::AcqRel) {
            return;
        }
        // A lost terminal cannot be restored.
        let _ = execute!(io::stdout(), DisableMouseCapture);
        let _ = ratatui::try_restore();
    }
}

/// Shows a trace until the user leaves.
///
/// # Errors
///
/// Errors of the terminal. A trace that cannot be read is reported on the screen.
pub fn run(viewer: Viewer) -> io::Result<()> {
    let (sender, messages) = channel();
    let (sources, labels) =
        viewer.traces.into_iter().map(|trace| (trace.source, trace.label)).unzip();
    let workers = [worker(sources, 0, &sender)?];
    let scene = |size| {
        let mut state = State::of_traces(labels, size);
        state.clock = viewer.clock;
        state.is_known_upstream = Some(viewer.is_known_upstream);
        if let Some(race) = viewer.race {
            state.start_at(race);
        }
        if viewer.run.is_some() {
            state.begin_live();
        }
        Scene::One(Box::new(state))
    };
    let run = viewer.run.as_deref();
    show(&workers, (sender, &messages), scene, (viewer.theme, viewer.panic_after), run)
}

/// Shows two traces beside each other, and what became of their findings, until the user leaves.
///
/// # Errors
///
/// As [`run`].
pub fn run_pair(viewer: Viewer, changes: Changes) -> io::Result<()> {
    let two: Result<[Trace; 2], _> = viewer.traces.try_into();
    let Ok([before, after]) = two else {
        return Err(io::Error::other("two traces are shown beside each other"));
    };
    let (sender, messages) = channel();
    let workers =
        [worker(vec![before.source], 0, &sender)?, worker(vec![after.source], 1, &sender)?];
    let scene = |size| {
        let mut pair = Pair::new([before.label, after.label], changes, size);
        for state in &mut pair.sides {
            state.is_known_upstream = Some(viewer.is_known_upstream);
        }
        Scene::Two(Box::new(pair))
    };
    show(&workers, (sender, &messages), scene, (viewer.theme, viewer.panic_after), None)
}

fn show(
    workers: &[Worker],
    (sender, messages): (Sender<AppMessage>, &Receiver<AppMessage>),
    scene: impl FnOnce((u16, u16)) -> Scene,
    (theme, panic_after): (Theme, Option<u32>),
    run: Option<&dyn Run>,
) -> io::Result<()> {
    let mut screen = TerminalScreen::enter()?;
    // Ends before the terminal is restored: later input is not the viewer's.
    let keyboard = Keyboard { reader: Some(TerminalReader::start(sender.clone())?), sender };
    let size = screen.terminal.size()?;
    let mut scene = scene((size.width, size.height));
    let mut turns =
        Turns { workers, messages, theme, run, panic_after, screen: &mut screen, keyboard };
    let result = turns.turn(&mut scene);
    drop(turns);
    drop(screen);
    result
}

/// The user's input, which another program may have for a while.
struct Keyboard {
    sender: Sender<AppMessage>,
    reader: Option<TerminalReader>,
}

/// The thread that passes on the user's input.
struct TerminalReader {
    left: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TerminalReader {
    fn start(events: Sender<AppMessage>) -> io::Result<Self> {
        let left = Arc::new(AtomicBool::new(false));
        let shared = left.clone();
        let thread = std::thread::Builder::new()
            .name("terminal reader".to_owned())
            .spawn(move || read_terminal(&events, &shared))?;
        Ok(Self { left, thread: Some(thread) })
    }
}

impl Drop for TerminalReader {
    fn drop(&mut self) {
        self.left.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        while !thread.is_finished() {
            // A terminal that goes between the look at it and the reading holds the thread for ever:
            // nothing is typed there any more, and the thread ends with the process.
            if wait_for_input(LEAVING).is_err() {
                return;
            }
            std::thread::sleep(LEAVING);
        }
        // A panic of it was told by the panic hook.
        let _ = thread.join();
    }
}

/// Passes on the user's input, until the viewer is left or the terminal is lost.
fn read_terminal(events: &Sender<AppMessage>, left: &AtomicBool) {
    while !left.load(Ordering::Acquire) {
        let waited = wait_for_input(KEY_WAIT);
        let failed = waited.is_err();
        let sent = match waited {
            Ok(()) => hand_on(events),
            Err(error) => events.send(AppMessage::Event(Err(error))).is_ok(),
        };
        if failed || !sent {
            return;
        }
    }
}

/// Hands on all that has come: one reading may have given several keys, and a change of size is a
/// signal, which is only seen by looking for it. Whether there may be more.
fn hand_on(events: &Sender<AppMessage>) -> bool {
    loop {
        let event = match event::poll(Duration::ZERO) {
            Ok(false) => return true,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let failed = event.is_err();
        if events.send(AppMessage::Event(event)).is_err() || failed {
            return false;
        }
    }
}

/// Waits for a key, for less than a second. A lost terminal (its window was closed, the connection
/// broke) has to be noticed here: crossterm reads from such a terminal for ever.
fn wait_for_input(wait: Duration) -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    let other;
    // As crossterm chooses.
    let input = if stdin.is_terminal() {
        stdin
    } else {
        other = File::open("/dev/tty")?;
        other.as_fd()
    };
    let mut polled = [PollFd::new(&input, PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
    match rustix::event::poll(&mut polled, Some(&wait)) {
        // A signal came.
        Err(Errno::INTR) => return Ok(()),
        outcome => outcome?,
    };
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    if polled[0].revents().intersects(gone) {
        return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the terminal is gone"));
    }
    Ok(())
}

/// Everything that the loop has to do with, but the state.
struct Turns<'a> {
    workers: &'a [Worker],
    messages: &'a Receiver<AppMessage>,
    theme: Theme,
    run: Option<&'a dyn Run>,
    panic_after: Option<u32>,
    screen: &'a mut TerminalScreen,
    keyboard: Keyboard,
}

impl Turns<'_> {
    fn turn(&mut self, scene: &mut Scene) -> io::Result<()> {
        let mut looked: Option<Instant> = None;
        for frame in 1.. {
            if let Some(run) = self.run
                && looked.is_none_or(|last| last.elapsed() >= LOOK)
            {
                looked = Some(Instant::now());
                scene.front_mut().look(run.standing(), || run.output());
            }
            for (side, request) in scene.take_requests() {
                self.workers[side].ask(request);
            }
            for effect in scene.take_effects() {
                self.carry_out(effect, scene)?;
            }
            if scene.quit() {
                return Ok(());
            }
            self.draw(scene)?;
            assert!(self.panic_after != Some(frame), "a panic was asked for");
            // Everything that has come since the last frame goes into the next one.
            let first = match self.run {
                Some(_) => self.messages.recv_timeout(LOOK),
                None => self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let first = match first {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            for message in first.into_iter().chain(self.messages.try_iter()) {
                match message {
                    AppMessage::Answer(_, Numbered { value: Answer::Broken, .. }) => {
                        return Err(io::Error::other("the thread that reads the trace failed"));
                    }
                    AppMessage::Answer(side, answer) => scene.receive(side, answer),
                    AppMessage::Event(event) => match event? {
                        Event::Key(key) if key.kind != KeyEventKind::Release => scene.key(key),
                        Event::Mouse(mouse) => scene.mouse(mouse),
                        Event::Resize(width, height) => scene.resize(width, height),
                        _ => {}
                    },
                }
            }
        }
        Ok(())
    }

    /// Draws a frame, unless a panic has taken the screen away.
    fn draw(&mut self, scene: &Scene) -> io::Result<()> {
        let _drawing = DRAWING.lock().unwrap_or_else(PoisonError::into_inner);
        if IS_RESTORED.load(Ordering::Acquire) {
            return Ok(());
        }
        IS_DRAWING.set(true);
        let theme = self.theme;
        let drawn = self.screen.terminal.draw(|frame| {
            let area = frame.area();
            scene.draw(theme, area, frame.buffer_mut());
        });
        IS_DRAWING.set(false);
        drawn.map(drop)
    }

    fn carry_out(&mut self, effect: Effect, scene: &mut Scene) -> io::Result<()> {
        match effect {
            Effect::Copy => {
                let text = view::selected_text(scene.front());
                execute!(io::stdout(), CopyToClipboard::to_clipboard_from(&text))?;
                let count = text.chars().count();
                scene.front_mut().tell(format!("copied {count} characters"));
            }
            Effect::Mouse(true) => execute!(io::stdout(), EnableMouseCapture)?,
            Effect::Mouse(false) => execute!(io::stdout(), DisableMouseCapture)?,
            Effect::Interrupt => {
                if let Some(run) = self.run {
                    run.interrupt();
                }
            }
            Effect::Edit(place) => self.edit(&place, scene)?,
        }
        Ok(())
    }

    /// Lends the terminal to the user's editor.
    fn edit(&mut self, place: &SourceLine, scene: &mut Scene) -> io::Result<()> {
        let editor = match Editor::at(place) {
            Ok(editor) => editor,
            Err(error) => {
                scene.front_mut().fail(error.to_string());
                return Ok(());
            }
        };
        // A run that goes on has handlers of its own.
        let interrupted = Arc::new(AtomicBool::new(false));
        if self.run.is_none() {
            // Ctrl-C in the editor is the editor's.
            flag::register_conditional_default(SIGINT, interrupted.clone())?;
        }
        self.keyboard.reader = None;
        let mut result = Ok(());
        self.screen.lend(|| result = editor.run())?;
        self.keyboard.reader = Some(TerminalReader::start(self.keyboard.sender.clone())?);
        interrupted.store(true, Ordering::Release);
        if scene.front().mouse {
            execute!(io::stdout(), EnableMouseCapture)?;
        }
        let size = self.screen.terminal.size()?;
        scene.resize(size.width, size.height);
        match result {
            Ok(()) => scene.front_mut().tell(editor::told(place)),
            Err(error) => scene.front_mut().fail(error.to_string()),
        }
        Ok(())
    }
}
