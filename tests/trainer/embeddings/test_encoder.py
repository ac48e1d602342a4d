"""Encoder: training, round trip of its file, and errors for damaged and foreign files."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from common.errors import DataError
from trainer.embeddings.char_lstm import CharLSTM, EncoderSettings, read_encoder, write_encoder
from trainer.embeddings.model_folder import open_words, write_vectors
from trainer.embeddings.vectors import WordVectors

SETTINGS = EncoderSettings(characters="abc", character_embedding=3, hidden=4, layers=2, size=5)
WORDS = ["ab", "abcabcabc", "c", "d", "bb"]


def encoder(seed: int = 0, scale: float = 1.0) -> CharLSTM:
    torch.manual_seed(seed)
    model = CharLSTM(SETTINGS)
    with torch.no_grad():
        for each in model.centres.parameters():
            each.mul_(scale)
    return model


def write_model(folder: Path, own: CharLSTM, of: CharLSTM) -> Path:
    """Write a folder with the encoder `own`, and the vectors of the encoder `of`."""
    write_vectors(folder, WordVectors(WORDS, of.vectors(WORDS)), config={}, measures={}, encoder=own)
    return folder


def test_an_encoder_survives_a_round_trip(tmp_path):
    write_encoder(tmp_path / "encoder.safetensors", encoder())
    read = read_encoder(tmp_path / "encoder.safetensors")
    assert read.settings == SETTINGS
    assert read.vectors(WORDS).tolist() == encoder().vectors(WORDS).tolist()


def test_each_word_has_its_own_vector_whatever_its_length_and_block(monkeypatch):
    monkeypatch.setattr("trainer.embeddings.char_lstm._BLOCK", 2)
    own = encoder()
    assert np.allclose(own.vectors(WORDS), [own.vectors([word])[0] for word in WORDS], atol=1e-6)


def test_a_word_without_a_vector_is_encoded(tmp_path):
    vectors = open_words(str(write_model(tmp_path / "model", encoder(), encoder())))
    assert vectors.words == WORDS
    more = vectors.including(["ab", "cab", "", "AB", "cab"])
    assert more.words == [*WORDS, "cab"]
    assert np.allclose(more.matrix[-1], encoder().vectors(["cab"])[0])
    assert np.allclose(more.matrix[:-1], encoder().vectors(WORDS), atol=1e-6)


def test_without_an_encoder_no_word_is_added(tmp_path):
    write_vectors(tmp_path / "model", WordVectors(WORDS, encoder().vectors(WORDS)), config={}, measures={})
    assert open_words(str(tmp_path)).including(["cab"]).words == WORDS


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_an_encoder_of_another_run_is_refused(tmp_path, scale, messages):
    write_model(tmp_path / "model", encoder(1, scale), encoder(0, scale))
    with messages.raises(DataError):
        open_words(str(tmp_path / "model"))


WRONG = {
    "another format": {"format": 2},
    "more weights": {"hidden": 5},
    "a size below 0": {"hidden": -4},
    "a size in letters": {"hidden": "4"},
    "a repeated character": {"characters": "aab"},
    "an unknown field": {"colour": 1},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_file_with_invalid_metadata_is_refused(tmp_path, wrong, messages):
    path = tmp_path / "encoder.safetensors"
    write_encoder(path, encoder())
    claims = {"format": 1, "characters": "abc", "character_embedding": 3, "hidden": 4, "layers": 2, "size": 5, **wrong}
    save_file(load_file(path), path, metadata={"shoal": json.dumps(claims)})
    with messages.raises(DataError):
        read_encoder(path)


def test_a_damaged_file_is_one_sentence(tmp_path):
    path = tmp_path / "encoder.safetensors"
    write_encoder(path, encoder())
    save_file({"weight": torch.full((2,), torch.nan)}, other := tmp_path / "other")
    for content in (path.read_bytes()[:-8], b"", other.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(DataError, match="was not written by"):
            read_encoder(path)
