//! The accesses of operations, as words.

use super::{UNDECLARED, Writer, Written};
use std::fmt::Write;
use streamsan_model::{Access, Basis, Extent, GridControl, Mode, Operation, Trigger};

impl Writer {
    /// The words for a kernel's waiting and triggering, and for its accesses.
    pub(super) fn kernel_words(
        &self,
        control: GridControl,
        accesses: &[Access],
    ) -> Written<String> {
        let mut text = String::new();
        if control.waits {
            text.push_str(" pdl_wait");
        }
        if control.trigger != Trigger::AtEnd {
            let _ = write!(text, " pdl_trigger={}", control.trigger.description());
        }
        let before = (control.early as usize).min(accesses.len());
        let (before, behind) = accesses.split_at(if control.waits { before } else { 0 });
        for access in before {
            let word = self.access_list(std::slice::from_ref(access))?;
            if let Some(word) = word.strip_prefix(' ') {
                let _ = write!(text, " early:{word}");
            }
        }
        text.push_str(&self.access_list(behind)?);
        Ok(text)
    }

    pub(super) fn accesses(&self, operation: &Operation) -> Written<String> {
        self.access_list(&operation.accesses)
    }

    pub(super) fn access_list(&self, accesses: &[Access]) -> Written<String> {
        let mut text = String::new();
        for access in accesses {
            let basis = match (access.basis, access.mode) {
                (Basis::Exact, Mode::MayWrite) => "!",
                (Basis::Exact, _) | (Basis::Assumed, Mode::MayWrite) => "",
                (Basis::Assumed, _) => "?",
                (Basis::Anchored, _) => "~",
                (Basis::Inferred, _) => "=",
                (Basis::Measured, _) => "%",
            };
            let mode = match access.mode {
                Mode::Read => "r",
                Mode::Write => "w",
                Mode::ReadWrite => "rw",
                Mode::Atomic => "at",
                Mode::StrongRead => "sr",
                Mode::StrongWrite => "sw",
                Mode::StrongAtomic => "sat",
                Mode::MayWrite => "?",
                Mode::Allocate | Mode::Free | Mode::Prefetch | Mode::Discard => continue,
            };
            let _ = write!(text, " {basis}{mode}:{}", self.region(access)?);
        }
        Ok(text)
    }

    pub(super) fn region(&self, access: &Access) -> Written<String> {
        let buffer = self.entities.allocation(access.allocation).ok_or(UNDECLARED)?;
        let whole = self.plan.window(buffer);
        let name = self.names.of_buffer(buffer.id);
        let at = |address: u64| address.saturating_sub(whole.start);
        Ok(match access.extent {
            Extent::Range(range) if range == whole => name,
            Extent::Range(range) => format!("{name}[{}..{}]", at(range.start), at(range.end)),
            Extent::Strided(p) => {
                let start = at(p.start);
                let rows = format!("{start}..{}/{}*{}", start + p.width, p.pitch, p.rows);
                match p.slices {
                    1 => format!("{name}[{rows}]"),
                    slices => format!("{name}[{rows}/{}*{slices}]", p.slice_pitch),
                }
            }
        })
    }
}
