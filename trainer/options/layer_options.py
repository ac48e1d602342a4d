"""Options of layers that classifiers and models of words have in common, as arguments of `option`."""

from typing import Any

from trainer.options.section import from_1_to

_WIDEST, _DEEPEST = 8192, 64
"""Largest width and depth of a model. A model file with wrong sizes must not fill the memory."""

_OF_LAYER = {"group": "model", "setting": True}
EMBEDDING: dict[str, Any] = {
    "text": "dimensions of a word vector (with --embeddings: the dimensions of the pretrained vectors)",
    "must": from_1_to(_WIDEST),
    **_OF_LAYER,
}
HIDDEN: dict[str, Any] = {"text": "dimensions of the LSTM's state", "must": from_1_to(_WIDEST), **_OF_LAYER}
LAYERS: dict[str, Any] = {"text": "number of LSTM layers", "default": 1, "must": from_1_to(_DEEPEST), **_OF_LAYER}
