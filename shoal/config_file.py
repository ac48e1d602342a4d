"""Reads and writes YAML files for --config. Their keys are the names of a command's options, without dashes.

A value is parsed as the same text would be on the command line. Do not use the type that YAML assigns, because YAML
reads `off` as false and 8e-3 as a string.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

from common.display import printable
from common.errors import ShoalError
from common.files import DOCUMENT_BYTES, read_regular, write_whole
from common.version import VERSION

if TYPE_CHECKING:
    from infra.document import Document

CONFIG = "config.yaml"
"""File in a local run's folder with the options that repeat the run."""
_HEAD = "# Options of `shoal "


class Entry(NamedTuple):
    words: tuple[str, ...]
    """Values as they would be typed on the command line."""
    switch: bool | None
    """Value of a YAML boolean; None if the value is not a boolean."""


def read_config(path: Path) -> "tuple[Document, dict[str, Entry]]":
    """Return the YAML document, for messages with line numbers, and the entries by option. Raises TopologyError."""
    from infra.document import read

    document = read(path, str(path), "a file of options")
    nodes: dict[str, yaml.Node] = {key.value: value for key, value in document.root.value}
    entries = {}
    for name, node in nodes.items():
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if any(not isinstance(part, yaml.ScalarNode) or part.tag.endswith(":null") for part in parts):
            raise document.fault(
                (name,), f"{name} must be a value or a list of values; add a value, or remove the line."
            )
        if any("\0" in part.value for part in parts):
            raise document.fault((name,), f"{name} contains a NUL character; remove it.")
        switch = document.data[name] if isinstance(document.data[name], bool) else None
        entries[name] = Entry(tuple(part.value for part in parts), switch)
    return document, entries


def write_config(path: Path, command: str, words: Mapping[str, Sequence[str]]) -> None:
    """Write a command's options to a YAML file. `words` maps each option's name to its values; a flag has no values.

    Raises OSError, and ShoalError if `path` is a file that Shoal did not write.
    """
    if path.exists() and not read_regular(path, DOCUMENT_BYTES).startswith(_HEAD.encode()):
        raise ShoalError(f"{path} already exists, and Shoal did not write it; rename it, or choose another --output")
    head = f"{_HEAD}{command}` {VERSION}. Relative paths start at {printable(str(Path.cwd()))}.\n"
    content = {name: True if not given else given[0] if len(given) == 1 else [*given] for name, given in words.items()}
    text = yaml.safe_dump(content, sort_keys=False, width=10**6)
    write_whole(path, (head + text).encode())
