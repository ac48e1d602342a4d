"""The precision of a run: one that all of its GPUs compute fast.

Do not let each rank choose by its own GPU: gradients would then depend on which rank had which rows. The smallest
number of float16 is 6e-8: the gradients of single rows, which are divided by the rows of a large global batch, would
become 0. So the loss is scaled up before `backward`, and the gradients are scaled down after it. This holds for
bfloat16, too, because under torch's autocast cuDNN computes an LSTM in float16 even then.
"""

from collections.abc import Iterable

import torch

from common.errors import TrainingError

NAMES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

Capability = tuple[int, int]
"""NVIDIA's compute capability of a GPU."""

_FIRST_WITH = (("bfloat16", (8, 0)), ("float16", (7, 0)))
"""The capability from which on a precision is faster than float32."""


def capability(device: torch.device) -> Capability | None:
    """The capability of a rank's GPU; None on a CPU."""
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None


def choose(asked: str, capabilities: Iterable[Capability | None]) -> str:
    """The precision of a run whose ranks have these GPUs (None: a CPU); `asked` is `auto` or a name.

    Raises TrainingError for a precision that a rank does not have. A CPU has float32 alone: oneDNN's LSTM in bfloat16
    needs AVX-512, and fails without it.
    """
    found = list(capabilities)
    for name, first in _FIRST_WITH:
        able = all(each is not None and each >= first for each in found)
        if asked == "auto" and able:
            return name
        if asked == name and not able:
            raise TrainingError(
                f"--precision is {name}, which needs GPUs of compute capability {first[0]}.{first[1]} or more; "
                "leave it out, or choose float32"
            )
    return "float32" if asked == "auto" else asked


def loss_scale(precision: torch.dtype, rows: int) -> float:
    """The factor of the loss of a global batch of `rows` rows before its gradients are computed: 1 in float32, else the
    power of two nearest to the root of `rows`, so that neither the gradient of one row, divided by `rows`, becomes 0,
    nor the sum of all becomes too large."""
    return float(2 ** round((rows.bit_length() - 1) / 2)) if precision != torch.float32 else 1.0
