use super::bench::{Bench, INVALID};
use streamsan_model::{Action, Context, Entity, Status, Stream, StreamId, StreamKind, ThreadId};
use streamsan_wire::Api;

fn streams(bench: &Bench) -> Vec<&Stream> {
    bench
        .entities
        .iter()
        .filter_map(|e| match e {
            Entity::Stream(stream) => Some(stream),
            _ => None,
        })
        .collect()
}

fn carrier(bench: &mut Bench, api: Api, handle: u64) -> StreamId {
    let operation = bench.call(api, &[handle], &[]);
    operation.action.stream().expect("the call is issued to a stream")
}

#[test]
fn default_streams_follow_the_symbol_the_handle_and_the_context() {
    let mut bench = Bench::new();
    let (plain, twin) = (Api::cuStreamSynchronize, Api::cuStreamSynchronize_ptsz);
    let legacy = carrier(&mut bench, plain, 0);
    let thread = carrier(&mut bench, twin, 0);
    assert_ne!(legacy, thread);
    for (api, handle, expected) in
        [(plain, 1, legacy), (plain, 2, thread), (twin, 1, legacy), (twin, 2, thread)]
    {
        assert_eq!(carrier(&mut bench, api, handle), expected, "{handle} by {}", api.name());
    }

    bench.thread = 1;
    assert_eq!(carrier(&mut bench, plain, 0), legacy);
    assert_ne!(carrier(&mut bench, twin, 0), thread);
    bench.context = 0xd0;
    assert_ne!(carrier(&mut bench, plain, 0), legacy);

    let kinds: Vec<_> = streams(&bench).iter().map(|s| (s.kind, s.thread)).collect();
    assert_eq!(
        kinds,
        [
            (StreamKind::Legacy, None),
            (StreamKind::PerThread, Some(ThreadId(0))),
            (StreamKind::PerThread, Some(ThreadId(1))),
            (StreamKind::Legacy, None),
        ]
    );
}

/// Not every thread that has a ring makes calls; a trace has no number for the others.
#[test]
fn threads_are_numbered_as_their_first_calls_come() {
    let mut bench = Bench::new();
    for (key, id) in [(3, 0), (0, 1), (3, 0), (5, 2)] {
        bench.thread = key;
        let operation = bench.call(Api::cuStreamSynchronize_ptsz, &[0], &[]);
        assert_eq!(operation.thread, ThreadId(id));
    }
    let of_entities = |entity: &Entity| match entity {
        Entity::Thread(thread) => Some((thread.id, thread.tid)),
        _ => None,
    };
    let threads: Vec<_> = bench.entities.iter().filter_map(of_entities).collect();
    assert_eq!(threads, [(ThreadId(0), 103), (ThreadId(1), 100), (ThreadId(2), 105)]);
    let owners: Vec<_> = streams(&bench).iter().map(|s| s.thread).collect();
    assert_eq!(owners, [Some(ThreadId(0)), Some(ThreadId(1)), Some(ThreadId(2))]);
}

#[test]
fn reused_stream_handle_is_a_new_stream() {
    let mut bench = Bench::new();
    let create = |bench: &mut Bench, flags| match bench
        .call(Api::cuStreamCreate, &[0x10, flags], &[0x500, 7])
        .action
    {
        Action::StreamCreate { stream } => stream,
        other => panic!("{other:?}"),
    };
    let first = create(&mut bench, 1);
    assert_eq!(carrier(&mut bench, Api::cuStreamQuery, 0x500), first);
    let destroyed = bench.call(Api::cuStreamDestroy_v2, &[0x500], &[]);
    assert_eq!(destroyed.action, Action::StreamDestroy { stream: first });
    let second = create(&mut bench, 0);
    assert_ne!(first, second);
    assert_eq!(carrier(&mut bench, Api::cuStreamQuery, 0x500), second);
    let kinds: Vec<_> = streams(&bench).iter().map(|s| (s.kind, s.driver_id)).collect();
    assert_eq!(kinds, [(StreamKind::NonBlocking, 7), (StreamKind::Blocking, 7)]);
    assert!(bench.reasons().is_empty());
}

#[test]
fn priority_is_signed() {
    let mut bench = Bench::new();
    let args = [0x10, 0, -2i64 as u64];
    bench.call(Api::cuStreamCreateWithPriority, &args, &[0x500, u64::MAX]);
    let stream = streams(&bench)[0];
    assert_eq!((stream.priority, stream.driver_id), (-2, 0));
}

#[test]
fn unknown_stream_is_declared_once_with_the_least_order() {
    let mut bench = Bench::new();
    let first = carrier(&mut bench, Api::cuStreamSynchronize, 0x900);
    assert_eq!(carrier(&mut bench, Api::cuStreamSynchronize, 0x900), first);
    assert_eq!(streams(&bench)[0].kind, StreamKind::NonBlocking);
    assert_eq!(bench.reasons().len(), 1);
}

#[test]
fn refused_call_declares_nothing() {
    let mut bench = Bench::new();
    let operation = bench.fails(Api::cuStreamSynchronize, &[0x900], INVALID);
    assert_eq!((operation.action, operation.status), (Action::Other, Status(INVALID)));
    let operation = bench.fails(Api::cuEventCreate, &[0x10, 0], INVALID);
    assert_eq!(operation.action, Action::Other);
    assert!(streams(&bench).is_empty());
    assert!(bench.reasons().is_empty());
}

#[test]
fn query_of_unfinished_work_keeps_its_status() {
    let mut bench = Bench::new();
    bench.call(Api::cuEventCreate, &[0x10, 2], &[0x700]);
    let operation = bench.fails(Api::cuEventQuery, &[0x700], Status::NOT_READY.0);
    assert!(matches!(operation.action, Action::EventQuery { .. }));
    assert_eq!(operation.status, Status::NOT_READY);
}

