//! The catalogue: every rule of CUDA that the engine knows, with the documentation that the rule
//! rests on.
//!
//! Invariant: every rule of the engine has a row here, and each row names its source.
//!
//! A rule with a tier makes edges. Each place that makes such an edge asks `Core::applies`, so that
//! `Options::without` can switch the rule off: a test that iterates over [`Rule::ALL`] shows that
//! no rule's absence goes unnoticed. A rule without a tier says that an order does *not* exist;
//! such a rule has nothing to switch off. `docs/semantics.md` is generated from here.

use streamsan_model::Tier;

/// The fields of a rule beside its id.
struct Row {
    group: &'static str,
    id: &'static str,
    tier: Option<Tier>,
    source: &'static str,
    statement: &'static str,
}

macro_rules! tier {
    (documented) => {
        Some(Tier::Documented)
    };
    (incidental) => {
        Some(Tier::Incidental)
    };
    (no_edge) => {
        None
    };
}

macro_rules! rules {
    ($($group:literal { $($rule:ident $id:literal $tier:ident $source:literal $statement:literal)* })*) => {
        /// A rule of CUDA's order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[doc = $statement] $rule,)*)*
        }

        impl Rule {
            /// All rules, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$($(Self::$rule,)*)*];

            const fn row(self) -> Row {
                match self {
                    $($(Self::$rule => Row {
                        group: $group,
                        id: $id,
                        tier: tier!($tier),
                        source: $source,
                        statement: $statement,
                    },)*)*
                }
            }
        }
    };
}

impl Rule {
    /// The rule's stable name, in kebab-case.
    pub const fn id(self) -> &'static str {
        self.row().id
    }

    /// The order that the rule states, or denies, in one sentence.
    pub const fn statement(self) -> &'static str {
        self.row().statement
    }

    /// The manual and the section that the rule rests on.
    pub const fn source(self) -> &'static str {
        self.row().source
    }

    /// How far the order can be relied on; `None` where the rule denies an order.
    pub const fn tier(self) -> Option<Tier> {
        self.row().tier
    }

    /// The heading of the rule in the document.
    pub const fn group(self) -> &'static str {
        self.row().group
    }
}

impl std::str::FromStr for Rule {
    type Err = ();

    fn from_str(id: &str) -> Result<Self, ()> {
        Self::ALL.iter().copied().find(|rule| rule.id() == id).ok_or(())
    }
}

