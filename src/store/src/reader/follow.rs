//! A trace that is viewed while it is recorded.

use super::Reader;
use crate::lod::live::Live;
use crate::{Error, TraceState};
use std::path::Path;
use streamsan_model::Refreshed;

impl Reader {
    /// Opens a trace that is being recorded, to keep up with it
    /// ([`streamsan_model::TraceQuery::refresh`]). A finished trace is opened as [`Reader::open`]
    /// does.
    ///
    /// # Errors
    ///
    /// As [`Reader::open`].
    pub fn follow(path: &Path) -> Result<Self, Error> {
        let reader = Self::open(path)?;
        if reader.state() == TraceState::Recording {
            *reader.live.borrow_mut() = Some(Live::default());
        }
        Ok(reader)
    }

    /// Takes in what was recorded since the last time.
    pub(crate) fn catch_up(&self) -> Result<Refreshed, Error> {
        let mut live = self.live.borrow_mut();
        let Some(following) = live.as_mut() else { return Ok(Refreshed::default()) };
        if self.is_finished()? {
            let state = self.stored_state()?;
            following.end(&self.connection).map_err(|e| self.failed(e))?;
            *live = None;
            *self.lod.borrow_mut() = None;
            self.begin_state(state)?;
            return Ok(Refreshed { changed: true, findings: true, more: false, ended: true });
        }
        let step = following.step(&self.connection).map_err(|e| self.failed(e))?;
        if let Some(mut lod) = self.lod.take() {
            // Where this fails, it is read anew the next time.
            lod.update(&self.connection, step.findings).map_err(|e| self.failed(e))?;
            *self.lod.borrow_mut() = Some(lod);
        }
        let (changed, findings, more) = (step.changed, step.findings, step.more);
        Ok(Refreshed { changed, findings, more, ended: false })
    }

    /// See [`streamsan_model::TraceQuery::refresh`].
    pub(crate) fn look(&self) -> Result<Refreshed, Error> {
        let (step, unseen) = (self.catch_up()?, self.unseen.get());
        let all = Refreshed {
            changed: step.changed || unseen.changed,
            findings: step.findings || unseen.findings,
            more: step.more,
            ended: step.ended || unseen.ended,
        };
        self.unseen.set(all);
        Ok(all)
    }

    /// The overview was asked for.
    pub(crate) fn overview_is_seen(&self) {
        self.unseen.set(Refreshed { changed: false, ..self.unseen.get() });
    }

    /// The findings were asked for, which come last.
    pub(crate) fn findings_are_seen(&self) {
        self.unseen.set(Refreshed { findings: false, ended: false, ..self.unseen.get() });
    }

    /// Whether the writer has said that the trace is whole or will never be, which it does last.
    fn is_finished(&self) -> Result<bool, Error> {
        Ok(self.stored_state()? != TraceState::Recording)
    }
}
