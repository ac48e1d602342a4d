"""Loads a safe subset of YAML: strings, numbers, booleans, lists and mappings.

Tags and aliases are errors, because a few lines with aliases can expand to gigabytes. Dates and base-60 numbers are
read as strings.
"""

import re
from typing import Any

import yaml

MOST_BYTES = 1 << 18
_MOST_DEPTH, _MOST_CHARACTERS, _MOST_DIGITS = 50, 10_000, 18
_TAG = "tag:yaml.org,2002:"
_NUMBERS = {
    f"{_TAG}int": re.compile(r"[-+]?(?:0|[1-9][0-9_]*)"),
    f"{_TAG}float": re.compile(
        r"[-+]?(?:[0-9][0-9_]*\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+|[0-9]+[eE][-+]?[0-9]+|\.inf)|\.nan"
    ),
}


class Refused(yaml.MarkedYAMLError):
    """Unsupported YAML. `problem` is a sentence for the user without the full stop."""


class StrictLoader(yaml.SafeLoader):
    """YAML loader that raises Refused for unsupported YAML."""

    yaml_implicit_resolvers = {}  # noqa: RUF012  # a selection of PyYAML's is added below

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose the next YAML node. Raises Refused if the node is unsupported or exceeds a limit."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        where = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            raise _refused("aliases are not supported; repeat the aliased part", where)
        if getattr(event, "tag", None) is not None:
            raise _refused("tags, such as !!int, are not supported; remove the tag", where)
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise _refused(f"the file has more than {_MOST_DEPTH} nested levels; use fewer levels", where)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, yaml.ScalarNode):
            _check_scalar(node)
        elif isinstance(node, yaml.MappingNode):
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value == "on":
                    key.tag = f"{_TAG}str"  # YAML 1.1 would read the field name `on` as true
        return node


def _check_scalar(node: yaml.ScalarNode) -> None:
    if node.tag == f"{_TAG}int" and sum(map(str.isdigit, node.value)) > _MOST_DIGITS:
        raise _refused(f"a number has more than {_MOST_DIGITS} digits; write a smaller one", node.start_mark)
    if len(node.value) > _MOST_CHARACTERS:
        raise _refused(f"a string is longer than {_MOST_CHARACTERS:,} characters; write a shorter one", node.start_mark)


def _refused(sentence: str, mark: Any) -> Refused:
    return Refused(problem=sentence, problem_mark=mark)


for _first, _resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items():
    for _tag, _pattern in _resolvers:
        if _tag not in (f"{_TAG}timestamp", f"{_TAG}value", *_NUMBERS):
            StrictLoader.add_implicit_resolver(_tag, _pattern, [_first])
for _tag, _pattern in _NUMBERS.items():
    StrictLoader.add_implicit_resolver(_tag, re.compile(f"(?:{_pattern.pattern})$"), list("-+.0123456789"))
