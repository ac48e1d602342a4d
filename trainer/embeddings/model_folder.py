"""Trained word embeddings as a folder.

- `vectors.bin` and `vectors.txt`: the vectors, in both formats of the word2vec program
- `encoder.safetensors`: of a character model, what gives other words vectors, too (encoder.py)
- `config.json`: what learnt them, and from what
- `measures.json`: their metrics at the end
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError

from common.errors import DataError, TrainingError
from common.files import indented_json
from common.version import VERSION
from corpus.reading.storage import exists, join, readable
from trainer.embeddings.vectors import WordVectors, open_vectors, vectors_folder, write_binary, write_text
from trainer.output.run_files import BINARY_VECTORS, CONFIG, ENCODER, MEASURES, TEXT_VECTORS, whole_folder

if TYPE_CHECKING:
    from trainer.embeddings.encoder import WordEncoder

FORMAT = 1

_COMPARED, _APART = 8, 0.02
"""Words whose vectors have to be those of the encoder, but for this share of the largest number: GPUs round more."""


def open_words(address: str) -> WordVectors:
    """The vectors at an address, as `open_vectors`; of a folder with an encoder also those of all other words.

    Raises DataError.
    """
    vectors, folder = open_vectors(address), vectors_folder(address)
    if folder is None or not exists(place := join(folder, ENCODER)):
        return vectors
    from trainer.embeddings.encoder import read_encoder  # here, because torch takes long to import

    with readable(place) as path:
        encoder = read_encoder(path)
    some = vectors.matrix[:_COMPARED]
    if some.shape[1] != encoder.settings.size or not np.allclose(
        encoder.vectors(vectors.words[:_COMPARED]), some, rtol=0, atol=_APART * np.abs(some).max()
    ):
        raise DataError(f"{place} is of another training than the vectors beside it; copy the folder again, whole")
    return WordVectors(vectors.words, vectors.matrix, encoder.vectors, vectors.note)


def write_vectors(
    folder: Path,
    vectors: WordVectors,
    *,
    config: Mapping[str, Any],
    measures: Mapping[str, Any],
    encoder: "WordEncoder | None" = None,
) -> None:
    """Write vectors to a folder, in place of an old model's folder, whole or not at all. Raises TrainingError."""
    try:
        with whole_folder(folder) as new:
            write_binary(str(new / BINARY_VECTORS), vectors)
            write_text(str(new / TEXT_VECTORS), vectors)
            if encoder is not None:
                encoder.write(new / ENCODER)
                shutil.copymode(new / TEXT_VECTORS, new / ENCODER)  # safetensors writes for its user alone
            (new / MEASURES).write_bytes(indented_json(dict(measures)))
            count, size = vectors.matrix.shape
            values = {"format": FORMAT, "shoal": VERSION, "words": count, "size": size, **config}
            (new / CONFIG).write_bytes(indented_json(values))
    except (OSError, DataError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TrainingError(f"cannot write {folder}: {reason}; free some space, then continue with --resume") from error
