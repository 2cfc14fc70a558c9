//! The table of contexts, green contexts included, and of the streams in each.
//!
//! Invariant: a green context names its primary context, and the primary names every green context
//! that has been used.

use crate::Rule;
use crate::core::Core;
use crate::state::{ContextState, Gate, StreamState};
use smallvec::SmallVec;
use streamsan_model::{ContextId, DeviceId, ProcessId, StreamId};

impl Core {
    /// Returns a context. A context that was not declared belongs to device 0.
    pub(crate) fn context(&mut self, id: ContextId, process: ProcessId) -> &mut ContextState {
        if self.contexts.len() <= id.index() {
            self.contexts.resize_with(id.index() + 1, || None);
        }
        if self.contexts[id.index()].is_none() {
            self.bring_to_life(id, process);
        }
        self.contexts[id.index()].as_mut().expect("brought to life above")
    }

    #[cold]
    fn bring_to_life(&mut self, id: ContextId, process: ProcessId) {
        let declared = self.entities.context(id);
        let mut state = ContextState {
            device: declared.map_or(DeviceId(0), |context| context.device),
            process: declared.map_or(process, |context| context.process),
            streams: Vec::new(),
            dirty: Vec::new(),
            beside: Vec::new(),
            foreign: Vec::new(),
            legacy: None,
            returns: None,
            gates: Default::default(),
            green: Vec::new(),
        };
        let parent = declared.and_then(|context| context.parent).filter(|&parent| parent != id);
        if let Some(parent) = parent {
            let parent = self.context(parent, process);
            parent.green.push(id);
            // A gate of a primary context holds back green contexts that are made later, too.
            state.gates[Gate::All as usize] = parent.gates[Gate::All as usize].clone();
            if !self.applies(Rule::GreenContexts) {
                state.gates = Default::default();
            }
        }
        self.contexts[id.index()] = Some(state);
    }

    /// The context; for a primary context also its green contexts. Synchronising, recording and
    /// holding back a primary context includes its green contexts, while a green context concerns
    /// itself only. Documented: Driver API, Context Management, Green Contexts.
    pub(crate) fn with_green(
        &mut self,
        context: ContextId,
        process: ProcessId,
    ) -> SmallVec<[ContextId; 1]> {
        let mut contexts: SmallVec<[ContextId; 1]> = [context].into();
        if self.applies(Rule::GreenContexts) {
            contexts.extend_from_slice(&self.context(context, process).green);
        }
        contexts
    }

    /// The context's blocking streams that have work since the last legacy operation.
    pub(crate) fn dirty_streams(&self, context: ContextId) -> impl Iterator<Item = &StreamState> {
        let context = self.contexts.get(context.index()).and_then(Option::as_ref);
        context.into_iter().flat_map(|c| &c.dirty).filter_map(|&stream| self.stream(stream))
    }

    /// Notes that the stream has learnt something of other contexts.
    pub(crate) fn note_foreign(
        &mut self,
        context: ContextId,
        stream: StreamId,
        process: ProcessId,
    ) {
        let foreign = &mut self.context(context, process).foreign;
        if !foreign.contains(&stream) {
            foreign.push(stream);
        }
    }

    /// All contexts of the process.
    pub(crate) fn contexts_of(&self, process: ProcessId) -> SmallVec<[ContextId; 1]> {
        let contexts = self.contexts.iter().zip(0u32..);
        contexts
            .filter(|(context, _)| context.as_ref().is_some_and(|c| c.process == process))
            .map(|(_, id)| ContextId(id))
            .collect()
    }

    /// All contexts of the process on the given device.
    pub(crate) fn contexts_of_device(
        &self,
        process: ProcessId,
        device: DeviceId,
    ) -> SmallVec<[ContextId; 1]> {
        self.contexts
            .iter()
            .zip(0u32..)
            .filter_map(|(context, id)| {
                let context = context.as_ref()?;
                (context.process == process && context.device == device).then_some(ContextId(id))
            })
            .collect()
    }
}
