"""In which numbers a run computes: what all of its GPUs do well.

The easy mistake is to let every rank choose by its own GPU: gradients would then depend on which rank had which rows.
And float16 ends at 6e-8: the gradients of single rows, which are divided by the rows of a large global batch, would be
lost in it. So the loss is scaled up before `backward`, and the gradients down after it; for bfloat16, too, since under
torch's autocast cuDNN computes an LSTM in float16 even then.
"""

from collections.abc import Iterable

import torch

from trainer.errors import TrainingError

NAMES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

Capability = tuple[int, int]
"""Of a GPU, as NVIDIA counts."""

_FIRST_WITH = (("bfloat16", (8, 0)), ("float16", (7, 0)))
"""From which capability on it is faster than float32."""


def capability(device: torch.device) -> Capability | None:
    """Of a rank's GPU; None on a CPU."""
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None


def choose(asked: str, capabilities: Iterable[Capability | None]) -> str:
    """The precision of a run whose ranks have these GPUs (None: a CPU); `asked` is `auto`, or the name of one.

    Raises TrainingError for one that a GPU does not have. On CPUs alone there is bfloat16 too, though seldom faster.
    """
    found = list(capabilities)
    for name, first in _FIRST_WITH:
        able = all(each is not None and each >= first for each in found)
        if asked == "auto" and able:
            return name
        if asked == name and not able and (name == "float16" or any(found)):
            raise TrainingError(
                f"--precision is {name}, which needs GPUs of compute capability {first[0]}.{first[1]} or more; "
                "leave it out, or choose float32"
            )
    return "float32" if asked == "auto" else asked


def loss_scale(precision: torch.dtype, rows: int) -> float:
    """What the loss of a global batch of `rows` is multiplied by before its gradients are computed: but in float32, the
    power of two nearest to the root of `rows`, so that neither a row's gradient, a part in `rows`, becomes nothing,
    nor the sum of all of them too large."""
    return float(2 ** round((rows.bit_length() - 1) / 2)) if precision != torch.float32 else 1.0
