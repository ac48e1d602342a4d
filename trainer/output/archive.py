"""Files of torch's that users hand over: models and checkpoints, read without trust in what they claim.

A file is a zip archive of a pickle and of the tensors' bytes, with a checksum each. The easy mistake is to trust what
can be loaded: torch reads flipped bits without a word, and takes a few bytes for terabytes where a tensor's strides say
so.
"""

import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import torch


class DamagedError(Exception):
    """Not what torch writes, or damaged; its text is a clause that says how."""


def read(file: BinaryIO) -> dict[str, Any]:
    """The dictionary of tensors (on the CPU) and plain values in a file, in memory in proportion to its bytes.

    Raises DamagedError; and MemoryError, which does not say that it is damaged.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                if member.compress_type != zipfile.ZIP_STORED:
                    raise DamagedError("it is packed, as torch packs nothing")
                if member.external_attr:  # of one that is marked a folder, torch hands out memory that nobody filled
                    raise DamagedError(f"{member.filename} is marked, as torch marks nothing")
            if (wrong := archive.testzip()) is not None:
                raise DamagedError(f"the checksum of {wrong} is wrong")
        file.seek(0)
        content = torch.load(file, map_location="cpu", weights_only=True)
    except (MemoryError, DamagedError):
        raise
    except Exception as error:
        # zipfile and torch raise whatever they stumble over: pickle, zip, type and key errors.
        raise DamagedError("it is no archive of torch's, or a broken one") from error
    if not isinstance(content, dict):
        raise DamagedError("it holds no dictionary")
    return content


def stored_numbers(found: Any) -> int:
    """How many numbers the tensors by name hold, of which each has its own bytes. Raises DamagedError where not."""
    if not isinstance(found, dict):
        raise DamagedError("it has no tensors")
    for name, tensor in found.items():
        if (
            not isinstance(tensor, torch.Tensor)
            or (tensor.layout, tensor.device.type) != (torch.strided, "cpu")
            or not tensor.is_contiguous()
        ):
            raise DamagedError(f"its tensor {name} is none, or not stored as it stands")
    return sum(tensor.numel() for tensor in found.values())


def require_finite(found: Any) -> None:
    """Raise DamagedError unless `found` has tensors by name, all stored, of finite numbers."""
    stored_numbers(found)
    for name, tensor in found.items():
        if not tensor.isfinite().all():
            raise DamagedError(f"its tensor {name} holds what is no number")


def require_tensors(found: Any, expected: Mapping[str, torch.Tensor]) -> None:
    """Raise DamagedError unless `found` has tensors of these names, shapes and types, of finite numbers, all stored."""
    require_finite(found)
    if found.keys() != expected.keys():
        raise DamagedError("its tensors are not those of the model that it describes")
    for name, tensor in found.items():
        like = expected[name]
        if (tensor.shape, tensor.dtype) != (like.shape, like.dtype):
            raise DamagedError(f"its tensor {name} is not of the shape and type {list(like.shape)}, {like.dtype}")
