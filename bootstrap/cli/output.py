"""What verbs share in what they print: one summary at the end, for a person or, with --json, for a program."""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tabulate import tabulate


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare --json."""
    parser.add_argument("--json", action="store_true", help="print the summary as JSON on standard output")


def say(text: str = "") -> None:
    """Print a line for a person."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def summary(args: argparse.Namespace, content: Mapping[str, Any], rows: Iterable[Sequence[str]]) -> None:
    """Print a verb's summary: `content` as JSON where --json asks for it, else `rows` as a table."""
    if args.json:
        print(json.dumps(content, default=str))  # noqa: T201
    else:
        print(tabulate([list(row) for row in rows], tablefmt="plain"))  # noqa: T201


def show(args: argparse.Namespace, content: Mapping[str, Any], text: str) -> None:
    """Print `content` as JSON where --json asks for it, else `text`."""
    print(json.dumps(content, default=str) if args.json else text)  # noqa: T201


def percent(share: float) -> str:
    """A share as a person reads it."""
    return f"{share:.1%}"
