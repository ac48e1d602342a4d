"""Free memory of a machine, and the error for a GPU whose memory is full.

A share that does not fit into memory is computed in smaller pieces (gradients.py), and so is an evaluation. The buffer
of all gradients, the optimiser's moments and a collective's own buffers cannot be cut: a rank that lacks memory for
them ends with one sentence. Do not look for torch.OutOfMemoryError alone: NCCL, cuBLAS and cuDNN allocate memory of
their own, and report in other words that it is full.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from trainer.rank_errors import RankError

_SIGNS = ("out of memory", "ALLOC_FAILED")


def is_full(error: RuntimeError) -> bool:
    """Whether an error means that a GPU's memory is full."""
    return isinstance(error, torch.OutOfMemoryError) or any(sign in str(error) for sign in _SIGNS)


@contextmanager
def convert_errors(device: torch.device) -> Iterator[None]:
    """Convert an error of this block that means that the memory of `device` is full to a RankError."""
    try:
        yield
    except RuntimeError as error:
        if not is_full(error):
            raise
        where = next((f" {note}" for note in getattr(error, "__notes__", ())), "")
        raise RankError(
            f"the memory of {device} is full{where}; take a smaller model, or --rows-in memory, or end what else runs "
            "there, and restart with --resume"
        ) from error


def free() -> int:
    """Bytes of memory that are free, or can be freed by dropping cached files."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
