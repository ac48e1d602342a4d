"""Copies arrays to a GPU, and checks that GPUs work. Run `python -m trainer.devices COUNT` before ranks start on GPUs.

Do not rely on the number of GPUs that the driver lists, because a listed GPU can fail at every computation. If PyTorch
finds no GPU, it silently computes on the CPU.
"""

import sys
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from common.errors import TrainingError


def require(count: int) -> None:
    """Check each of this machine's `count` GPUs with a computation.

    Raises TrainingError with PyTorch's reason if a GPU fails.
    """
    if (there := torch.cuda.device_count()) < count:
        raise TrainingError(f"PyTorch {torch.__version__} finds {there} of this machine's {count} GPUs{_reason()}")
    for device in range(count):
        try:
            torch.ones(2, device=f"cuda:{device}").sum().item()
        except RuntimeError as error:
            raise TrainingError(f"GPU {device} of this machine does not compute: {_first_line(error)}") from error


def copy_to_device(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Return an array as a tensor on a device. On a CPU, the tensor shares the array's memory.

    The array is first copied to pinned memory, so that the host does not wait for the copy to the GPU. Without pinned
    memory, the host would wait until the GPU has finished its queue.
    """
    tensor = torch.from_numpy(array)
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def no_gpu_message() -> str:
    """Return the error message for a machine on which PyTorch cannot use a GPU."""
    return f"PyTorch {torch.__version__} cannot use this machine's GPUs{_reason()}"


def _reason() -> str:
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
