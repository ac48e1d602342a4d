"""Trained vectors of words as a folder.

- `vectors.bin` and `vectors.txt`: the vectors, in both formats of the word2vec program
- `config.json`: what learnt them, and from what
- `measures.json`: how they were judged at the end
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corpus.errors import DataError
from corpus.version import VERSION
from trainer.embeddings.vectors import WordVectors, write_binary, write_text
from trainer.errors import TrainingError
from trainer.output.files import BINARY_VECTORS, CONFIG, MEASURES, TEXT_VECTORS, whole_folder, write_json

FORMAT = 1


def write_vectors(
    folder: Path, vectors: WordVectors, *, config: Mapping[str, Any], measures: Mapping[str, Any]
) -> None:
    """Write vectors to a folder, in place of an old model's folder, whole or not at all. Raises TrainingError."""
    try:
        with whole_folder(folder) as new:
            write_binary(str(new / BINARY_VECTORS), vectors)
            write_text(str(new / TEXT_VECTORS), vectors)
            write_json(new / MEASURES, dict(measures))
            count, size = vectors.matrix.shape
            write_json(new / CONFIG, {"format": FORMAT, "shoal": VERSION, "words": count, "size": size, **config})
    except (OSError, DataError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TrainingError(f"cannot write {folder}: {reason}; free some space, then go on with --resume") from error
