"""Model folder of trained word embeddings.

- `vectors.bin` and `vectors.txt`: the vectors, in the binary and the text format of the word2vec program
- `encoder.safetensors`: for a character model, the encoder for words outside the vocabulary (char_lstm.py)
- `config.json`: the settings and the digest of the training data
- `measures.json`: the metrics at the end of the run
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError

from common.errors import DataError, TrainingError, disk_advice
from common.files import indented_json
from common.version import VERSION
from corpus.reading.storage import exists, join, readable
from trainer.embeddings.vectors import WordVectors, open_vectors, vectors_folder, write_binary, write_text
from trainer.output.run_files import BINARY_VECTORS, CONFIG, ENCODER, MEASURES, TEXT_VECTORS, replaced_folder

if TYPE_CHECKING:
    from trainer.embeddings.char_lstm import CharLSTM

FORMAT = 1

_COMPARED, _APART = 8, 0.02
"""Number of words for which the stored vectors are compared with the encoder's vectors, and the tolerance of this
comparison as a share of the largest value. The tolerance is needed because a GPU rounds differently."""


def open_words(address: str) -> WordVectors:
    """Open the vectors at an address, like `open_vectors`. If the folder has an encoder, any other word can be encoded.

    Raises DataError if a file is unreadable or invalid, or if the encoder does not match the vectors.
    """
    vectors, folder = open_vectors(address), vectors_folder(address)
    if folder is None or not exists(place := join(folder, ENCODER)):
        return vectors
    from trainer.embeddings.char_lstm import read_encoder  # imported here because torch takes long to import

    with readable(place) as path:
        encoder = read_encoder(path)
    some = vectors.matrix[:_COMPARED]
    if some.shape[1] != encoder.settings.size or not np.allclose(
        encoder.vectors(vectors.words[:_COMPARED]), some, rtol=0, atol=_APART * np.abs(some).max()
    ):
        raise DataError(f"{place} does not match the vectors in its folder; copy the whole folder again")
    return WordVectors(vectors.words, vectors.matrix, encoder.vectors, vectors.note)


def write_vectors(
    folder: Path,
    vectors: WordVectors,
    *,
    config: Mapping[str, Any],
    measures: Mapping[str, Any],
    encoder: "CharLSTM | None" = None,
) -> None:
    """Write a model folder, and replace an older model atomically. Raises TrainingError if writing fails."""
    try:
        with replaced_folder(folder) as new:
            write_binary(str(new / BINARY_VECTORS), vectors)
            write_text(str(new / TEXT_VECTORS), vectors)
            if encoder is not None:
                from trainer.embeddings.char_lstm import write_encoder

                write_encoder(new / ENCODER, encoder)
                shutil.copymode(new / TEXT_VECTORS, new / ENCODER)  # safetensors lets only the owner read the file
            (new / MEASURES).write_bytes(indented_json(dict(measures)))
            count, size = vectors.matrix.shape
            values = {"format": FORMAT, "shoal": VERSION, "words": count, "size": size, **config}
            (new / CONFIG).write_bytes(indented_json(values))
    except (OSError, DataError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TrainingError(
            f"cannot write {folder}: {reason}; {disk_advice(error)}, then run the command again"
        ) from error
