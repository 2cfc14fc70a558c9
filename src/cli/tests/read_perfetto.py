"""Reads the Perfetto form of traces/fail/csan_expired_record.trace with Perfetto's own code."""

import subprocess
import sys

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2


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
    assert all("no times" in t.name for t in streams)
    events = [p.track_event for p in trace.packet if p.HasField("track_event")]
    races = [e for e in events if list(e.categories) == ["race"]]
    assert len(races) == 1
    (flow,) = races[0].terminating_flow_ids
    begins = [e for e in events if flow in e.flow_ids]
    assert [e.name for e in begins] == ["load"], begins
    return "messages read"


def processor(path):
    from perfetto.trace_processor import TraceProcessor

    try:
        opened = TraceProcessor(trace=path)
    except (subprocess.CalledProcessError, OSError) as error:
        return f"no trace processor: {error}"
    with opened as tp:
        def rows(query):
            return list(tp.query(query))

        errors = rows("select name, value from stats where severity = 'error' and value > 0")
        assert not errors, [(row.name, row.value) for row in errors]
        assert len(rows("select * from slice where name glob 'RACE: *'")) == 1
        # One arrow of the wait, one of the race.
        assert len(rows("select * from flow")) == 2
        assert not rows(
            "select s.name from slice s join track t on s.track_id = t.id "
            "where t.name glob 'stream *' and s.dur > 0"
        )
    return "trace read by the processor"


print(messages(sys.argv[1]))
print(processor(sys.argv[1]))
