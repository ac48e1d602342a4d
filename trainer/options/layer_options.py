"""Options of layers that classifiers and models of words have in common, as arguments of `option`."""

from typing import Annotated, Any

from common.checked_values import within

Width = Annotated[int, within(1, 8192)]
Depth = Annotated[int, within(1, 64)]
"""Width and depth of a model. A model file with wrong sizes must not fill the memory."""

_OF_LAYER = {"group": "model", "setting": True}
EMBEDDING: dict[str, Any] = {
    "text": "dimensions of a word vector (with --embeddings: the dimensions of the pretrained vectors)",
    **_OF_LAYER,
}
HIDDEN: dict[str, Any] = {"text": "dimensions of the LSTM's state", **_OF_LAYER}
LAYERS: dict[str, Any] = {"text": "number of LSTM layers", "default": 1, **_OF_LAYER}
