"""A YAML file with its line numbers, and what pydantic finds wrong in it as one sentence for the user.

Easy to get wrong: YAML lets a key stand twice and keeps the last, silently; here that is a fault.
"""

import difflib
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from infra.errors import TopologyError

Location = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True)
class Document:
    """A mapping read from YAML; `data` is plain Python, `root` knows the lines."""

    label: str
    data: dict[str, Any]
    root: yaml.MappingNode

    def fault(self, location: Location, sentence: str, *, at_key: bool = False) -> TopologyError:
        """The sentence, led by file and line of what the location names, or of the nearest part around it."""
        return TopologyError(f"{self.label}, line {_line(self.root, location, at_key=at_key)}: {sentence}")

    def invalid(self, model: type[BaseModel], error: ValidationError) -> TopologyError:
        """The first thing that is wrong, with the nearest valid field or value.

        A field that does not exist comes before one that is missing: the first is often the second, mistyped.
        """
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        location, value = first["loc"], first["input"]
        parent, leaf = _spell(location[:-1]), location[-1] if location else ""
        match first["type"]:
            case "extra_forbidden":
                fields = [name for name in _model(model, location[:-1]).model_fields if location[:-1] or name != "name"]
                nearest = difflib.get_close_matches(str(leaf), fields, n=1, cutoff=0.5)
                hint = f"did you mean '{nearest[0]}'?" if nearest else f"there are {', '.join(fields)}."
                return self.fault(location, f"'{leaf}' is not a field of {parent}; {hint}", at_key=True)
            case "missing":
                example = _field(model, location).examples
                sample = f", such as `{leaf}: {example[0]}`" if example else ""
                return self.fault(location[:-1], f"{parent} lacks the field '{leaf}'; add it{sample}.")
            case "value_error":
                about = f"{_spell(location)}: " if location else ""
                return self.fault(location, about + str(first["ctx"]["error"]))
        field = _field(model, location)
        return self.fault(
            location,
            f"{_spell(location)} is {_show(value)}, but must be {field.description}; the nearest is "
            f"{_nearest(value, field)}.",
        )


def read(path: Path) -> Document:
    """Read a YAML file that holds one mapping; a TopologyError with file and line when it is none."""
    label = f"{path.parent.name}/{path.name}"
    try:
        text = path.read_text(encoding="utf-8")
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise TopologyError(f"{label} holds no fields; write at least a description and a part to deploy.")
        _refuse_doubles(root, label)
        return Document(label=label, data=loader.construct_document(root), root=root)
    except UnicodeDecodeError:
        raise TopologyError(f"{label} is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise TopologyError(f"{label} cannot be read ({error.strerror}); make it a readable file.") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise TopologyError(f"{label}, line {line}: this is not YAML ({error.problem}); mend that line.") from None
    except yaml.YAMLError as error:
        raise TopologyError(f"{label} is not YAML ({str(error).splitlines()[0]}); mend it.") from None


def _refuse_doubles(node: yaml.Node, label: str) -> None:
    seen: set[str] = set()
    for key, value in _children(node):
        if key is not None:
            if key.value in seen:
                line = key.start_mark.line + 1
                raise TopologyError(f"{label}, line {line}: '{key.value}' stands here twice; keep one of them.")
            seen.add(key.value)
        _refuse_doubles(value, label)


def _children(node: yaml.Node) -> list[tuple[yaml.ScalarNode | None, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        return list(node.value)
    return [(None, item) for item in node.value] if isinstance(node, yaml.SequenceNode) else []


def _line(root: yaml.Node, location: Location, *, at_key: bool) -> int:
    """One-based line of the deepest node that exists on the way to the location."""
    node, line = root, root.start_mark.line
    for step in location:
        children = _children(node)
        found = (
            children[step : step + 1]
            if isinstance(step, int)
            else [(k, v) for k, v in children if k is not None and k.value == step]
        )
        if not found:
            break
        key, node = found[0]
        line = (key if at_key and key is not None else node).start_mark.line
    return line + 1


def _spell(location: Location) -> str:
    """A location as a reader counts: `training 2, count`."""
    text = ""
    for step in location:
        text += f" {step + 1}" if isinstance(step, int) else f"{', ' if text else ''}{step}"
    return text or "a topology"


def _plain(annotation: Any) -> Any:
    """The type under `Optional`, and the item type under a tuple."""
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    return annotation


def _model(model: type[BaseModel], location: Location) -> type[BaseModel]:
    for step in location:
        inner = _plain(model.model_fields[step].annotation) if isinstance(step, str) else model
        model = get_args(inner)[0] if get_origin(inner) is tuple else inner
    return model


def _field(model: type[BaseModel], location: Location) -> FieldInfo:
    """The field that a location names; for an item of a list, the list's field."""
    keys = [index for index, step in enumerate(location) if isinstance(step, str)]
    last = keys[-1]
    return _model(model, location[:last]).model_fields[str(location[last])]


def _show(value: Any) -> str:
    if value is None:
        return "empty"
    return f"'{value}'" if isinstance(value, str) else ("a mapping" if isinstance(value, dict) else str(value))


def _nearest(value: Any, field: FieldInfo) -> str:
    """For a number what it rounds to, at least 1; else the field's example."""
    if _plain(field.annotation) is int:
        try:
            return str(max(1, round(float(value))))
        except (TypeError, ValueError, OverflowError):
            return "1"
    return str((field.examples or [field.description])[0])
