"""A streaming job: the options of `hadoop-streaming`, and the input of its map tasks.

A file is one split, as with a large `mapreduce.input.fileinputformat.split.minsize`. The rules for lines are those of
Hadoop's `LineRecordReader`.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.hadoop.paths import Files

_CHUNK = 1 << 20
_COMPRESSED = (".gz", ".bz2")
_UNSUPPORTED = (
    "stream.",
    "textinputformat.record.delimiter",
    "mapreduce.job.inputformat",
    "mapreduce.job.output.key.comparator",
    "mapreduce.job.partitioner",
    "mapreduce.output.fileoutputformat.compress",
    "mapreduce.partition.",
)


@dataclass(kw_only=True)
class StreamingJob:
    """A streaming job as its command line defines it. `shipped` has the URI of each file that Hadoop copies to the
    folder of each task, by its name in this folder."""

    properties: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    shipped: dict[str, str] = field(default_factory=dict)
    mapper: str = ""
    reducer: str = ""
    inputs: list[str] = field(default_factory=list)
    output: str = ""

    @property
    def reduces(self) -> int:
        """Number of reduce tasks. If 0, the output of the map tasks is the output of the job."""
        return whole_number(self.properties, "mapreduce.job.reduces", 1)


def whole_number(properties: Mapping[str, str], name: str, default: int) -> int:
    """Return the value of a property. Raises EmulatorError if the value is not a whole number of at least 0."""
    text = properties.get(name, str(default))
    if not text.isdecimal():
        raise EmulatorError(f"Property {name} is {text!r}; write a whole number of at least 0.")
    return int(text)


def parse_options(arguments: Sequence[str]) -> StreamingJob:
    """Parse the options of `hadoop-streaming`. Raises EmulatorError for an unknown or wrong option."""
    job, rest = StreamingJob(), iter(arguments)
    for option in rest:
        if (value := next(rest, None)) is None:
            raise EmulatorError(f"Streaming option {option} needs a value.")
        name, _, setting = value.partition("=")
        if option == "-D":
            job.properties[name] = setting
        elif option == "-cmdenv":
            job.environment[name] = setting
        elif option == "-files":
            job.shipped |= _shipped(value)
        elif option == "-input":
            job.inputs.append(value)
        elif option in ("-mapper", "-reducer", "-output"):
            setattr(job, option[1:], value)
        else:
            raise EmulatorError(f"The embedded Hadoop does not support streaming option {option}.")
    _check(job)
    return job


def _check(job: StreamingJob) -> None:
    for name in job.properties:
        if name.startswith(_UNSUPPORTED):
            raise EmulatorError(f"The embedded Hadoop does not support property {name}.")
    for name in ("inputs", "output", "mapper", *(["reducer"] if job.reduces else [])):
        if not getattr(job, name):
            raise EmulatorError(f"Streaming option -{name.removesuffix('s')} is missing.")


def _shipped(value: str) -> dict[str, str]:
    """Return the URIs of the option -files, by the names of the files in a task's folder."""
    found = {}
    for uri in value.split(","):
        path, _, name = uri.partition("#")
        name = name or path.rpartition("/")[2]
        if name in ("", ".", "..") or "/" in name:
            raise EmulatorError(f"Option -files: {name!r} cannot name a file in a task's folder; append #NAME.")
        found[name] = path if ":" in path else f"file://{Path(path).resolve()}"
    return found


def input_files(files: Files, path: str) -> list[str]:
    """Return the paths of the files of an input path, which is a file or a folder, without hidden files. Raises
    EmulatorError if the path does not exist, or has a folder or a compressed file."""
    if (entry := files.find(path)) is None:
        raise EmulatorError(f"Input path does not exist: {path}")
    inside = files.children(path) if entry.folder else [entry]
    found = [each for each in inside if not each.name.startswith(("_", "."))]
    for each in found:
        if each.folder:
            raise EmulatorError(f"Not a file: {each.path}")
        if each.name.endswith(_COMPRESSED):
            raise EmulatorError(f"The embedded Hadoop does not read compressed input: {each.path}")
    return [each.path for each in found]


def read_lines(files: Files, path: str) -> Iterator[bytes]:
    """Yield the lines of a file in blocks of bytes. A line that ends at a newline, a carriage return or both then ends
    at a newline. So does the last line."""
    last = b"\n"
    with files.open(path) as stream, io.TextIOWrapper(stream, "latin-1", newline=None) as lines:
        while block := lines.read(_CHUNK).encode("latin-1"):
            last = block[-1:]
            yield block
    if last != b"\n":
        yield b"\n"
