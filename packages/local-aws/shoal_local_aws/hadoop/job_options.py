"""Parses the options of `hadoop-streaming`.

Generic options (-D, -files) must precede the job's options, because Hadoop's parser for generic options stops at the
first other option.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shoal_local_aws.emulator_error import EmulatorError

DELIMITER = "textinputformat.record.delimiter"
_UNSUPPORTED = (
    "stream.",
    "mapreduce.job.inputformat",
    "mapreduce.job.output.key.comparator",
    "mapreduce.job.partitioner",
    "mapreduce.output.fileoutputformat.compress",
    "mapreduce.partition.",
)


@dataclass(kw_only=True)
class StreamingJob:
    """A streaming job as its command line defines it.

    properties: Configuration properties of the job, by name.
    environment: Additional environment variables of the tasks.
    shipped: URI of each file that Hadoop copies to the folder of each task, by its name in this folder.
    """

    properties: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    shipped: dict[str, str] = field(default_factory=dict)
    mapper: str = ""
    combiner: str = ""
    """Command that Hadoop runs on the sorted output of each map task, any number of times."""
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
    """Parse the options of `hadoop-streaming`: first the generic options, then the job's options.

    Raises:
        EmulatorError: An option is unknown, not emulated or in the wrong place, or its value is missing or invalid.
    """
    job = StreamingJob()
    generic = True
    for option, value in _pairs(arguments):
        if option in ("-D", "-files"):
            if not generic:
                raise EmulatorError(f"Generic option {option} must precede the streaming options.")
            _read_generic(job, option, value)
        else:
            generic = False
            _read_streaming(job, option, value)
    for name in ("inputs", "output", "mapper"):
        if not getattr(job, name):
            raise EmulatorError(f"Streaming option -{name.removesuffix('s')} is missing.")
    if job.reduces and not job.reducer:
        raise EmulatorError(
            "Streaming option -reducer is missing; for a job without reducers, give -D mapreduce.job.reduces=0."
        )
    return job


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each option with its value. `-DNAME=VALUE` is the same as `-D NAME=VALUE`."""
    rest = iter(arguments)
    for option in rest:
        if option.startswith("-D") and option != "-D":
            yield "-D", option[2:]
            continue
        value = next(rest, None)
        if value is None:
            raise EmulatorError(f"Streaming option {option} needs a value.")
        yield option, value


def _read_streaming(job: StreamingJob, option: str, value: str) -> None:
    if option == "-input":
        job.inputs.append(value)
    elif option == "-cmdenv":
        name, _, content = value.partition("=")
        job.environment[name] = content
    elif option in ("-mapper", "-combiner", "-reducer", "-output"):
        setattr(job, option[1:], value)
    else:
        raise EmulatorError(f"The embedded Hadoop does not support streaming option {option}.")


def _read_generic(job: StreamingJob, option: str, value: str) -> None:
    if option == "-files":
        for uri in value.split(","):
            path, _, name = uri.partition("#")
            name = name or path.rpartition("/")[2]
            if name in ("", ".", "..") or "/" in name:
                raise EmulatorError(f"Option -files: {name!r} cannot name a file in a task's folder; append #NAME.")
            job.shipped[name] = path if ":" in path else f"file://{Path(path).resolve()}"
        return
    name, separator, setting = value.partition("=")
    if not separator:
        raise EmulatorError(f"Property {value!r} needs a value: -D NAME=VALUE.")
    if name.startswith(_UNSUPPORTED) or (name == DELIMITER and setting != "\n"):
        raise EmulatorError(f"The embedded Hadoop does not support property {name}.")
    job.properties[name] = setting
