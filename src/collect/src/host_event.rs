//! Statements of a host thread about itself, owned, so that they can wait for their return.

use super::call::{Call, Origin};
use streamsan_model::StackId;
use streamsan_wire::{Api, HostCall, Words};

/// Bytes of a name that are kept: names come from the program.
const LONGEST_NAME: usize = 256;

/// How a call that takes time came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostReturn {
    /// Global index at the return.
    pub(crate) exit: u64,
    pub(crate) end_ns: u64,
    /// Below 0 for a failure.
    pub(crate) result: i64,
}

/// A record of what a host thread does.
#[derive(Clone, Debug)]
pub(crate) struct HostEvent {
    pub(crate) g: u64,
    pub(crate) origin: Origin,
    pub(crate) call: HostCall,
    /// The arguments that the documentation of the call lists.
    pub(crate) args: Box<[u64]>,
    pub(crate) text: Box<str>,
    pub(crate) start_ns: u64,
    /// The stack of the thread, where it was recorded.
    pub(crate) stack: Option<StackId>,
    pub(crate) returned: Option<HostReturn>,
}

impl HostEvent {
    pub(crate) fn new(
        (g, start_ns): (u64, u64),
        origin: Origin,
        call: HostCall,
        args: Words<'_>,
        text: &[u8],
    ) -> Self {
        let clean = |text: &[u8]| String::from_utf8_lossy(text).replace(char::is_control, " ");
        let text = &text[..text.len().min(LONGEST_NAME)];
        let mut args: Box<[u64]> = args.iter().collect();
        let mut texts = String::new();
        if call.names_a_range()
            && let Some(of_domain) = args.get_mut(1)
        {
            let (domain, name) = text.split_at(text.len().min(*of_domain as usize));
            texts = clean(domain);
            *of_domain = texts.len() as u64;
            texts += &clean(name);
        } else {
            texts += &clean(text);
        }
        let text = texts;
        Self { g, origin, call, args, text: text.into(), start_ns, stack: None, returned: None }
    }

    /// The word at `index`, 0 where the record lacks it.
    pub(crate) fn arg(&self, index: usize) -> u64 {
        self.args.get(index).copied().unwrap_or(0)
    }

    /// Whether it did what it says, as far as is known.
    pub(crate) fn succeeded(&self) -> bool {
        self.returned.is_none_or(|r| r.result >= 0)
    }

    /// A driver call at the same place: handles are looked up for one, in its current context.
    pub(crate) fn as_call(&self, context: u64) -> Call {
        // Only its name is ever asked for, by gaps that are not host calls' to make.
        let bare = Call::bare(self.g, self.origin, Api::cuStreamQuery);
        Call { context, start_ns: self.start_ns, stack: self.stack, ..bare }
    }
}
