//! Verbs that signal and wait: stream memory operations, external semaphores, host threads.

use crate::SyntaxError;
use crate::cursor::AND;
use crate::operand;
use crate::token::Token;
use crate::verb::{Call, Issue};
use std::sync::Arc;
use streamsan_model::{
    Access, Action, Basis, ByteRange, Extent, Mode, SignalObject, SignalOperation, Signals,
    ValueCompare,
};

/// Width in bytes of a word that is named by its buffer alone.
const WORD: u64 = 4;

/// The parts of a call that signals or waits.
pub(crate) struct Parts {
    pub(crate) operations: Vec<SignalOperation>,
    pub(crate) accesses: Vec<Access>,
}

/// `write_value S V`, `wait_value S V`, `signal S SEM`, `wait_signal S SEM`.
pub(crate) fn signals(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let stream = issue.next_stream()?;
    let verb = issue.verb.text;
    let Parts { operations, accesses } = parts(issue, verb)?;
    let api = api(&operations).to_owned();
    let action = Action::Signals(Arc::new(Signals { stream, operations }));
    Ok(Call { api, action, accesses })
}

/// The usual entry point of signals and waits.
pub(crate) fn api(operations: &[SignalOperation]) -> &'static str {
    let is_wide = |object: &SignalObject| matches!(object, SignalObject::Memory { width: 8, .. });
    let [operation] = operations else { return "cuStreamBatchMemOp_v2" };
    match operation {
        SignalOperation::Signal { object: SignalObject::Semaphore(_), .. } => {
            "cuSignalExternalSemaphoresAsync"
        }
        SignalOperation::Wait { object: SignalObject::Semaphore(_), .. } => {
            "cuWaitExternalSemaphoresAsync"
        }
        SignalOperation::Signal { object, .. } if is_wide(object) => "cuStreamWriteValue64_v2",
        SignalOperation::Signal { .. } => "cuStreamWriteValue32_v2",
        SignalOperation::Wait { object, .. } if is_wide(object) => "cuStreamWaitValue64_v2",
        SignalOperation::Wait { .. } => "cuStreamWaitValue32_v2",
    }
}

/// The words behind the stream: those of `verb`, and behind each `&` another verb with its own.
pub(crate) fn parts(issue: &mut Issue<'_, '_>, verb: &str) -> Result<Parts, SyntaxError> {
    const FORM: &str = "`write_value`, `wait_value`, `signal` or `wait_signal`";
    let (operation, accesses) = signal(issue, verb)?;
    let mut parts = Parts { operations: vec![operation], accesses };
    while issue.cursor.peek().is_some_and(|word| word.text == AND) {
        issue.cursor.take();
        let word = issue.cursor.next(FORM)?;
        if !matches!(word.text, "write_value" | "wait_value" | "signal" | "wait_signal") {
            return Err(word.expected(FORM));
        }
        let (operation, accesses) = signal(issue, word.text)?;
        parts.operations.push(operation);
        for access in accesses {
            // One word may be used several times.
            if !parts.accesses.contains(&access) {
                parts.accesses.push(access);
            }
        }
    }
    Ok(parts)
}

/// `V[=N]` or `SEM[=N]`, and what belongs to `verb`.
fn signal(
    issue: &mut Issue<'_, '_>,
    verb: &str,
) -> Result<(SignalOperation, Vec<Access>), SyntaxError> {
    let of_memory = matches!(verb, "write_value" | "wait_value");
    let what = if of_memory { "a buffer" } else { "a semaphore" };
    let token = issue.cursor.next(what)?;
    let (name, value) = match token.split_once('=') {
        Some((name, value)) => (name, value.number("a value as a decimal number")?),
        None => (token, 1),
    };
    let (object, accesses) = if of_memory {
        let (object, access) = word(issue, name)?;
        (object, vec![access])
    } else {
        (SignalObject::Semaphore(issue.scope.semaphore(name)?), Vec::new())
    };
    let operation = match verb {
        "write_value" => {
            let releases = !issue.cursor.flag("no_barrier");
            SignalOperation::Signal { object, value, releases }
        }
        "signal" => SignalOperation::Signal { object, value, releases: true },
        "wait_value" => SignalOperation::Wait { object, value, compare: compare(issue) },
        _ => SignalOperation::Wait { object, value, compare: ValueCompare::GreaterOrEqual },
    };
    Ok((operation, accesses))
}

fn compare(issue: &mut Issue<'_, '_>) -> ValueCompare {
    for (word, compare) in COMPARISONS {
        if issue.cursor.flag(word) {
            return compare;
        }
    }
    ValueCompare::default()
}

/// The words of comparisons.
pub(crate) const COMPARISONS: [(&str, ValueCompare); 4] = [
    ("geq", ValueCompare::GreaterOrEqual),
    ("eq", ValueCompare::Equal),
    ("and", ValueCompare::And),
    ("nor", ValueCompare::Nor),
];

/// The word that `token` names: the first four bytes of a buffer, or the four or eight bytes that
/// are written down.
fn word(
    issue: &mut Issue<'_, '_>,
    token: Token<'_>,
) -> Result<(SignalObject, Access), SyntaxError> {
    let region = operand::region(issue.scope, token)?;
    let range = match region.extent {
        Some(Extent::Range(range)) if region.explicit && matches!(range.len(), 4 | 8) => range,
        Some(Extent::Range(range)) if !region.explicit && range.len() >= WORD => {
            ByteRange::with_len(range.start, WORD)
        }
        _ => return Err(token.error("expected a word of 4 or 8 bytes")),
    };
    let allocation = region.allocation;
    // A checked length fits.
    let width = range.len() as u8;
    let extent = Extent::Range(range);
    let access = Access { allocation, extent, mode: Mode::Atomic, basis: Basis::Exact };
    Ok((SignalObject::Memory { allocation, address: range.start, width }, access))
}

/// `release O`, `acquire O`.
pub(crate) fn host_threads(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("what the threads order themselves by")?;
    let object = issue.scope.sync_object(token)?;
    Ok(match issue.verb.text {
        "release" => Call::plain("pthread_mutex_unlock", Action::HostRelease { object }),
        _ => Call::plain("pthread_mutex_lock", Action::HostAcquire { object }),
    })
}
