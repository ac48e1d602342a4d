"""Floating-point precision of a run, and loss scaling.

All ranks use the same precision, which is fast on all of their GPUs. Do not let each rank choose a precision for its
own GPU: gradients would then depend on the assignment of rows to ranks.

The smallest float16 number is 6e-8. Gradients of single rows, divided by the number of rows in a large global batch,
would become 0. So the loss is scaled up before `backward`, and the gradients are scaled down after it. bfloat16 needs
loss scaling, too: under torch's autocast, cuDNN computes an LSTM in float16 even if bfloat16 is chosen.
"""

from collections.abc import Iterable

import torch

from common.errors import TrainingError

NAMES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

Capability = tuple[int, int]
"""NVIDIA compute capability of a GPU."""

_FIRST_WITH = (("bfloat16", (8, 0)), ("float16", (7, 0)))
"""Lowest compute capability with which each precision is faster than float32."""


def capability(device: torch.device) -> Capability | None:
    """Return the compute capability of a rank's GPU; None on a CPU."""
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None


def choose(requested: str, capabilities: Iterable[Capability | None]) -> str:
    """Return the name of a run's precision.

    `requested`: `auto` or the name of a precision. `capabilities`: the compute capability of each rank's GPU; None for
    a CPU. Raises TrainingError if a rank does not support the precision. A CPU supports only float32, because oneDNN's
    bfloat16 LSTM fails on processors without AVX-512.
    """
    gpus = list(capabilities)
    for name, first in _FIRST_WITH:
        able = all(each is not None and each >= first for each in gpus)
        if requested == "auto" and able:
            return name
        if requested == name and not able:
            raise TrainingError(
                f"--precision is {name}, which needs GPUs of compute capability {first[0]}.{first[1]} or more; "
                "leave out --precision, or choose float32"
            )
    return "float32" if requested == "auto" else requested


def loss_scale(precision: torch.dtype, rows: int) -> float:
    """Return the factor by which to scale the loss of a global batch of `rows` rows; 1 in float32.

    It is the power of two nearest to the square root of `rows`. With this factor, the gradient of a single row does not
    underflow, and the sum of all rows' gradients does not overflow.
    """
    return float(2 ** round((rows.bit_length() - 1) / 2)) if precision != torch.float32 else 1.0
