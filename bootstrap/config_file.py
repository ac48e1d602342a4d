"""The options of a command in a YAML file: by their names as typed, without dashes.

A value is read as the same text on the command line is: do not go by its YAML type, which takes `off` for false and
8e-3 for a text.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

from common.display import printable
from common.errors import ShoalError
from common.files import write_whole
from common.version import VERSION

if TYPE_CHECKING:
    from infra.document import Document

CONFIG = "config.yaml"
"""The file in the folder of a run on this machine that repeats it."""
_HEAD = "# Options of `shoal "


class Entry(NamedTuple):
    words: tuple[str, ...]
    """As they would be typed."""
    switch: bool | None
    """Where YAML takes it for true or false."""


def read_config(path: Path) -> "tuple[Document, dict[str, Entry]]":
    """The options in a file by their names, and the document, which names lines. Raises TopologyError."""
    from infra.document import read

    document = read(path, str(path), "a file of options")
    nodes: dict[str, yaml.Node] = {key.value: value for key, value in document.root.value}
    found = {}
    for name, node in nodes.items():
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if any(not isinstance(part, yaml.ScalarNode) or part.tag.endswith(":null") for part in parts):
            raise document.fault((name,), f"{name} must be a value, or a list of values; write it, or leave it out.")
        if any("\0" in part.value for part in parts):
            raise document.fault((name,), f"{name} has the character NUL, which nothing has a use for; leave it out.")
        switch = document.data[name] if isinstance(document.data[name], bool) else None
        found[name] = Entry(tuple(part.value for part in parts), switch)
    return document, found


def write_config(path: Path, command: str, words: Mapping[str, Sequence[str]]) -> None:
    """Write the words of each option of a command, by its name; none are those of an option without a value. Raises
    OSError, and ShoalError where another file would be lost."""
    if path.exists() and not path.read_bytes().startswith(_HEAD.encode()):
        raise ShoalError(f"{path} is there, and Shoal did not write it; rename it, or choose another place")
    head = f"{_HEAD}{command}` {VERSION}. Paths are as typed in {printable(str(Path.cwd()))}.\n"
    content = {name: True if not given else given[0] if len(given) == 1 else [*given] for name, given in words.items()}
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
    write_whole(path, (head + text).encode())


class _Dumper(yaml.SafeDumper):
    """Writes numbers without quotes, and texts with line breaks of any kind so that they are read as they are."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [each for each in resolvers if each[0].endswith((":bool", ":null", ":merge"))]
        for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }

    def represent_str(self, data: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if data.isprintable() else '"')


_Dumper.add_representer(str, _Dumper.represent_str)
