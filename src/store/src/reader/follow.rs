//! A trace that is viewed while it is recorded.

use super::Reader;
use crate::lod::live::Live;
use crate::{Error, TraceState};
use std::path::Path;
use streamsan_model::Refreshed;

impl Reader {
    /// Opens a trace that is being recorded, to be kept up with it
    /// ([`streamsan_model::TraceQuery::refresh`]). A finished one is opened as
    /// [`Reader::open`] does.
    ///
    /// # Errors
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
            let following = live.take().unwrap_or_default();
            following.end(&self.connection).map_err(|e| self.failed(e))?;
            self.state.set(self.stored_state()?);
            *self.lod.borrow_mut() = None;
            return Ok(Refreshed { changed: true, findings: true, more: false, ended: true });
        }
        let step = following.step(&self.connection).map_err(|e| self.failed(e))?;
        if let Some(lod) = self.lod.borrow_mut().as_mut().filter(|_| step.changed) {
            lod.update(&self.connection, step.findings).map_err(|e| self.failed(e))?;
        }
        let (changed, findings, more) = (step.changed, step.findings, step.more);
        Ok(Refreshed { changed, findings, more, ended: false })
    }

    /// Whether the writer has put in the level-of-detail tables, which it does last.
    fn is_finished(&self) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM main.lod_axis) OR NOT EXISTS (SELECT 1 FROM op) \
                   AND NOT EXISTS (SELECT 1 FROM meta WHERE key = 'state' AND value = ?)";
        let recording = TraceState::Recording.description();
        Ok(self.rows(sql, [recording], |row| row.get(0))?.first() == Some(&true))
    }
}
