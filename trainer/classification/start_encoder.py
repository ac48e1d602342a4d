"""An encoder of Hugging Face's library as the start of a classifier.

A dataset's rows are words, in lower case, by its rule of words; the encoder reads the pieces of these. So a cased
encoder sees lower-cased text, and no encoder sees what the rule leaves out.
"""

from dataclasses import replace

import numpy as np

from common.errors import TrainingError
from corpus.text import FIRST_WORD
from trainer.classification.data import StartWeights, TextData
from trainer.classification.encoder_files import EncoderFiles, read_encoder_files, read_encoder_weights
from trainer.classification.start_vectors import sample_tokens
from trainer.classification.start_weights import describe_test_rows
from trainer.config import TrainConfig
from trainer.start_model import find_start_model


def start_from_encoder(config: TrainConfig, data: TextData) -> TextData:
    """The data with the encoder that --from names, and the weights to start with. Raises TrainingError."""
    address = config.start_from
    assert address is not None
    if config.old_data is not None:
        raise TrainingError(f"--old-data is learnt again where a classifier goes on, and {address} is an encoder")
    if data.words == "bytes":
        raise TrainingError(
            "the dataset's rows are bytes, and an encoder reads words; make it by `shoal preprocess --words tokens`"
        )
    source = find_start_model(address).folder
    files = read_encoder_files(source)
    weights = StartWeights(
        settings={},
        state=read_encoder_weights(source, files),
        near=config.vocabulary,
        about={
            "pretrained": {
                "address": address,
                "encoder": files.config.model_type,
                "layers": files.config.num_hidden_layers,
                "hidden": files.config.hidden_size,
            }
        },
        note=f"the layers start as those of the encoder {address}, {_described_pieces(files, data)}. "
        + describe_test_rows(apart=None),
        encoder=files,
    )
    return replace(data, weights=weights)


def _described_pieces(files: EncoderFiles, data: TextData) -> str:
    """How it reads the words in the validation rows."""
    counts = np.bincount(sample_tokens(data), minlength=len(data.vocabulary) + FIRST_WORD)
    seen = np.flatnonzero(counts[FIRST_WORD:])
    weights = np.append(counts[:FIRST_WORD], counts[FIRST_WORD:][seen])
    pieces, starts = (each.numpy() for each in files.pieces([data.vocabulary[place] for place in seen]))
    unknown = np.append(0, (pieces == files.unknown).cumsum())[starts]  # before each word, and at the end
    count, share = np.average(np.diff(starts), weights=weights), np.average(np.diff(unknown) > 0, weights=weights)
    return (
        f"which reads a word in the validation rows as {count:.2f} pieces on average, and {share:.1%} of them not whole"
    )
