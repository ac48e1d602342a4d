"""Replacements for libraries of the trainer that do not affect its results, where they are absent."""

import sys
from types import ModuleType
from typing import Any, TextIO


class Bar:
    """A progress bar that shows nothing, for tqdm."""

    def __init__(self, **_how: Any) -> None: ...

    def update(self, _rows: int) -> None:
        """Nothing to show."""

    def set_postfix_str(self, _text: str) -> None:
        """Nothing to show."""

    def close(self) -> None:
        """Nothing to show."""

    @staticmethod
    def write(text: str, *, file: TextIO) -> None:
        """Write a sentence."""
        file.write(f"{text}\n")


def install() -> None:
    """Install the replacement for tqdm if tqdm is absent."""
    try:
        import tqdm  # noqa: F401
    except ImportError:
        module = ModuleType("tqdm")
        module.tqdm = Bar  # type: ignore[attr-defined]
        sys.modules["tqdm"] = module
