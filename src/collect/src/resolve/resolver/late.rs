//! Late knowledge of launches that were handed on: by the code of their kernels, and by the
//! reports of the simulated driver.

use super::Resolver;
use crate::call::Call;
use crate::kernel_code::{Answer, CodeId, Knowledge, Question};
use crate::launch::{CodeKnown, KnownLaunch};
use crate::measured::{ConcludedLaunch, Measuring};
use crate::resolve::gaps::Toucher;
use crate::resolve::tables::Ids;
use crate::resolve::{exact, global_pointers, kernels, launches, measured};
use std::sync::Arc;
use std::time::Instant;
use streamsan_model::{
    Access, AllocationId, Entity, GridControl, KernelGap, NodeAction, OpSeq, ProcessId, TraceItem,
};
use streamsan_store::MeasuredCount;
use streamsan_wire::{Access as Touched, Api, MeasuredRun, NotMeasured, ParamKind, ProcessKey};

fn is_launch(api: Api) -> bool {
    api.signature().params.iter().any(|param| param.kind == ParamKind::Function)
}

/// The allocation that stands for all memory that no recorded call made, declared at its first use.
fn elsewhere<'a>(
    ids: &'a mut Ids,
    process: ProcessId,
    foreign: &'a mut Option<AllocationId>,
    items: &'a mut Vec<TraceItem>,
) -> impl FnMut() -> AllocationId + 'a {
    move || {
        *foreign.get_or_insert_with(|| {
            let id = ids.allocation();
            items.push(TraceItem::Entity(Entity::Allocation(exact::foreign(id, process))));
            id
        })
    }
}

impl Resolver {
    /// The kernels to be read, since the last time, and which of all are to be read first.
    pub(crate) fn questions(&mut self) -> (Vec<Question>, Vec<CodeId>) {
        self.codes.questions()
    }

