"""Reads a YAML file with its line numbers, and converts pydantic's errors to sentences for the user.

Only a safe subset of YAML is read: strings, numbers, booleans, lists and mappings. Tags and aliases are errors, because
a few lines with aliases can expand to gigabytes. Dates and base-60 numbers are read as strings. Two equal keys in a
mapping are an error. PyYAML itself would silently keep only the last key's value.
"""

import difflib
import re
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from common.checked_values import Location, first_violation, show, spell_location
from infra.topology_error import TopologyError

_SURROGATE = re.compile("[\ud800-\udfff]")
MOST_BYTES = 1 << 18
_MOST_DEPTH, _MOST_CHARACTERS, _MOST_DIGITS = 50, 10_000, 18
_TAG = "tag:yaml.org,2002:"
_NAMES = {f"{_TAG}str", f"{_TAG}merge"}
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


class FieldError(ValueError):
    """Contradiction between fields. `field` is the location of the field that the user must change."""

    def __init__(self, sentence: str, *field: str | int) -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True, kw_only=True)
class Document:
    """YAML document: its mapping as plain Python objects (`data`), and its YAML nodes with line numbers (`root`)."""

    label: str
    data: dict[str, Any]
    root: yaml.MappingNode
    of: str = "a topology"
    """Noun that messages use for the document."""

    def fault(self, location: Location, sentence: str, *, at_key: bool = False) -> TopologyError:
        """Return an error that starts with the file and the line of `location`. For a missing field, it is the line of
        the parent."""
        return _error(self.label, _line(self.root, location, at_key=at_key), sentence)

    def invalid(self, model: type[BaseModel], error: ValidationError) -> TopologyError:
        """Convert an error of pydantic to a sentence that suggests the nearest valid field or value."""
        first = first_violation(error)
        location, value = first["loc"], first["input"]
        parent, leaf = spell_location(location[:-1]) or self.of, location[-1] if location else ""
        match first["type"]:
            case "extra_forbidden":
                fields = [name for name in _model(model, location[:-1]).model_fields if location[:-1] or name != "name"]
                nearest = difflib.get_close_matches(str(leaf), fields, n=1, cutoff=0.5)
                hint = f"did you mean '{nearest[0]}'?" if nearest else f"the fields are {', '.join(fields)}."
                return self.fault(location, f"'{leaf}' is not a field of {parent}; {hint}", at_key=True)
            case "missing":
                example = _field(model, location)[1].examples
                sample = f", such as `{leaf}: {example[0]}`" if example else ""
                return self.fault(location[:-1], f"{parent} lacks the field '{leaf}'; add it{sample}.")
            case "value_error":
                cause = first["ctx"]["error"]
                location += cause.field if isinstance(cause, FieldError) else ()
                return self.fault(location, (f"{spell_location(location)}: " if location else "") + str(cause))
        name, field = _field(model, location)
        whole = "" if location[-1] == name else f" {name}"
        wrong = f"{spell_location(location)} is {show(value)}"
        return self.fault(location, f"{wrong}, but{whole} must be {field.description}{_instead(value, field)}.")


def read(path: Path, label: str, of: str = "a topology") -> Document:
    """Read a YAML file that contains one mapping. Messages use the noun `of` for the document. Raises TopologyError,
    which names `label` and the line."""
    try:
        if path.is_fifo():  # opening a pipe would block until a program writes to it
            raise TopologyError(f"{label} is a pipe; write its output to a file, and pass that file.")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise TopologyError(f"{label} has more than {MOST_BYTES:,} bytes; {of} is a few lines of YAML.")
        loader = StrictLoader(content.decode())
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise TopologyError(f"{label} contains no fields; write the fields of {of}.")
        _check_text(root, label)
        return Document(label=label, data=loader.construct_document(root), root=root, of=of)
    except UnicodeDecodeError:
        raise TopologyError(f"{label} is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise TopologyError(f"Shoal cannot read {label} ({error.strerror}); make it a readable file.") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        if isinstance(error, Refused):
            raise _error(label, line, f"{error.problem}.") from None
        problem = f"{error.context} {error.problem}" if str(error.problem).startswith("but ") else error.problem
        raise _error(label, line, f"this is not YAML ({problem}); correct that line.") from None
    except yaml.YAMLError as error:
        raise TopologyError(f"{label} is not YAML ({str(error).splitlines()[0]}); correct it.") from None


def _error(label: str, line: int, sentence: str) -> TopologyError:
    """Return an error for a line of the file. The message is a single line, with unprintable characters escaped."""
    text = f"{label}, line {line}: {sentence}"
    return TopologyError("".join(each if each.isprintable() else ascii(each)[1:-1] for each in text))


def _check_text(node: yaml.Node, label: str) -> None:
    """Raise TopologyError for duplicate keys, for keys that are not strings, and for invalid Unicode."""
    if isinstance(node, yaml.ScalarNode) and _SURROGATE.search(node.value):
        raise _error(
            label,
            node.start_mark.line + 1,
            "an escape sequence is half of a surrogate pair; write the character itself.",
        )
    seen: set[str] = set()
    for key, value in _children(node):
        if key is not None:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise _error(label, line, "the name of a field must be text, not a list or a mapping; write a word.")
            if key.tag not in _NAMES:
                raise _error(label, line, f"YAML does not read '{key.value}' as text; put it in quotes.")
            if key.value in seen:
                raise _error(label, line, f"the field '{key.value}' appears twice; remove one of them.")
            seen.add(key.value)
            _check_text(key, label)
        _check_text(value, label)


def _children(node: yaml.Node) -> list[tuple[yaml.Node | None, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        return list(node.value)
    return [(None, item) for item in node.value] if isinstance(node, yaml.SequenceNode) else []


def _line(root: yaml.Node, location: Location, *, at_key: bool) -> int:
    """Return the line number, from 1, of the deepest node that exists on the path to `location`."""
    node, line = root, root.start_mark.line
    for step in location:
        children = _children(node)
        matches = (
            children[step : step + 1]
            if isinstance(step, int)
            else [(k, v) for k, v in children if k is not None and k.value == step]
        )
        if not matches:
            break
        key, node = matches[0]
        line = (key if at_key and key is not None else node).start_mark.line
    return line + 1


def _plain(annotation: Any) -> Any:
    """Return the annotated type without `Optional` and `Annotated`."""
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _model(model: type[BaseModel], location: Location) -> type[BaseModel]:
    """Return the model at `location`. If a list or a mapping is at this location, return the model that contains it."""
    for step in location:
        inner = _plain(model.model_fields[step].annotation) if isinstance(step, str) else model
        inner = get_args(inner)[0] if get_origin(inner) is tuple else inner
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        model = inner
    return model


def _field(model: type[BaseModel], location: Location) -> tuple[str, FieldInfo]:
    """Return the name and the definition of the field at `location`. For an item of a list or mapping, return the field
    of the whole list or mapping."""
    for end in range(len(location), 0, -1):
        fields = _model(model, location[: end - 1]).model_fields
        if (name := str(location[end - 1])) in fields:
            return name, fields[name]
    raise AssertionError(f"no field at {location}")


def _instead(value: Any, field: FieldInfo) -> str:
    """Return the end of a message, which suggests a valid value: the most similar word, or an example."""
    kind = _plain(field.annotation)
    if get_origin(kind) is Literal:
        similar = difflib.get_close_matches(str(value).lower(), get_args(kind), n=1, cutoff=0.4)
        return f"; the nearest is {(similar or get_args(kind))[0]}"
    return f", such as {field.examples[0]}" if field.examples else ""
