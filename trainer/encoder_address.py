"""Finds an encoder of Hugging Face's by its address, without torch or the library: whoever pays for nodes looks before.

An address is `hf:` and a folder, or a name on the hub, which is looked up when the run begins.
"""

import re
from importlib.util import find_spec
from pathlib import Path

from common.errors import TrainingError

PREFIX = "hf:"
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")


def encoder_source(address: str) -> str:
    """What the library is to load: a folder, or a name on the hub. Raises TrainingError where the library is not
    installed, or where a folder is not one of an encoder."""
    require_library()
    source = address.removeprefix(PREFIX)
    folder = Path(source)
    if not folder.is_dir():
        if _NAME.fullmatch(source) and not source.startswith("."):
            return source
        raise TrainingError(f"there is no folder {source}; {PREFIX} names a folder of an encoder, or a name on the hub")
    if not (folder / "config.json").exists():
        raise TrainingError(f"{source} has no config.json, and so is not the folder of an encoder")
    if any((folder / name).exists() for name in _WEIGHTS):
        return source
    if any((folder / name).exists() for name in _PICKLED):
        raise TrainingError(
            f"{source} has pickled weights alone, which may execute code when they are read; where you trust them, "
            f"convert them by the library: AutoModel.from_pretrained({source!r}).save_pretrained({source!r})"
        )
    raise TrainingError(f"{source} has no {_WEIGHTS[0]}, and so no weights; copy the folder whole")


def require_library() -> None:
    """Raise TrainingError unless the library is installed."""
    if find_spec("transformers") is None:
        raise TrainingError("an encoder needs the library transformers; install it by: pip install 'shoal[encoders]'")