rules! {
    "Streams" {
        StreamOrder "stream-order" documented
            "Programming Guide, Streams"
            "Operations of one stream run in the order of their issue."
        IssueOrder "issue-order" documented
            "Programming Guide, Asynchronous Concurrent Execution"
            "An operation is behind everything that its host did and knew to be done when it issued it."
        ObservedCompletion "observed-completion" documented
            "host model of streamsan; switched off by --strict-host-threads"
            "Completion that any host thread of a process has observed orders what any of its threads issues later."
        LegacyWaitsForBlocking "legacy-waits-for-blocking" documented
            "Driver API, Stream synchronization behavior"
            "An operation of the legacy stream is behind the earlier work of all blocking streams of its context."
        BlockingWaitsForLegacy "blocking-waits-for-legacy" documented
            "Driver API, Stream synchronization behavior"
            "An operation of a blocking stream is behind the earlier work of its context's legacy stream."
        PerThreadIsBlocking "per-thread-is-blocking" documented
            "Driver API, Stream synchronization behavior"
            "A per-thread default stream takes part in the legacy stream's barrier like any blocking stream."
        NewBlockingAfterLegacy "new-blocking-after-legacy" documented
            "Programming Guide, Implicit Synchronization; Legacy Default Stream"
            "A blocking stream that is created after legacy work waits for that work."
        StreamSynchronize "stream-synchronize" documented
            "Driver API, cuStreamSynchronize"
            "Synchronizing a stream puts the host behind its earlier work."
        StreamQuery "stream-query" documented
            "Driver API, cuStreamQuery"
            "A successful query of a stream is a synchronization with it."
        LegacySynchronizeCoversBlocking "legacy-synchronize-covers-blocking" documented
            "Programming Guide, Stream Capture: prohibited and unhandled operations"
            "Synchronizing or querying the legacy stream covers the blocking streams of its context."
        StreamPool "stream-pool" incidental
            "host model of streamsan"
            "What a stream pool hands out again is behind the former user's work only because it is the same stream."
        StreamPriority "stream-priority" no_edge
            "Driver API, cuStreamCreateWithPriority"
            "A priority orders nothing."
        StreamDestroy "stream-destroy" no_edge
            "Driver API, cuStreamDestroy"
            "Destroying a stream orders nothing; its pending work goes on."
        NonBlockingIsExempt "non-blocking-is-exempt" no_edge
            "Driver API, Stream synchronization behavior"
            "A non-blocking stream and the legacy stream are not ordered."
        ContextsAreApart "contexts-are-apart" no_edge
            "Driver API, Stream synchronization behavior"
            "The legacy streams of two contexts, of one device or of two, are not ordered."
        NotReady "not-ready" no_edge
            "Driver API, cuStreamQuery, cuEventQuery"
            "A query that answers \"not ready\", like every failed call, orders nothing."
    }
    "Events" {
        EventRecord "event-record" documented
            "Driver API, cuEventRecord"
            "A record captures the earlier work of its stream; on the legacy stream that of the blocking streams too."
        EventWait "event-wait" documented
            "Driver API, cuStreamWaitEvent"
            "Later work of the waiting stream is behind what the event had captured at the call."
        EventSynchronize "event-synchronize" documented
            "Driver API, cuEventSynchronize"
            "Synchronizing an event puts the host behind what it had captured at the call."
        EventQuery "event-query" documented
            "Driver API, cuEventQuery"
            "A successful query of an event is a synchronization with it."
        EventElapsedTime "event-elapsed-time" incidental
            "Driver API, cuEventElapsedTime"
            "Two events with an elapsed time have completed, which is no documented way to wait."
        EventOfOtherProcess "event-of-other-process" documented
            "Driver API, cuIpcOpenEventHandle"
            "A wait for an event that another process recorded is behind its captured work and behind what that process did before the record."
        ProgrammaticEvent "programmatic-event" documented
            "Driver API, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT"
            "A programmatic event of a launch captures what the dependents of the kernel are behind when they begin, and none of its writes."
        ProgrammaticEventWait "programmatic-event-wait" documented
            "Driver API, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT"
            "What the next kernel behind a programmatic event does behind its own wait is behind the kernel that recorded the event."
        LaunchCompletionEvent "launch-completion-event" documented
            "Driver API, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT"
            "A launch completion event captures the work before the kernel and nothing of the kernel, which has only begun."
        EventNeverRecorded "event-never-recorded" no_edge
            "Driver API, cuEventRecord"
            "A wait for an event that was never recorded waits for nothing."
        EventRerecorded "event-rerecorded" no_edge
            "Driver API, cuStreamWaitEvent"
            "A later record changes nothing for waits already issued, and the captured work before it is no longer waited for by later ones."
        EventDestroy "event-destroy" no_edge
            "Driver API, cuEventDestroy"
            "Destroying an event orders nothing; waits already issued keep what they wait for."
        EventImported "event-imported" no_edge
            "Driver API, cuIpcOpenEventHandle"
            "What an event of a process outside the run captures is not known: findings behind a wait for it are at most possible."
    }
    "Contexts" {
        ContextSynchronize "context-synchronize" documented
            "Driver API, cuCtxSynchronize"
            "Synchronizing a context puts the host behind the work of all its streams, non-blocking ones included."
        ContextRecordEvent "context-record-event" documented
            "Driver API, cuCtxRecordEvent"
            "An event recorded on a context captures the work of all its streams."
        ContextWaitEvent "context-wait-event" documented
            "Driver API, cuCtxWaitEvent"
            "All later work of the context is behind what the event has captured."
        GreenContexts "green-contexts" documented
            "Driver API, cuCtxSynchronize, cuCtxRecordEvent, cuCtxWaitEvent; Green Contexts"
            "What synchronizes, records or holds back a primary context includes its green contexts."
        GreenContextAlone "green-context-alone" no_edge
            "Driver API, Green Contexts"
            "What synchronizes, records or holds back a green context concerns that one only."
    }
    "Copies" {
        CopySyncPageableToDevice "copy-sync-pageable-to-device" documented
            "Runtime API, API synchronization behavior"
            "A synchronous copy from pageable memory to the device puts the host behind the stream's earlier work, not behind its own write."
        CopySyncPageableSmall "copy-sync-pageable-small" incidental
            "not said"
            "A synchronous copy of up to 64 KiB from pageable memory to the device is done at return."
        CopySyncPageableSource "copy-sync-pageable-source" documented
            "Runtime API, API synchronization behavior"
            "A synchronous copy from pageable memory to the device has read its source at return."
        CopySyncPinnedToDevice "copy-sync-pinned-to-device" documented
            "Runtime API, API synchronization behavior"
            "A synchronous copy from pinned memory to the device is done at return."
        CopySyncDeviceToHost "copy-sync-device-to-host" documented
            "Runtime API, API synchronization behavior"
            "A synchronous copy from the device to host memory is done at return."
        CopyHostToHost "copy-host-to-host" documented
            "Runtime API, API synchronization behavior"
            "A copy from host memory to host memory is done at return, in its asynchronous form too."
        CopySyncManaged "copy-sync-managed" incidental
            "Runtime API, API synchronization behavior (pages before 12.0 only)"
            "A synchronous copy with managed memory is done at return."
        CopyAsyncPageable "copy-async-pageable" incidental
            "Runtime API, API synchronization behavior"
            "An asynchronous copy from the device to pageable memory may be done at return."
        CopyAsyncPageableSource "copy-async-pageable-source" incidental
            "Runtime API, API synchronization behavior"
            "An asynchronous copy from pageable memory to the device may have read its source at return."
        SyncMemops "sync-memops" documented
            "Driver API, CU_CTX_SYNC_MEMOPS, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS"
            "With one of these set, every synchronous copy or memset is done at return."
        CopySourceDuringCall "copy-source-during-call" documented
            "Driver API, CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL"
            "A copy with this source order has read its source at return."
        PeerCopyWaits "peer-copy-waits" documented
            "Programming Guide, Peer-to-Peer Memory Copy"
            "A synchronous peer copy is behind the earlier work of both devices."
        PeerCopyWaitsForNonBlocking "peer-copy-waits-for-non-blocking" incidental
            "Programming Guide, Peer-to-Peer Memory Copy"
            "A synchronous peer copy is behind the earlier work of non-blocking streams too."
        PeerCopyHoldsBack "peer-copy-holds-back" documented
            "Programming Guide, Peer-to-Peer Memory Copy"
            "Later work of both devices is behind a synchronous peer copy."
        PeerCopyHoldsBackNonBlocking "peer-copy-holds-back-non-blocking" incidental
            "Programming Guide, Peer-to-Peer Memory Copy"
            "Later work of non-blocking streams is behind a synchronous peer copy too."
        CopySyncDeviceToDevice "copy-sync-device-to-device" no_edge
            "Runtime API, API synchronization behavior"
            "A synchronous copy from device to device makes the host wait for nothing."
        CopyAsync "copy-async" no_edge
            "Runtime API, API synchronization behavior"
            "An asynchronous copy between pinned memory and the device makes the host wait for nothing."
        CopyAsyncPageableToDevice "copy-async-pageable-to-device" no_edge
            "Runtime API, API synchronization behavior"
            "An asynchronous copy from pageable memory does not put the host behind its write on the device."
        CopyPageableSourceFloats "copy-pageable-source-floats" no_edge
            "Runtime API, API synchronization behavior"
            "An asynchronous copy may read a pageable source at any time from the call on, so not behind the stream's earlier work."
        CopySourceAny "copy-source-any" no_edge
            "Driver API, CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL, _ANY"
            "A copy whose source order is not the stream's does not read its source behind the stream's earlier work."
        PeerCopyAsync "peer-copy-async" no_edge
            "Programming Guide, Peer-to-Peer Memory Copy"
            "An asynchronous peer copy orders nothing on the peer device."
        BatchEntries "batch-entries" no_edge
            "Driver API, cuMemcpyBatchAsync"
            "The copies of one batch are not ordered among themselves."
    }
    "Memsets and launches" {
        MemsetSyncPinned "memset-sync-pinned" documented
            "Runtime API, API synchronization behavior"
            "A synchronous memset of pinned memory is done at return."
        MemsetSyncManaged "memset-sync-managed" incidental
            "Runtime API, API synchronization behavior (older pages only)"
            "A synchronous memset of managed memory is done at return."
        ProgrammaticWait "programmatic-wait" documented
            "PTX ISA, griddepcontrol; Programming Guide, Programmatic Dependent Launch"
            "What a kernel launched with programmatic serialization does behind its wait is behind its primary."
        ProgrammaticBase "programmatic-base" documented
            "Programming Guide, Programmatic Dependent Launch"
            "A kernel launched with programmatic serialization is behind what its primary was behind when that began."
        ProgrammaticTrigger "programmatic-trigger" documented
            "PTX ISA, griddepcontrol; Programming Guide, Programmatic Dependent Launch"
            "It is also behind what its primary waited for, where the primary triggers behind its wait or not at all."
        ProgrammaticEnd "programmatic-end" documented
            "Programming Guide, Programmatic Dependent Launch"
            "It is also behind the reads of a primary that never triggers, since all blocks of the primary have ended by then."
        ProgrammaticJoin "programmatic-join" documented
            "Programming Guide, Programmatic Dependent Launch"
            "The next ordinary operation of the stream is behind all kernels with programmatic serialization before it."
        MultiDeviceWaits "multi-device-waits" documented
            "Driver API, cuLaunchCooperativeKernelMultiDevice"
            "Each kernel of a launch on several devices is behind the earlier work of all its streams, unless the flag says not."
        MultiDeviceHoldsBack "multi-device-holds-back" documented
            "Driver API, cuLaunchCooperativeKernelMultiDevice"
            "Later work of all streams of a launch on several devices is behind each of its kernels, unless the flag says not."
        MemsetIsAsynchronous "memset-is-asynchronous" no_edge
            "Runtime API, API synchronization behavior"
            "A memset of device memory makes the host wait for nothing, in its synchronous form either."
        ProgrammaticWithoutWait "programmatic-without-wait" no_edge
            "Programming Guide, Programmatic Dependent Launch"
            "What a kernel launched with programmatic serialization does before its wait is not behind what its primary writes, even if that never triggers."
        ProgrammaticEarlyTrigger "programmatic-early-trigger" no_edge
            "PTX ISA, griddepcontrol"
            "A kernel that triggers before its own wait is over lets its dependents begin before what it waits for has ended."
        LaunchIsAsynchronous "launch-is-asynchronous" no_edge
            "Programming Guide, Asynchronous Concurrent Execution"
            "A launch makes the host wait for nothing."
    }
    "Memory's life" {
        FreeMayWait "free-may-wait" incidental
            "Driver API, cuMemFree, cuMemFreeHost, cuMemHostUnregister, cuMemUnmap"
            "The free of memory that is not stream-ordered may wait for the device."
        ContextDestroyMayWait "context-destroy-may-wait" incidental
            "Driver API, cuCtxDestroy, cuDevicePrimaryCtxReset"
            "The end of a context, which is the end of its memory, may wait for its work."
        AllocationOrdersNothing "allocation-orders-nothing" no_edge
            "Programming Guide, Implicit Synchronization"
            "An allocation of device, page-locked, registered, managed or array memory waits for nothing and holds nothing back."
        PoolFreeWaitsForNothing "pool-free-waits-for-nothing" no_edge
            "Driver API, cuMemFree"
            "Freeing stream-ordered memory outside of a stream waits for nothing."
        PoolReuse "pool-reuse" no_edge
            "Programming Guide, Stream Ordered Memory Allocator: reuse policies"
            "That a pool hands memory out again orders nothing that the program may rely on."
        RegionEndIsNoUse "region-end-is-no-use" no_edge
            "NVTX, nvToolsExtMem.h: NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR, nvtxMemRegionsUnregister"
            "The end of a region of a memory pool is for what is issued later: what still runs races with the next owner of the bytes, and with the free of the pool's memory."
        PrefetchTouchesNothing "prefetch-touches-nothing" no_edge
            "Driver API, cuMemPrefetchAsync"
            "A prefetch is an operation of its stream that touches no data; only a discard may not run beside it."
        AttachOrdersNothing "attach-orders-nothing" no_edge
            "Driver API, cuStreamAttachMemAsync"
            "Attaching managed memory is an operation of its stream and orders nothing else."
    }
    "Graphs" {
        GraphLaunchOrder "graph-launch-order" documented
            "Driver API, cuGraphLaunch"
            "A launch of an executable graph is behind its earlier launches, in whatever stream."
        GraphEdge "graph-edge" documented
            "Programming Guide, Graph Structure"
            "A node of a graph is behind the nodes that it depends on."
        GraphProgrammaticEdge "graph-programmatic-edge" documented
            "Programming Guide, Programmatic Dependent Launch in CUDA Graphs"
            "What a kernel node behind a programmatic edge does behind its wait is behind the node before."
        GraphConditionalOrder "graph-conditional-order" documented
            "Programming Guide, Conditional Graph Nodes"
            "An iteration of a conditional body is behind the iteration before."
        GraphEventRecordNode "graph-event-record-node" documented
            "Driver API, cuGraphAddEventRecordNode"
            "At each launch an event record node captures what it depends on."
        GraphEventWaitNode "graph-event-wait-node" documented
            "Driver API, cuGraphAddEventWaitNode"
            "An event wait node and what depends on it are behind what the event had captured at the launch."
        GraphSignalNode "graph-signal-node" documented
            "Driver API, cuGraphAddBatchMemOpNode, cuGraphAddExternalSemaphoresSignalNode"
            "Stream memory operations and semaphores in nodes order as they do in streams."
        TwoExecutableGraphs "two-executable-graphs" no_edge
            "Driver API, cuGraphLaunch"
            "Launches of two executable graphs are ordered by their streams only, of one graph or of two."
        GraphAddressReuse "graph-address-reuse" no_edge
            "Programming Guide, Graph Memory Nodes: Address Reuse within a Graph"
            "That a graph's allocation node hands out an address again makes two memories; a node means the one whose allocation is before it and whose free is not."
        GraphAutoFree "graph-auto-free" no_edge
            "Driver API, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH"
            "A launch that frees what the graph's launch before has left allocated waits for nobody who still uses it."
        CapturedCall "captured-call" no_edge
            "Programming Guide, Stream Capture"
            "A call that is captured runs when its graph is launched and orders nothing before."
    }
    "Stream memory operations and semaphores" {
        SignalWait "signal-wait" documented
            "Driver API, Stream Memory Operations"
            "A wait for a value in memory is behind the earlier work of the stream whose write satisfies it."
        SignalReset "signal-reset" documented
            "Driver API, cuStreamWaitValue32"
            "A wait is not satisfied by a signal whose word a memset, a copy, a kernel or the host has overwritten before the wait."
        SemaphoreWait "semaphore-wait" documented
            "Driver API, cuWaitExternalSemaphoresAsync"
            "A wait for an external semaphore is behind the earlier work of the stream whose signal satisfies it."
        SignalWithoutBarrier "signal-without-barrier" no_edge
            "Driver API, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER"
            "A write without memory barrier orders nothing for who sees its value."
        SignalReadByHost "signal-read-by-host" no_edge
            "Driver API, cuStreamWriteValue32"
            "A host that reads the word of a stream memory operation may be meant to look until it sees the value: a finding of the two is at most possible."
        SignalFromOutside "signal-from-outside" no_edge
            "Driver API, Stream Memory Operations"
            "What a wait is behind that no signal issued before satisfies is not known: findings behind it are at most possible."
    }
    "Collectives" {
        CollectiveGroup "collective-group" documented
            "NCCL user guide, CUDA Stream Semantics: Mixing Multiple Streams within the same ncclGroupStart/End() group"
            "A group of collective calls in several streams of a device is behind the earlier work of all of them, and their later work is behind the group."
        CollectiveRanks "collective-ranks" no_edge
            "NCCL user guide, Using NCCL: CUDA stream semantics"
            "A collective or point-to-point call is an operation of its stream; what other ranks do orders nothing among a rank's own streams."
    }
    "Host" {
        HostAccess "host-access" documented
            "Programming Guide, Page-Locked Host Memory"
            "The host's own accesses are behind what it knows to be done."
        HostFunctionEntry "host-function-entry" documented
            "Driver API, cuLaunchHostFunc"
            "While a host function runs, the host is behind its stream's work before the function."
        HostFunctionOrder "host-function-order" documented
            "Driver API, cuLaunchHostFunc"
            "Later work of the stream is behind what a host function does."
        HostFunctionReturn "host-function-return" documented
            "Driver API, cuLaunchHostFunc"
            "When a host function has run, the host is behind it."
        HostThreads "host-threads" documented
            "POSIX, memory synchronization (strict host threads only)"
            "A host thread that acquires a lock, semaphore, barrier or thread is behind what released it."
        FileBatchComplete "file-batch-complete" documented
            "cuFile API, cuFileBatchIOGetStatus"
            "Once a batch of file transfers is seen complete, the host is behind it."
        FileBatchRunsAlone "file-batch-runs-alone" no_edge
            "cuFile API, cuFileBatchIOSubmit"
            "The transfers of a batch are behind what the host knew at the submission and before nothing until they are seen complete."
    }
}

#[cfg(test)]
mod tests {
    use super::Rule;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_kebab_case_unique_and_parse_back() {
        let ids: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        assert_eq!(ids.len(), Rule::ALL.len());
        for rule in Rule::ALL {
            assert!(rule.id().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{rule:?}");
            assert_eq!(rule.id().parse(), Ok(*rule));
        }
    }

    #[test]
    fn statements_are_sentences_and_sources_are_named() {
        for rule in Rule::ALL {
            assert!(rule.statement().ends_with('.') && !rule.source().is_empty(), "{rule:?}");
        }
    }
}
