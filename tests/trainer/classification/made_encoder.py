"""Tiny encoders of random weights, in folders as Hugging Face's library writes them, and texts to fine-tune them on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from corpus.layout import RowBlock
from corpus.text import FIRST_WORD, word_ids
from trainer.classification.encoder_files import read_encoder_files, read_encoder_weights
from trainer.classification.losses import Loss
from trainer.classification.models.encoder import Encoder
from trainer.classification.trained_model import TrainedModel

SIZES: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 40, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
}  # fmt: skip
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


WORDS = [f"w{number}" for number in range(24)]


def dataset(path: Path, **settings: Any) -> Path:
    """Texts of these words at random; the label is whether the first one is of the first half."""
    generator = np.random.default_rng(0)
    texts = [generator.integers(len(WORDS), size=generator.integers(2, 60)) for _ in range(460)]
    texts = [np.where(generator.random(len(text)) < 0.7, text % 12 + 12 * (text[0] >= 12), text) for text in texts]
    known = {"ragged": True, "words": "tokens", "stopwords": "none", "labelled": True, "vocabulary_size": 2_000_000}
    train, test = (_rows(some) for some in (texts[:400], texts[400:]))
    write_dataset(path, settings=Settings(**{**known, **settings}), train=train, test=test, vocabulary=WORDS)
    return path


def _rows(texts: Sequence[Any]) -> RowBlock:
    return RowBlock(
        tokens=np.concatenate(texts).astype(np.uint32) + FIRST_WORD,
        lengths=np.array([len(text) for text in texts], np.uint32),
        labels=np.array([text[0] < len(WORDS) // 2 for text in texts], np.uint8),
        ratings=np.zeros(len(texts), np.uint8),
    )


def bert(folder: Path, pieces: Sequence[str], *, kind: str = "bert", pickled: bool = False) -> Path:
    """A BERT of these pieces, or another kind of encoder, without a last layer; `pickled`: with weights in a file that
    torch.save writes."""
    from transformers import AutoConfig, AutoModel, BertTokenizer

    vocabulary = [*SPECIAL, *pieces]
    torch.manual_seed(3)
    model = AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=len(vocabulary), **SIZES))
    _save(folder, model, BertTokenizer(vocab={piece: number for number, piece in enumerate(vocabulary)}))
    if pickled:
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    return folder


def roberta(folder: Path) -> Path:
    """A RoBERTa of bytes, which counts positions from that of padding."""
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizer
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *bytes_to_unicode().values()]
    torch.manual_seed(3)
    model = RobertaModel(RobertaConfig(vocab_size=len(vocabulary), pad_token_id=1, **SIZES))
    tokenizer = RobertaTokenizer(vocab={piece: number for number, piece in enumerate(vocabulary)}, merges=[])
    _save(folder, model, tokenizer)
    return folder


def build(folder: Path, words: Sequence[str]) -> Encoder:
    """A classifier of two classes with the encoder of a folder, whose last layers are random."""
    files = read_encoder_files(str(folder))
    model = Encoder(words=FIRST_WORD + len(words), outputs=2, files=files)
    model.start(read_encoder_weights(str(folder), files))
    model.read_vocabulary(words)
    return model.eval()


def trained(model: Encoder, words: Sequence[str]) -> TrainedModel:
    """A model of such a classifier."""
    return TrainedModel(
        name="encoder",
        settings={"words": FIRST_WORD + len(words), "outputs": 2},
        classifier=model,
        loss=Loss.of({"kind": "softmax", "scale": [0, 1, 1], "positive_weight": 1.0}),
        ids=word_ids(words),
        stopwords=frozenset(),
        row_length=None,
        about={"dataset": "d1", "epoch": 1, "pretrained": {"address": "hf:there", "encoder": "bert"}},
    )


def _save(folder: Path, model: Any, tokenizer: Any) -> None:
    from transformers import logging

    logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
