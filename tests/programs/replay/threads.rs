//! Lines to host threads, in lock step.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use streamsan_model::{Operation, ThreadId};

use crate::Refusal;
use crate::machine::Machine;

/// Performs all operations: those of the thread that is named first here, the others each on a
/// thread of its own. Then waits for all work.
pub(crate) fn perform<'a>(
    machine: Machine,
    operations: impl Iterator<Item = &'a Operation>,
) -> Result<(), Refusal> {
    let machine = Mutex::new(machine);
    let perform = |operation: &Operation| {
        let mut machine = machine.lock().map_err(|_| Refusal::new("a thread has panicked"))?;
        machine.perform(operation).map_err(|refusal| refusal.at(operation))
    };
    let perform = &perform;
    thread::scope(|scope| {
        let mut own = None;
        let mut others: HashMap<ThreadId, Sender<&Operation>> = HashMap::new();
        let (answer, answers) = channel();
        for operation in operations {
            if *own.get_or_insert(operation.thread) == operation.thread {
                perform(operation)?;
                continue;
            }
            let other = others.entry(operation.thread).or_insert_with(|| {
                let (line, lines) = channel();
                let answer = answer.clone();
                scope.spawn(move || {
                    for operation in lines {
                        // Nobody listens any more once another line has failed.
                        let _ = answer.send(perform(operation));
                    }
                });
                line
            });
            let gone = || Refusal::new("a thread has ended early").at(operation);
            other.send(operation).map_err(|_| gone())?;
            answers.recv().map_err(|_| gone())??;
        }
        Ok(())
    })?;
    let mut machine = machine.into_inner().map_err(|_| Refusal::new("a thread has panicked"))?;
    machine.finish()
}
