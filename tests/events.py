"""Event files as TensorBoard reads them: checksums hold, and a session that starts makes void what came after it."""

import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.record_writer import masked_crc32c


def read(path: Path) -> Iterator[Event]:
    """The events of one file, which must be whole."""
    content = path.read_bytes()
    while content:
        size = struct.unpack("<Q", content[:8])[0]
        event, content = content[: 16 + size], content[16 + size :]
        assert len(event) == 16 + size
        assert struct.unpack("<I", event[8:12])[0] == masked_crc32c(event[:8])
        assert struct.unpack("<I", event[-4:])[0] == masked_crc32c(event[12:-4])
        yield Event.FromString(event[12:-4])


def events(folder: Path) -> list[Event]:
    """The events of all files of a folder that count."""
    found: list[Event] = []
    for path in sorted(folder.iterdir()):
        first, *others = read(path)
        assert first.file_version == "brain.Event:2"
        for event in others:
            if event.session_log.status == SessionLog.START:
                found = [each for each in found if each.step < event.step]
            found.append(event)
    return found


def points(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """The curves: steps and values by name."""
    found = defaultdict(list)
    for event in events(folder):
        for value in event.summary.value:
            if value.HasField("simple_value"):
                found[value.tag].append((event.step, value.simple_value))
    return dict(found)
