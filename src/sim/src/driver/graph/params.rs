//! Making nodes from parameters, and reading and replacing those of nodes and of the nodes of
//! executables.

use super::super::copy::{CopySpec, Prepared, Role};
use super::super::fill::FillSpec;
use super::super::function::FunctionRef;
use super::super::host_call::{HostCall, HostForm};
use super::super::launch::{LaunchSpec, Parameters};
use super::super::sim::Call;
use super::super::state::Driver;
use super::node::{COPY_WORDS, CopyNode, FillNode, HostNode, KernelNode, NodeKind, WordsNode};
use super::topology::EdgeData;
use crate::errors::{CuError, Outcome};

/// A node as the program describes it. A context of 0 is the current one.
pub(crate) enum NodeSpec<'a> {
    /// `kernel` is a library's kernel that counts where the launch has no function.
    Kernel {
        launch: LaunchSpec,
        kernel: u64,
        context: u64,
        parameters: &'a dyn Parameters,
    },
    Copy {
        spec: CopySpec,
        raw: Option<Box<[u64; COPY_WORDS]>>,
        context: u64,
    },
    Fill {
        spec: FillSpec,
        context: u64,
    },
    Host {
        function: usize,
        data: usize,
    },
    Child(u64),
    Empty,
    EventWait(u64),
    EventRecord(u64),
    Alloc {
        device: i32,
        length: u64,
    },
    Free(u64),
    Words(WordsNode),
    /// A condition, what is done by it, and how many bodies there are.
    Conditional {
        condition: u64,
        kind: u32,
        size: u32,
        context: u64,
    },
}

impl Driver {
    fn context_or_current(&self, context: u64) -> Outcome<u64> {
        if context == 0 {
            return self.current();
        }
        self.contexts.get(context).ok_or(CuError::INVALID_VALUE)?;
        self.usable(context).map(|_| context)
    }

    /// Checks a description and makes the node of it, with everything that belongs to the node.
    pub(in crate::driver) fn node_kind(&mut self, spec: &NodeSpec<'_>) -> Outcome<NodeKind> {
        Ok(match *spec {
            NodeSpec::Kernel { mut launch, kernel, context, parameters } => {
                let context = self.context_or_current(context)?;
                if launch.function == 0 {
                    self.kernels.get(kernel).ok_or(CuError::INVALID_HANDLE)?;
                    launch.function = kernel;
                } else {
                    // Unlike a launch, a node takes no kernel in place of a function.
                    self.functions.get(launch.function).ok_or(CuError::INVALID_HANDLE)?;
                }
                NodeKind::Kernel(Box::new(self.kernel_node(&launch, context, parameters)?))
            }
            NodeSpec::Copy { ref spec, ref raw, context } => {
                let context = self.context_or_current(context)?;
                NodeKind::Copy(Box::new(self.copy_node(*spec, raw.as_deref().copied(), context)?))
            }
            NodeSpec::Fill { spec, context } => {
                let context = self.context_or_current(context)?;
                if spec.width == 0 || spec.height == 0 {
                    return Err(CuError::INVALID_VALUE);
                }
                let (fill, _) = self.prepare_fill(spec)?;
                NodeKind::Fill(FillNode { fill, spec, context })
            }
            NodeSpec::Host { function, data } => {
                if function == 0 {
                    return Err(CuError::INVALID_VALUE);
                }
                let form = HostForm::Function;
                NodeKind::Host(HostNode { call: HostCall { function, data, form } })
            }
            NodeSpec::Child(graph) => {
                self.graph(graph)?;
                // Memory belongs to the one graph whose node allocates it.
                if !self.can_be_cloned(graph) {
                    return Err(CuError::NOT_SUPPORTED);
                }
                NodeKind::Child(self.clone_child(graph)?)
            }
            NodeSpec::Words(ref words) => {
                let context = self.context_or_current(words.context)?;
                self.check_words(&words.ops)?;
                NodeKind::Words(WordsNode { context, ..words.clone() })
            }
            NodeSpec::Conditional { condition, kind, size, context } => {
                let context = self.context_or_current(context)?;
                NodeKind::Conditional(self.conditional_node(condition, kind, size, context)?)
            }
            NodeSpec::Empty => NodeKind::Empty,
            NodeSpec::EventWait(event) => {
                self.events.get(event).ok_or(CuError::INVALID_VALUE)?;
                NodeKind::EventWait(event)
            }
            NodeSpec::EventRecord(event) => {
                self.events.get(event).ok_or(CuError::INVALID_VALUE)?;
                NodeKind::EventRecord(event)
            }
            // A node that is set, where neither kind is allowed, is of no graph.
            NodeSpec::Alloc { .. } | NodeSpec::Free(_) => return Err(CuError::INVALID_VALUE),
        })
    }