    /// Whether answers are still to come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.codes.is_waiting()
    }

    /// The kernels that were launched and are still being read: how many, and one of them.
    pub(crate) fn unread(&self) -> Option<(usize, &str)> {
        self.codes.awaited()
    }

    /// Since when the code of the kernel that a call launches is awaited.
    pub(crate) fn awaited(&self, call: &Call) -> Option<Instant> {
        if !self.codes.is_waiting() || self.codes.exact || !is_launch(call.api) {
            return None;
        }
        let function = call.api.signature().index_of("f").map(|index| call.arg(index))?;
        let tables = self.processes.get(call.process.0 as usize)?.as_ref()?;
        let (images, name) = kernels::code_of(tables, function)?;
        self.codes.asked(images, name)
    }

    /// Takes what was read of a kernel. Its launches that were handed on before are to be looked at
    /// again. Declarations that change go to `items`.
    pub(crate) fn learn(&mut self, answer: Answer, items: &mut Vec<TraceItem>) {
        self.code_known.extend(self.codes.learn(answer, items));
    }

    /// Whether launches are to be looked at again: the code of their kernels is known by now.
    pub(crate) fn has_code_known(&self) -> bool {
        !self.code_known.is_empty()
    }

    /// Looks again at the next launches whose code is known, at most `most`. Answers what replaces
    /// what was said of them; graphs that changed go to `items`.
    pub(crate) fn look_again(
        &mut self,
        most: usize,
        items: &mut Vec<TraceItem>,
    ) -> Vec<KnownLaunch> {
        let before = items.len();
        let count = most.min(self.code_known.len());
        let next: Vec<CodeKnown> = self.code_known.drain(..count).collect();
        let known: Vec<KnownLaunch> =
            next.into_iter().filter_map(|launch| self.look_at(launch, items)).collect();
        if let Some(measuring) = &mut self.measuring {
            measuring.declared(&items[before..]);
        }
        self.note_uses(&items[before..]);
        for KnownLaunch { g, accesses, .. } in &known {
            if let Some(accesses) = accesses {
                self.gaps.touched(Toucher::Operation(*g), accesses);
            }
        }
        known
    }

    /// No more answers come: the launches that still wait stay as they are.
    pub(crate) fn give_up(&mut self, items: &mut Vec<TraceItem>) {
        for tables in self.processes.iter_mut().flatten() {
            let mut graphs: Vec<_> = tables.graphs.drain().collect();
            graphs.sort_by_key(|(id, _)| *id);
            items.extend(
                graphs.into_iter().map(|(_, (graph, _))| TraceItem::Entity(Entity::Graph(graph))),
            );
        }
        if let Some(measuring) = &mut self.measuring {
            measuring.declared(items);
        }
        for launch in self.codes.give_up() {
            if self.codes.exact {
                continue;
            }
            let name = &launch.kernel.name;
            self.gaps.kernel(KernelGap::NotLookedAtAgain, name);
            self.gaps
                .not_understood(&format!("(kernel {name}, whose code was not read to the end)"));
            if launch.programmatic {
                self.gaps.not_understood("cuLaunchKernelEx (programmatic stream serialization)");
            }
        }
    }

    fn look_at(&mut self, launch: CodeKnown, items: &mut Vec<TraceItem>) -> Option<KnownLaunch> {
        let mut launch = launch.look();
        self.codes.release(&launch);
        let call = Call::at(launch.g, ProcessKey(launch.process as u32));
        let measures = self.measuring.is_some();
        let mut resolution = self.resolution(launch.process, &call, items)?;
        resolution.targets = std::mem::take(&mut launch.targets);
        if measures {
            resolution.gaps.put_aside();
        }
        resolution.written_until = launch.node.map(|_| u64::MAX);
        let is_known = matches!(resolution.codes.knowledge(launch.code), Knowledge::Known(_));
        let mut control = launches::again(&mut resolution, &launch);
        let accesses = std::mem::take(&mut resolution.accesses);
        let unseen = resolution.launch.unseen;
        if is_known {
            global_pointers::unseen(&mut resolution, &accesses);
        }
        // A launch that neither waits nor triggers need not be said.
        control = control.filter(|known| launch.programmatic || *known != GridControl::default());
        let gaps = self.gaps.take_aside();
        let Some((graph, position)) = launch.node else {
            if let Some(measuring) = &mut self.measuring {
                let early = control.map_or(0, |control| control.early);
                let concluded = ConcludedLaunch { accesses, early, unseen };
                let (merged, gaps) = measuring.code_known(launch.g, &concluded, gaps);
                self.gaps.add(gaps);
                let (accesses, early) = match merged {
                    Some(merged) => (Some(merged.accesses), merged.early),
                    None => (is_known.then_some(concluded.accesses), early),
                };
                let accesses = accesses.filter(|_| !self.of_library.contains(&launch.g));
                if let Some(control) = &mut control {
                    control.early = early;
                }
                let changes = accesses.is_some() || control.is_some();
                return changes.then_some(KnownLaunch { g: OpSeq(launch.g), accesses, control });
            }
            // Accesses known from elsewhere stay; so do the words of code that was not read.
            let counts = is_known && !self.codes.exact && !self.of_library.contains(&launch.g);
            let accesses = counts.then_some(accesses);
            if let Some(control) = control.as_mut().filter(|_| accesses.is_none()) {
                control.early = self.exact_early.get(&launch.g).copied().unwrap_or(0);
            }
            let changes = accesses.is_some() || control.is_some();
            return changes.then_some(KnownLaunch { g: OpSeq(launch.g), accesses, control });
        };
        let gaps = match &mut self.measuring {
            Some(measuring) => {
                measuring.code_of_node_known((graph, position as u32), unseen);
                measuring.gaps_of_nodes(gaps)
            }
            None => gaps,
        };
        self.gaps.add(gaps);
        let tables = self.processes.get_mut(launch.process)?.as_mut()?;
        let (known, left) = tables.graphs.get_mut(&graph)?;
        let changed = Arc::make_mut(known);
        let node = changed.nodes.get_mut(position)?;
        node.accesses = accesses;
        if let (NodeAction::Kernel { control: known, .. }, Some(control)) =
            (&mut node.action, control)
        {
            *known = control;
        }
        *left -= 1;
        if *left == 0
            && let Some((graph, _)) = tables.graphs.remove(&graph)
        {
            items.push(TraceItem::Entity(Entity::Graph(graph)));
        }
        None
    }

    /// The accesses of the launch at `g`, of which instrumented code saw `runs`, and how many of them,
    /// the first ones, may come before its kernel's wait. `None` where that launch is not awaited.
    pub(crate) fn measured_accesses(
        &mut self,
        process: ProcessKey,
        g: u64,
        (runs, flags): (&[MeasuredRun], u32),
        items: &mut Vec<TraceItem>,
    ) -> Option<(Vec<Access>, u32)> {
        let measuring = self.measuring.as_mut().filter(|measuring| measuring.is_awaited(g))?;
        let tables = self.processes.get_mut(process.0 as usize)?.as_mut()?;
        let elsewhere = elsewhere(&mut self.ids, tables.id, &mut tables.foreign, items);
        let measured = measured::launch(&tables.memory, g, runs, flags, elsewhere);
        let (merged, gaps) = measuring.measured(g, measured)?;
        self.gaps.add(gaps);
        self.gaps.touched(Toucher::Operation(OpSeq(g)), &merged.accesses);
        Some((merged.accesses, merged.early))
    }

    /// Takes the bytes of a node, by handle, in the launch of its graph at `g`.
    pub(crate) fn measured_node(
        &mut self,
        process: ProcessKey,
        (g, node): (u64, u64),
        (runs, flags): (&[MeasuredRun], u32),
        items: &mut Vec<TraceItem>,
    ) {
        let awaited = |measuring: &&mut Measuring| measuring.is_node_awaited(g, node);
        let Some(measuring) = self.measuring.as_mut().filter(awaited) else { return };
        let Some(Some(tables)) = self.processes.get_mut(process.0 as usize) else { return };
        let elsewhere = elsewhere(&mut self.ids, tables.id, &mut tables.foreign, items);
        let measured = measured::launch(&tables.memory, g, runs, flags, elsewhere);
        measuring.node_measured(g, node, measured);
    }

    /// A launch is not measured, or with `g` 0 nothing of a process.
    pub(crate) fn not_measured(
        &mut self,
        process: ProcessKey,
        g: u64,
        reason: NotMeasured,
        detail: &[u8],
    ) {
        if let Some(measuring) = &mut self.measuring {
            let gaps = measuring.not_measured(process, g, reason, detail);
            self.gaps.add(gaps);
        }
    }

    /// No more bytes come. Answers what was measured; graphs that changed go to `items`.
    pub(crate) fn end_measuring(&mut self, items: &mut Vec<TraceItem>) -> Vec<MeasuredCount> {
        let Some(measuring) = &mut self.measuring else { return Vec::new() };
        let (graphs, gaps) = measuring.end();
        let measured = measuring.coverage();
        self.gaps.add(gaps);
        let before = items.len();
        items.extend(graphs.into_iter().map(|graph| TraceItem::Entity(Entity::Graph(graph))));
        self.note_uses(&items[before..]);
        measured
    }

    /// The accesses of the kernel launched by the call at `g`, and how many of them, the first
    /// ones, came before its wait. The launch was resolved before.
    pub(crate) fn exact_accesses(
        &mut self,
        process: ProcessKey,
        g: u64,
        touched: &[Touched],
        items: &mut Vec<TraceItem>,
    ) -> (Vec<Access>, u32) {
        if self.of_library.contains(&g) {
            return (Vec::new(), 0);
        }
        let Some(Some(tables)) = self.processes.get_mut(process.0 as usize) else {
            return (Vec::new(), 0);
        };
        let memory = &tables.memory;
        let mut elsewhere = elsewhere(&mut self.ids, tables.id, &mut tables.foreign, items);
        let (before, behind): (Vec<Touched>, Vec<Touched>) =
            touched.iter().partition(|touched| touched.early);
        let mut accesses = exact::accesses(memory, g, &before, &mut elsewhere);
        let early = accesses.len() as u32;
        accesses.extend(exact::accesses(memory, g, &behind, elsewhere));
        if early > 0 {
            self.exact_early.insert(g, early);
        }
        self.gaps.touched(Toucher::Operation(OpSeq(g)), &accesses);
        (accesses, early)
    }
}
