//! A terminal for what draws on one: tmux presses keys and reads the screen.

use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// How long a screen may take; a machine that is busy takes long.
const PATIENCE: Duration = Duration::from_secs(600);

/// A tmux server of its own, ended with the test.
#[derive(Debug)]
pub struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs `script` in a shell, in a terminal of so many columns and rows. `name` is the test's
    /// own. `tmux` is the command with the directory and the environment that the shell begins in.
    ///
    /// # Panics
    /// Where there is no tmux.
    pub fn start(name: &str, (columns, rows): (u32, u32), tmux: Command, script: &str) -> Self {
        let terminal = Self { socket: format!("streamsan-test-{}-{name}", std::process::id()) };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let size = ["-x", &columns, "-y", &rows];
        let session = [&["-f", "/dev/null", "new-session", "-d"], &size[..], &["sh", "-c", script]];
        let started = terminal.send(tmux, &session.concat());
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        terminal
    }

    fn send(&self, mut tmux: Command, arguments: &[&str]) -> Output {
        tmux.args(["-L", &self.socket]).args(arguments).env_remove("TMUX");
        tmux.output().expect("tmux is installed")
    }

    /// Any command of tmux.
    pub fn tmux(&self, arguments: &[&str]) -> Output {
        self.send(Command::new("tmux"), arguments)
    }

    /// The screen, and above it what has scrolled off.
    pub fn screen(&self) -> String {
        let output = self.tmux(&["capture-pane", "-p", "-S", "-2000"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until the screen fits, and answers it. `what` names it where it never comes.
    ///
    /// # Panics
    /// When no such screen comes.
    #[track_caller]
    pub fn until(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let screen = self.screen();
            if fits(&screen) {
                return screen;
            }
            assert!(begin.elapsed() < PATIENCE, "{what} never came:\n{screen}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    pub fn shows(&self, text: &str) -> String {
        self.shows_all(&[text])
    }

    /// All on one screen, which may be half drawn before.
    #[track_caller]
    pub fn shows_all(&self, texts: &[&str]) -> String {
        let all = |screen: &str| texts.iter().all(|text| screen.contains(text));
        self.until(&texts.join(" and "), all)
    }

    /// The screen is the shell's again: no alternate screen, no mouse, a cursor.
    #[track_caller]
    pub fn is_a_shells(&self) {
        let modes = "#{alternate_on} #{mouse_any_flag} #{cursor_flag}";
        self.until("the modes of a shell", |_| {
            let modes = self.tmux(&["display-message", "-p", modes]);
            String::from_utf8_lossy(&modes.stdout).trim() == "0 0 1"
        });
    }

    /// Presses keys, by tmux's names.
    ///
    /// # Panics
    /// When tmux refuses a key.
    #[track_caller]
    pub fn keys(&self, keys: &[&str]) {
        assert!(self.tmux(&[&["send-keys"], keys].concat()).status.success());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