    pub(in crate::driver) fn kernel_node(
        &mut self,
        launch: &LaunchSpec,
        context: u64,
        parameters: &dyn Parameters,
    ) -> Outcome<KernelNode> {
        let (function, kernel) = match self.launchable(launch.function) {
            FunctionRef::Function(function) => (function, self.kernel_of_function(function)?),
            FunctionRef::Kernel(kernel) => (self.kernel_function(kernel, context)?, kernel),
        };
        let template = self.prepare_launch(launch, context, parameters)?;
        Ok(KernelNode::new(template, function, kernel, context))
    }

    /// A copy node whose ends have the roles of the memory that they lie in.
    pub(in crate::driver) fn copy_node(
        &self,
        mut spec: CopySpec,
        raw: Option<[u64; COPY_WORDS]>,
        context: u64,
    ) -> Outcome<CopyNode> {
        if spec.is_empty() {
            return Ok(CopyNode { copy: None, spec, raw, context });
        }
        let prepared = self.prepare_copy(&spec)?;
        let [from, to] = prepared.roles();
        for (end, role) in [(&mut spec.source, from), (&mut spec.destination, to)] {
            if !matches!(end.role, Role::Array(_)) {
                end.role = role;
            }
        }
        let Prepared { copy, .. } = prepared;
        Ok(CopyNode { copy: Some(copy), spec, raw, context })
    }
}

impl Call {
    /// Makes a node and returns its handle.
    pub(crate) fn graph_add(
        &self,
        graph: u64,
        after: &[(u64, EdgeData)],
        spec: &NodeSpec<'_>,
    ) -> Outcome<u64> {
        let mut driver = self.lock();
        driver.graph(graph)?;
        let kind = match *spec {
            NodeSpec::Alloc { device, length } => {
                NodeKind::Alloc(driver.alloc_node(graph, after, device, length)?)
            }
            NodeSpec::Free(start) => driver.free_node(graph, start)?,
            _ => driver.node_kind(spec)?,
        };
        driver.add_node(graph, after, kind)
    }

    /// The kind and the parameters of a node.
    pub(crate) fn node(&self, node: u64) -> Outcome<NodeKind> {
        Ok(self.lock().node(node)?.kind.clone())
    }

    /// Replaces the parameters of a node by others of its type.
    pub(crate) fn node_set(&self, node: u64, spec: &NodeSpec<'_>) -> Outcome {
        let mut driver = self.lock();
        let old = driver.node(node)?.kind.number();
        if matches!(spec, NodeSpec::Conditional { .. }) {
            return Err(CuError::INVALID_VALUE);
        }
        let kind = driver.node_kind(spec)?;
        let fixed = matches!(kind, NodeKind::Child(_) | NodeKind::Alloc(_) | NodeKind::Free(_));
        if fixed || kind.number() != old {
            return Err(CuError::INVALID_VALUE);
        }
        if let Some(node) = driver.nodes.get_mut(node) {
            node.kind = kind;
        }
        Ok(())
    }

    /// The value of a launch attribute of a kernel node; `None` where it was never set.
    pub(crate) fn node_attribute(&self, node: u64, attribute: u32) -> Outcome<Option<[u32; 16]>> {
        match &self.lock().node(node)?.kind {
            NodeKind::Kernel(kernel) => Ok(kernel.attributes.get(&attribute).copied()),
            _ => Err(CuError::INVALID_VALUE),
        }
    }

    pub(crate) fn node_set_attribute(
        &self,
        node: u64,
        attribute: u32,
        value: [u32; 16],
    ) -> Outcome {
        let mut driver = self.lock();
        match driver.nodes.get_mut(node).map(|node| &mut node.kind) {
            Some(NodeKind::Kernel(kernel)) => {
                kernel.set_attribute(attribute, value);
                Ok(())
            }
            _ => Err(CuError::INVALID_VALUE),
        }
    }

    pub(crate) fn node_copy_attributes(&self, to: u64, from: u64) -> Outcome {
        let mut driver = self.lock();
        let NodeKind::Kernel(source) = &driver.node(from)?.kind else {
            return Err(CuError::INVALID_VALUE);
        };
        let attributes = source.attributes.clone();
        match driver.nodes.get_mut(to).map(|node| &mut node.kind) {
            Some(NodeKind::Kernel(kernel)) => {
                for (attribute, value) in attributes {
                    kernel.set_attribute(attribute, value);
                }
                Ok(())
            }
            _ => Err(CuError::INVALID_VALUE),
        }
    }
}
