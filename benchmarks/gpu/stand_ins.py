"""Replacements that do not affect the trainer's results: for libraries that are absent, and for NCCL."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TextIO
from unittest import mock


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


@contextmanager
def shared_gpu() -> Iterator[None]:
    """Let all ranks of this machine compute on its first GPU, with gloo for what they send, because NCCL takes one rank
    a GPU. Gloo sends messages of one rank to another out of a CPU's memory alone, so they pass through it."""
    import torch.distributed as dist

    from trainer.distributed import collectives

    os.environ.update(LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
    begin, send = dist.init_process_group, dist.batch_isend_irecv
    never_fails = SimpleNamespace(get_error=lambda: SimpleNamespace(name="SUCCESS"))  # gloo raises errors by itself
    with (
        mock.patch.object(dist, "init_process_group", lambda _backend, **how: begin("gloo", **how)),
        mock.patch.object(dist, "batch_isend_irecv", lambda asked: _through_the_cpu(send, asked)),
        mock.patch.object(collectives, "backend_of", return_value=never_fails),
    ):
        yield


def _through_the_cpu(send: Callable[..., Any], asked: Sequence[Any]) -> list[Any]:
    """What batch_isend_irecv returns for messages that pass through a CPU's memory."""
    staged = [type(each)(each.op, each.tensor.cpu().clone(), each.peer, tag=each.tag) for each in asked]
    return [
        SimpleNamespace(wait=lambda work=work, of=of, own=own: (work.wait(), of.tensor.copy_(own.tensor)))
        for work, of, own in zip(send(staged), asked, staged, strict=True)
    ]


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


def _save(state: dict[str, Any], path: Path, metadata: dict[str, str] | None = None) -> None:  # noqa: ARG001
    import torch

    torch.save(state, path)
