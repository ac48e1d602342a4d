"""The signatures of the public names, beside the lines of the changelog that announced them.

`python -m tools.signatures` takes down what has changed, and refuses a name that the changelog says nothing new about;
a test fails where a signature is not what was taken down. The public names are those of docs/reference/index.md.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import griffe

from common.errors import UsageError

ROOT = Path(__file__).parents[1]
PAGE, RECORD = (ROOT / "docs" / "reference" / name for name in ("index.md", "signatures.json"))
_ROOMS = ("common", "corpus", "infra", "jobs", "trainer")
_NAMED = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
_ENTRY = re.compile(r"^- .*(?:\n  .*)*", re.MULTILINE)


class Announced(TypedDict):
    """A public name."""

    signature: list[str]
    """A line for itself, and for each of its own public members."""
    changelog: list[str]
    """The entries of the changelog that named it when this signature was taken down."""


def public_names() -> list[str]:
    """The names on the page."""
    return _NAMED.findall(PAGE.read_text("utf-8"))


def signatures() -> dict[str, list[str]]:
    """The public names, and their signatures."""
    loader = griffe.GriffeLoader(search_paths=[str(ROOT)])
    for each in (*_ROOMS, "shoal"):
        loader.load(each)
    loader.resolve_aliases()
    return {name: _lines(_last(loader, name), name.rpartition(".")[2]) for name in public_names()}


def announced() -> dict[str, Announced]:
    """What was taken down."""
    found: dict[str, Announced] = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    return found


def changed(before: Mapping[str, Announced], now: Mapping[str, list[str]]) -> list[str]:
    """The names that are new, gone, or have another signature."""
    known = {name: each["signature"] for name, each in before.items()}
    return sorted(name for name in known.keys() | now.keys() if known.get(name) != now.get(name))


def announce(before: Mapping[str, Announced], now: Mapping[str, list[str]], changelog: str) -> dict[str, Announced]:
    """The record that follows. Raises UsageError for a name that has changed, and of which no entry of the changelog
    tells but those that were there before."""
    found = {name: before[name] for name in now if name in before}
    for name in changed(before, now):
        old = before[name]["changelog"] if name in before else []
        entries = [entry for entry in _ENTRY.findall(changelog) if f"`{name}`" in entry]
        if not set(entries) - set(old):
            raise UsageError(f"{name} has another signature than before; write in CHANGELOG.md what is new of `{name}`")
        if name in now:
            found[name] = Announced(signature=now[name], changelog=entries)
    return dict(sorted(found.items()))


def _last(loader: griffe.GriffeLoader, name: str) -> griffe.Object:
    found = loader.modules_collection[name]
    return found.final_target if isinstance(found, griffe.Alias) else found


def _lines(found: griffe.Object, name: str) -> list[str]:
    match found:
        case griffe.Function():
            return [f"{name}({_parameters(found)}) -> {found.returns}"]
        case griffe.Attribute():
            return [f"{name}: {found.annotation}" + (f" = {found.value}" if found.value else "")]
        case griffe.Class():
            own = [each for each in found.members.values() if each.is_public and isinstance(each, griffe.Object)]
            inner = [line for each in own for line in _lines(each, each.name)]
            return [f"{name}({', '.join(map(str, found.bases))})", *inner]
        case _:
            return [name]


def _parameters(found: griffe.Function) -> str:
    told, keywords = list[str](), False
    for each in found.parameters:
        kind = each.kind.value if each.kind else ""
        if kind == "keyword-only" and not keywords:
            told.append("*")
        keywords |= kind in ("keyword-only", "variadic positional")
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        default = "" if each.default is None or stars else f" = {each.default}"
        told.append(f"{stars}{each.name}" + (f": {each.annotation}" if each.annotation else "") + default)
    return ", ".join(told)


def main() -> None:
    """Write the record."""
    try:
        found = announce(announced(), signatures(), (ROOT / "CHANGELOG.md").read_text("utf-8"))
    except UsageError as error:
        sys.exit(str(error))
    RECORD.write_text(json.dumps(found, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
