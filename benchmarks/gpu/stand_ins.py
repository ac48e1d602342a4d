"""Replacements for libraries of the trainer that do not affect its results, where they are absent."""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
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


class SafetensorError(Exception):
    """An error of safetensors; never raised."""


def install() -> None:
    """Install the replacements for tqdm and safetensors, where they are absent. Models are then written by torch, and
    cannot be read."""
    if _absent("tqdm"):
        _add("tqdm", tqdm=Bar)
    if _absent("safetensors"):
        _add("safetensors", SafetensorError=SafetensorError, safe_open=None)
        _add("safetensors.torch", save_file=_save)


def _absent(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return True
    return False


def _add(name: str, **content: type | Callable[..., None] | None) -> None:
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)  # for which torch asks
    vars(module).update(content)
    sys.modules[name] = module


def _save(state: dict[str, Any], path: Path) -> None:
    import torch

    torch.save(state, path)
