"""Reads torch files such as checkpoints safely, and checks tensors from files.

Do not trust a tensor because torch can load it. With crafted strides, a few bytes in a file become terabytes.
"""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import torch


class DamagedError(Exception):
    """The file is damaged, or torch did not write it. The message is a clause that begins with "it" or "its"."""


def read(content: bytes) -> dict[str, Any]:
    """Return the dictionary of tensors and plain values in a file's content. The tensors are on the CPU.

    The caller has checked the digest of the content. Raises DamagedError. Also raises MemoryError, which does not mean
    that the file is damaged.
    """
    try:
        loaded = torch.load(BytesIO(content), map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:
        # torch raises errors of various types, such as pickle, zip, type and key errors.
        raise DamagedError("it is not a torch file, or is damaged") from error
    if not isinstance(loaded, dict):
        raise DamagedError("it is not a dictionary")
    return loaded


def require_finite(tensors: Any) -> None:
    """Raise DamagedError unless `tensors` is a dictionary of contiguous tensors on the CPU with finite values."""
    if not isinstance(tensors, dict):
        raise DamagedError("it has no tensors")
    for name, tensor in tensors.items():
        if (
            not isinstance(tensor, torch.Tensor)
            or (tensor.layout, tensor.device.type) != (torch.strided, "cpu")
            or not tensor.is_contiguous()
        ):
            raise DamagedError(f"its entry {name} is not a contiguous tensor")
        if not tensor.isfinite().all():
            raise DamagedError(f"its tensor {name} has infinite or NaN values")


def require_tensors(tensors: Any, expected: Mapping[str, torch.Tensor]) -> None:
    """Raise DamagedError unless `tensors` have the names, shapes and dtypes of `expected`, and are contiguous and
    finite.
    """
    require_finite(tensors)
    if tensors.keys() != expected.keys():
        raise DamagedError("its tensors do not match the model that it describes")
    for name, tensor in tensors.items():
        like = expected[name]
        if (tensor.shape, tensor.dtype) != (like.shape, like.dtype):
            raise DamagedError(f"its tensor {name} is not of the shape and type {list(like.shape)}, {like.dtype}")
