//! Several processes, shared physical memory, and the process that each object belongs to.

use std::collections::HashMap;
use streamsan_model::{Action, Allocation, Entities, Entity, Operation, TraceItem};
use streamsan_text::{TextTrace, parse};

fn trace(text: &str) -> TextTrace {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn entities(trace: &TextTrace) -> Entities {
    let mut entities = Entities::default();
    for item in &trace.items {
        if let TraceItem::Entity(entity) = item {
            entities.declare(entity.clone());
        }
    }
    entities
}

fn operations(trace: &TextTrace) -> Vec<&Operation> {
    let operations = trace.items.iter().filter_map(|item| match item {
        TraceItem::Operation(operation) => Some(operation),
        _ => None,
    });
    operations.collect()
}

fn buffers(trace: &TextTrace) -> HashMap<&str, &Allocation> {
    let buffers = trace.items.iter().filter_map(|item| match item {
        TraceItem::Entity(Entity::Allocation(a)) => Some((a.name.as_deref()?, a)),
        _ => None,
    });
    buffers.collect()
}

#[test]
fn streams_contexts_and_buffers_belong_to_the_process_of_the_line() {
    let trace = trace(
        "launch s1 k w:A\nP2: launch s1 k w:A\nP2T2: launch ptds k w:D1/A\n\
         T2: launch P2/s1 k w:P2/A\nP2: launch P1/s1 k w:P1/A",
    );
    let entities = entities(&trace);
    let operations = operations(&trace);
    let issuers: Vec<_> = operations.iter().map(|o| (o.process.0, o.thread.0)).collect();
    assert_eq!(issuers, [(0, 0), (1, 1), (1, 2), (0, 3), (1, 1)]);
    let streams: Vec<_> = operations.iter().filter_map(|o| o.action.stream()).collect();
    assert_eq!((streams[0], streams[1]), (streams[4], streams[3]));
    assert_ne!(streams[0], streams[1]);
    let process = |stream| {
        let context = entities.stream(stream).and_then(|s| entities.context(s.context));
        context.map(|context| (context.process.0, context.device.0))
    };
    let of_streams: Vec<_> = streams.iter().map(|&stream| process(stream)).collect();
    assert_eq!(of_streams, [0, 1, 1, 1, 0].map(|number| Some((number, 0))));
    let allocations: Vec<_> = operations.iter().map(|o| o.accesses[0].allocation.0).collect();
    assert_eq!(allocations, [0, 1, 2, 1, 0]);
    let buffers = buffers(&trace);
    assert_eq!(buffers["P2/D1/A"].process.0, 1);
}

#[test]
fn events_and_semaphores_are_shared_by_name() {
    let trace = trace(
        "record e s1\nP2: wait s1 e\nsignal s1 done\nP2: wait_signal s1 done\n\
         release lock\nP2: acquire lock\nT2: acquire lock",
    );
    let operations = operations(&trace);
    let (Action::EventRecord { event: a, .. }, Action::StreamWaitEvent { event: b, .. }) =
        (&operations[0].action, &operations[1].action)
    else {
        panic!("a record and a wait");
    };
    assert_eq!(a, b);
    let semaphore = |at: usize| match &operations[at].action {
        Action::Signals(signals) => match signals.operations[0] {
            streamsan_model::SignalOperation::Signal { object, .. }
            | streamsan_model::SignalOperation::Wait { object, .. } => object,
        },
        _ => panic!("a signal"),
    };
    assert_eq!(semaphore(2), semaphore(3));
    let object = |at: usize| match operations[at].action {
        Action::HostRelease { object } | Action::HostAcquire { object } => object,
        _ => panic!("a release"),
    };
    assert_eq!(object(4), object(6));
    assert_ne!(object(4), object(5));
}

#[test]
fn imports_and_mappings_share_physical_memory() {
    let trace = trace(
        "launch s1 k w:A w:B\nalloc X 64\nP2: import A P1/A\nP2: import Y P1/c0/X\n\
         map U 64 phys=m\nP2: map V 32 phys=m offset=32\nimport Z 64",
    );
    let buffers = buffers(&trace);
    let backing = |name| buffers[name].backing.map(|backing| (backing.memory.0, backing.offset));
    assert!(backing("A").is_some() && backing("A") == backing("P2/A"));
    assert!(backing("X").is_some() && backing("X") == backing("P2/Y"));
    assert_ne!(backing("A"), backing("X"));
    assert_eq!((backing("B"), backing("Z")), (None, None));
    let (u, v) = (backing("U").expect("mapped"), backing("P2/V").expect("mapped"));
    assert_eq!((u.0, u.1, v.1), (v.0, 0, 32));
    assert_eq!(buffers["P2/A"].range.len(), 1024);
    assert_ne!(buffers["P2/A"].range, buffers["A"].range);
}

#[test]
fn the_host_model_is_an_option_of_the_trace() {
    assert!(!trace("launch s1 k").strict_host_threads());
    assert!(trace("# why\noption strict_host_threads # strict\nlaunch s1 k").strict_host_threads());
}
