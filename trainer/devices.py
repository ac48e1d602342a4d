"""Arrays on their way to a GPU; and checks that this machine's GPUs compute: `python -m trainer.devices COUNT`, run
before ranks are started on them.

Do not rely on the number of GPUs that the driver lists: a listed GPU may refuse all work. And if PyTorch finds no GPU,
it computes on the CPU without a message.
"""

import sys
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from common.errors import TrainingError


def require(count: int) -> None:
    """Compute on each of this machine's `count` GPUs. Raises TrainingError with PyTorch's reason if one fails."""
    if (there := torch.cuda.device_count()) < count:
        raise TrainingError(f"PyTorch {torch.__version__} finds {there} of this machine's {count} GPUs{_why()}")
    for device in range(count):
        try:
            torch.ones(2, device=f"cuda:{device}").sum().item()
        except RuntimeError as error:
            raise TrainingError(f"GPU {device} of this machine does not compute: {_first_line(error)}") from error


def moved_to(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """An array as a tensor on a device; on a CPU it has the array's own memory.

    A GPU's host does not wait for the copy, because it is made of pinned memory: for any other the host would wait
    until the GPU has done all that is in its queue.
    """
    found = torch.from_numpy(array)
    return found if device.type == "cpu" else found.pin_memory().to(device, non_blocking=True)


def missing() -> str:
    """The message if there is no GPU that a rank can use."""
    return f"this machine's GPUs cannot be used by PyTorch {torch.__version__}{_why()}"


def _why() -> str:
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError) as error:
        return f": {_first_line(error)}"
    return ""


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


if __name__ == "__main__":
    try:
        require(int(sys.argv[1]))
    except TrainingError as error:
        sys.exit(str(error))
