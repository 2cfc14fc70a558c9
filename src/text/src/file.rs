//! Verbs of GPUDirect Storage: transfers between files and memory.

use crate::SyntaxError;
use crate::operand;
use crate::verb::{Call, Issue};
use streamsan_model::{Access, Action, Basis, Mode};

/// `file_read X`, `file_write X`, `file_read_async S X`, `file_write_async S X`.
pub(crate) fn transfer(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let (api, mode) = match issue.verb.text {
        "file_read" => ("cuFileRead", Mode::Write),
        "file_write" => ("cuFileWrite", Mode::Read),
        "file_read_async" => ("cuFileReadAsync", Mode::Write),
        _ => ("cuFileWriteAsync", Mode::Read),
    };
    let action = match issue.verb.text {
        "file_read" | "file_write" => Action::HostAccess,
        _ => Action::FileTransfer { stream: issue.next_stream()? },
    };
    let accesses = vec![access(issue, mode)?];
    Ok(Call { api: api.to_owned(), action, accesses })
}

fn access(issue: &mut Issue<'_, '_>, mode: Mode) -> Result<Access, SyntaxError> {
    let token = issue.cursor.next("a buffer")?;
    let region = operand::region(issue.scope, token)?;
    region
        .access(mode, Basis::Exact)
        .ok_or_else(|| token.error("a transfer of no bytes does nothing; leave the line out"))
}

/// `file_batch B ACCESS...`, `file_batch_done B`.
pub(crate) fn batch(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("a batch of file transfers")?;
    if issue.verb.text == "file_batch_done" {
        let batch = issue.scope.file_batch(token)?;
        return Ok(Call::plain("cuFileBatchIOGetStatus", Action::FileBatchComplete { batch }));
    }
    issue.must_succeed()?;
    let batch = issue.scope.new_file_batch(token)?;
    let accesses = issue.accesses()?;
    let action = Action::FileBatchSubmit { batch };
    Ok(Call { api: "cuFileBatchIOSubmit".to_owned(), action, accesses })
}
