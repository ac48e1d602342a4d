"""Reading of files of torch (checkpoints), and checks of tensors that users provide, without trust in their content.

Do not trust tensors because torch loads them: it makes terabytes of a few bytes if a tensor's strides say so.
"""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import torch


class DamagedError(Exception):
    """The file was not written by torch, or is damaged; the text is a clause that says how."""


def read(content: bytes) -> dict[str, Any]:
    """The dictionary of tensors (on the CPU) and plain values in the bytes of a file, whose digest is right.

    Raises DamagedError; and MemoryError, which does not mean that the file is damaged.
    """
    try:
        found = torch.load(BytesIO(content), map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:
        # torch raises whatever it stumbles over: pickle, zip, type and key errors.
        raise DamagedError("it is not an archive of torch, or a damaged one") from error
    if not isinstance(found, dict):
        raise DamagedError("it is not a dictionary")
    return found


def require_finite(tensors: Any) -> None:
    """Raise DamagedError unless `tensors` is a dictionary of tensors of finite numbers, each stored with bytes of its
    own."""
    if not isinstance(tensors, dict):
        raise DamagedError("it has no tensors")
    for name, tensor in tensors.items():
        if (
            not isinstance(tensor, torch.Tensor)
            or (tensor.layout, tensor.device.type) != (torch.strided, "cpu")
            or not tensor.is_contiguous()
        ):
            raise DamagedError(f"its entry {name} is not a tensor, or not stored in one piece")
        if not tensor.isfinite().all():
            raise DamagedError(f"its tensor {name} has infinite or NaN values")


def require_tensors(tensors: Any, expected: Mapping[str, torch.Tensor]) -> None:
    """Raise DamagedError unless `tensors` have these names, shapes and types, are stored, and are of finite numbers."""
    require_finite(tensors)
    if tensors.keys() != expected.keys():
        raise DamagedError("its tensors are not those of the model that it describes")
    for name, tensor in tensors.items():
        like = expected[name]
        if (tensor.shape, tensor.dtype) != (like.shape, like.dtype):
            raise DamagedError(f"its tensor {name} is not of the shape and type {list(like.shape)}, {like.dtype}")
