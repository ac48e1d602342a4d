"""Reading of files of torch (checkpoints) that users provide, without trust in their content.

A file is a zip archive of a pickle and the tensors' bytes, with a checksum for each. Do not trust a file because torch
loads it: torch reads flipped bits without an error, and makes terabytes of a few bytes if a tensor's strides say so.
"""

import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import torch


class DamagedError(Exception):
    """The file was not written by torch, or is damaged; the text is a clause that says how."""


def read(file: BinaryIO) -> dict[str, Any]:
    """The dictionary of tensors (on the CPU) and plain values in a file, using memory in proportion to its bytes.

    Raises DamagedError; and MemoryError, which does not mean that the file is damaged.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                if member.compress_type != zipfile.ZIP_STORED:
                    raise DamagedError("it is compressed, which torch does not do")
                if member.external_attr:  # torch returns memory that nobody filled for one that is marked as a folder
                    raise DamagedError(f"{member.filename} has attributes, which torch does not set")
            if (wrong := archive.testzip()) is not None:
                raise DamagedError(f"the checksum of {wrong} is wrong")
        file.seek(0)
        content = torch.load(file, map_location="cpu", weights_only=True)
    except (MemoryError, DamagedError):
        raise
    except Exception as error:
        # zipfile and torch raise whatever they stumble over: pickle, zip, type and key errors.
        raise DamagedError("it is not an archive of torch, or a damaged one") from error
    if not isinstance(content, dict):
        raise DamagedError("it is not a dictionary")
    return content


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
