//! The thread that reads the trace: keys in bursts, interrupts, and the end.

use crate::driver::parse;
use crate::trace::{self, Shape};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use streamsan_tui::State;
use streamsan_tui::query::{Answer, Numbered, Source, Worker};

/// Nothing takes that long but a deadlock.
const DEADLOCK: Duration = Duration::from_secs(120);

fn hand_over(state: &mut State, worker: &Worker) {
    state.take_requests().into_iter().for_each(|request| worker.ask(request));
}

fn settle(state: &mut State, worker: &Worker, answers: &Receiver<Numbered<Answer>>) {
    hand_over(state, worker);
    while state.is_busy() {
        let answer = answers.recv_timeout(DEADLOCK).expect("an answer comes");
        state.receive(answer);
        hand_over(state, worker);
    }
}

#[test]
fn bursts_of_keys_end_in_what_the_screen_shows() {
    let folder = tempfile::tempdir().unwrap();
    let reader = trace::write(folder.path(), Shape { rounds: 3000, ..Shape::default() });
    let (sender, answers) = channel();
    let explain = Box::new(|finding: &streamsan_model::Finding| finding.fingerprint.to_string());
    let source = Source { query: Box::new(reader), explain };
    let worker = Worker::start(vec![source], move |answer| sender.send(answer).is_ok()).unwrap();
    let mut state = State::new("burst", (120, 40));
    settle(&mut state, &worker, &answers);
    let bursts = [
        "wwwwssddaadd",
        "rrrrrrrrr",
        "llllhhlllljjjkkk",
        "xwwwwxsssx",
        "3<enter><enter>jjkk<esc><esc>",
        "/memcpy<enter>nnnnNN",
        "4125",
        "gG^$^$0ww",
        "RRRRoooo5rrr",
    ];
    for round in 0..10 {
        for burst in bursts {
            for key in parse(burst) {
                state.key(key);
                hand_over(&mut state, &worker);
                // Some answers come between the keys, some later.
                if round % 2 == 0 {
                    answers.try_iter().for_each(|answer| state.receive(answer));
                    hand_over(&mut state, &worker);
                }
            }
        }
        settle(&mut state, &worker, &answers);
        assert_eq!(state.strips.grid, state.view().map(|view| view.grid()));
        let message = state.message.as_ref().filter(|message| message.error);
        assert!(message.is_none(), "{message:?}");
        assert!(state.selection.is_some());
        let (place, words) = state.explanation.as_ref().unwrap();
        let finding = &state.open.as_ref().unwrap().of(0).findings[*place];
        assert_eq!(*words, finding.fingerprint.to_string());
        assert_eq!(Some(*place), state.finding);
    }
    // It ends while it has work to do.
    for key in parse("0wwwwR3<enter><enter>") {
        state.key(key);
        hand_over(&mut state, &worker);
    }
    drop(worker);
}
