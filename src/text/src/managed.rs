//! Verbs of managed memory: prefetch, discard, attach.

use crate::SyntaxError;
use crate::operand;
use crate::verb::{Call, Issue};
use streamsan_model::{Action, Attachment, Basis, MemoryKind, Mode};

/// `prefetch S X...`, `discard S X...`, `discard_prefetch S X...`.
pub(crate) fn move_or_discard(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let stream = issue.next_stream()?;
    let first = issue.cursor.next("a buffer")?;
    let (api, mode, action) = match issue.verb.text {
        "prefetch" => ("cuMemPrefetchAsync", Mode::Prefetch, Action::Prefetch { stream }),
        "discard" => ("cuMemDiscardBatchAsync", Mode::Discard, Action::Discard { stream }),
        _ => ("cuMemDiscardAndPrefetchBatchAsync", Mode::Discard, Action::Discard { stream }),
    };
    let (mut accesses, mut next) = (Vec::new(), Some(first));
    while let Some(token) = next {
        let region = operand::region(issue.scope, token)?;
        let access = region.access(mode, Basis::Exact);
        let access = access.ok_or_else(|| token.error("no byte is meant; leave it out"))?;
        if accesses.contains(&access) {
            return Err(token.error("the same bytes twice in one call"));
        }
        accesses.push(access);
        next = issue.cursor.take();
    }
    let api = match (api, accesses.len()) {
        ("cuMemPrefetchAsync", 2..) => "cuMemPrefetchBatchAsync",
        (api, _) => api,
    };
    Ok(Call { api: api.to_owned(), action, accesses })
}

/// `attach S X global|host|single`.
pub(crate) fn attach(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let stream = issue.next_stream()?;
    let token = issue.cursor.next("a managed buffer")?;
    let buffer = issue.scope.buffer(token)?;
    let (allocation, kind) = (buffer.id, buffer.kind);
    if !matches!(kind, MemoryKind::Managed | MemoryKind::Pageable) {
        return Err(token.error(format!(
            "`{}` is {}, and only managed memory can be attached",
            token.text,
            kind.description()
        )));
    }
    const FORM: &str = "`global`, `host` or `single`";
    let word = issue.cursor.next(FORM)?;
    let attachment = match word.text {
        "global" => Attachment::Global,
        "host" => Attachment::Host,
        "single" => Attachment::Single,
        _ => return Err(word.expected(FORM)),
    };
    let action = Action::Attach { stream, allocation, attachment };
    Ok(Call::plain("cuStreamAttachMemAsync", action))
}