#[test]
fn primary_context_lives_from_first_retain_to_last_release() {
    let mut bench = Bench::new();
    let device = 1;
    let mut actions = Vec::new();
    for _ in 0..2 {
        actions.push(bench.call(Api::cuDevicePrimaryCtxRetain, &[0x10, device], &[0xc0]).action);
    }
    for _ in 0..2 {
        actions.push(bench.call(Api::cuDevicePrimaryCtxRelease_v2, &[device], &[]).action);
    }
    let Action::ContextCreate { context } = actions[0] else { panic!("{actions:?}") };
    assert_eq!(actions[1..], [Action::Other, Action::Other, Action::ContextDestroy { context }]);
    let declared = bench.entities.iter().find_map(|e| match e {
        Entity::Context(c) => Some((c.id, c.device.0, c.primary)),
        _ => None,
    });
    assert_eq!(declared, Some((context, 1, true)));
}

#[test]
fn destroyed_context_takes_its_handles_along() {
    let mut bench = Bench::new();
    bench.call(Api::cuCtxCreate_v2, &[0x10, 0, 0], &[0xc0]);
    bench.alloc(0x1000, 0x100);
    let before = carrier(&mut bench, Api::cuStreamSynchronize, 0);
    bench.call(Api::cuCtxDestroy_v2, &[0xc0], &[]);
    bench.call(Api::cuCtxCreate_v2, &[0x10, 0, 0], &[0xc0]);
    assert_ne!(carrier(&mut bench, Api::cuStreamSynchronize, 0), before);
    // The memory is gone with the context, so there is nothing to free.
    assert_eq!(bench.call(Api::cuMemFree_v2, &[0x1000], &[]).action, Action::Other);
}

#[test]
fn context_synchronize_takes_the_named_or_the_current_one() {
    let mut bench = Bench::new();
    let of = |action| match action {
        Action::ContextSynchronize { context } => context,
        other => panic!("{other:?}"),
    };
    let current = of(bench.call(Api::cuCtxSynchronize, &[], &[]).action);
    assert_eq!(of(bench.call(Api::cuCtxSynchronize_v2, &[0], &[]).action), current);
    assert_ne!(of(bench.call(Api::cuCtxSynchronize_v2, &[0xd0], &[]).action), current);
}

fn contexts(bench: &Bench) -> Vec<&Context> {
    bench
        .entities
        .iter()
        .filter_map(|e| match e {
            Entity::Context(context) => Some(context),
            _ => None,
        })
        .collect()
}

#[test]
fn devices_say_whether_the_host_may_touch_managed_memory() {
    let mut bench = Bench::new();
    bench.call(Api::cuCtxCreate_v2, &[0x10, 0, 0], &[0xc0, 0]);
    bench.call(Api::cuDevicePrimaryCtxRetain, &[0x10, 1], &[0xc1, 1]);
    bench.call(Api::cuCtxSynchronize_v2, &[0xc2], &[]);
    let known: Vec<_> = contexts(&bench).iter().map(|c| c.concurrent_managed_access).collect();
    assert_eq!(known, [false, true, true]);
}

#[test]
fn green_context_is_a_part_of_its_devices_primary_one() {
    let mut bench = Bench::new();
    let created = bench.call(Api::cuGreenCtxCreate, &[0x10, 0x20, 1, 1], &[0x90, 1]);
    let Action::ContextCreate { context: green } = created.action else { panic!("{created:?}") };
    // The primary context is known by the green one before anybody retains it.
    let retained = bench.call(Api::cuDevicePrimaryCtxRetain, &[0x10, 1], &[0xc1, 1]);
    let Action::ContextCreate { context: primary } = retained.action else {
        panic!("{retained:?}")
    };
    let declared = contexts(&bench);
    let found = declared.iter().find(|c| c.id == green).expect("declared");
    assert_eq!((found.parent, found.device.0, found.primary), (Some(primary), 1, false));
    assert_eq!(declared.len(), 2);

    bench.call(Api::cuCtxFromGreenCtx, &[0x10, 0x90], &[0xc9]);
    let named = bench.call(Api::cuCtxSynchronize_v2, &[0xc9], &[]);
    assert_eq!(named.action, Action::ContextSynchronize { context: green });
    bench.call(Api::cuGreenCtxStreamCreate, &[0x10, 0x90, 1, 0], &[0x500, 3]);
    assert_eq!(streams(&bench)[0].context, green);
    bench.call(Api::cuEventCreate, &[0x10, 2], &[0x700]);
    let recorded = bench.call(Api::cuGreenCtxRecordEvent, &[0x90, 0x700], &[]);
    assert!(
        matches!(recorded.action, Action::ContextRecordEvent { context, .. } if context == green)
    );
    let waited = bench.call(Api::cuGreenCtxWaitEvent, &[0x90, 0x700], &[]);
    assert!(matches!(waited.action, Action::ContextWaitEvent { context, .. } if context == green));

    // Memory belongs to the primary context and outlives the green one.
    bench.context = 0xc9;
    let memory = bench.alloc(0x1000, 0x100);
    assert_eq!(bench.declared(memory).context, Some(primary));
    let destroyed = bench.call(Api::cuGreenCtxDestroy, &[0x90], &[]);
    assert_eq!(destroyed.action, Action::ContextDestroy { context: green });
    bench.context = 0xc1;
    let freed = bench.call(Api::cuMemFree_v2, &[0x1000], &[]);
    assert_eq!(freed.action, Action::Free { allocation: memory, stream: None });
}
