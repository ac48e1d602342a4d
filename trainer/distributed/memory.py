"""Free memory of a machine, and the error for full GPU memory.

A share or an evaluation that does not fit into memory is computed in smaller pieces (gradients.py). The gradient
buffer, the optimiser's moments and the buffers of collectives are indivisible. If memory does not suffice for them,
the rank fails with a one-sentence error. Do not check only for torch.OutOfMemoryError: NCCL, cuBLAS and cuDNN allocate
their own memory, and raise different errors.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from trainer.rank_errors import RankError

_SIGNS = ("out of memory", "ALLOC_FAILED")


def is_full(error: RuntimeError) -> bool:
    """Return whether an error means that a GPU's memory is full."""
    return isinstance(error, torch.OutOfMemoryError) or any(sign in str(error) for sign in _SIGNS)


@contextmanager
def convert_errors(device: torch.device) -> Iterator[None]:
    """Convert an error in this block to a RankError if it means that the memory of `device` is full."""
    try:
        yield
    except RuntimeError as error:
        if not is_full(error):
            raise
        where = next((f" {note}" for note in getattr(error, "__notes__", ())), "")
        raise RankError(
            f"the memory of {device} is full{where}; use a smaller model, or stop other programs that use this "
            "memory, and restart with --resume"
        ) from error


def free() -> int:
    """Return the number of bytes of memory that are free, or that the system can free by dropping cached files."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
