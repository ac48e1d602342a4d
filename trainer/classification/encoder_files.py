"""What an encoder of Hugging Face's library (transformers) is made of: its configuration, its tokenizer, its weights.

The library takes seconds to import, and `shoal[encoders]` alone installs it: import it nowhere else, and only when a
run needs it. Nothing of a folder is executed: neither code that it brings nor pickled weights.
"""

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from common.errors import TrainingError
from trainer.encoder_address import require_library

_DEEPEST = 128
"""Layers of the largest encoder: a false claim must not fill the memory."""
_UNLIMITED, _USUAL = 1 << 20, 512
"""A longest text from which on there is none; and what is read where nothing says a longest one."""


class Pieces(NamedTuple):
    """The pieces of words: those of word i are `pieces[starts[i]:starts[i + 1]]`; `pieces` (p,) int64, `starts`
    (words + 1,) int64."""

    pieces: Tensor
    starts: Tensor


class EncoderFiles:
    """The library's configuration of an encoder that classifies texts, and its tokenizer; a copy of a model shares
    them."""

    def __init__(self, config: Any, tokenizer: Any) -> None:
        """Raises TrainingError for a tokenizer that does not put the same pieces around every text."""
        self.config, self._tokenizer = config, tokenizer
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
        self.padding: int = tokenizer.pad_token_id or 0
        self.unknown: int | None = tokenizer.unk_token_id
        """The piece of what the tokenizer does not know."""
        [inner], [whole] = (self._ids(["a"], special=special) for special in (False, True))
        places = [at for at in range(len(whole)) if whole[at : at + len(inner)] == inner]
        if not places:
            raise TrainingError(
                "its tokenizer splits a word in another way where it stands alone; take another encoder"
            )
        self.before: Sequence[int] = whole[: places[0]]
        """The pieces before those of a text, such as [CLS]."""
        self.after: Sequence[int] = whole[places[0] + len(inner) :]
        """Those behind them, such as [SEP]."""

    def __deepcopy__(self, memo: Mapping[int, Any]) -> "EncoderFiles":
        return self

    def build(self, outputs: int) -> nn.Module:
        """The library's classifier, with random weights drawn from torch's generator."""
        with _explained("cannot build the encoder"):
            self.config.num_labels = outputs
            classifiers = _library().AutoModelForSequenceClassification
            return cast("nn.Module", classifiers.from_config(self.config, dtype=torch.float32))

    def weights(self, outputs: int) -> int:
        """The number of its weights; nothing is allocated for them. Raises TrainingError for too many layers."""
        if not 0 < self.config.num_hidden_layers <= _DEEPEST:
            raise TrainingError(f"it claims {self.config.num_hidden_layers} layers, and must have 1 to {_DEEPEST}")
        with torch.device("meta"):
            return sum(each.numel() for each in self.build(outputs).state_dict().values())

    def most_pieces(self, model: nn.Module) -> int:
        """The most pieces of a text that the model reads, with those before and behind it."""
        most = getattr(self.config, "max_position_embeddings", _UNLIMITED)
        for name, table in model.named_modules():
            if name.endswith("position_embeddings") and getattr(table, "padding_idx", None) is not None:
                most -= table.padding_idx + 1  # RoBERTa's first position comes behind that of padding
        found = [each for each in (most, self._tokenizer.model_max_length) if 0 < each < _UNLIMITED]
        return int(min(found, default=_USUAL))

    def pieces(self, words: Sequence[str]) -> Pieces:
        """Those of padding, which has none, of unknown words, and of each word, as it stands inside a text."""
        lists = [[], [] if self.unknown is None else [self.unknown], *self._ids(words, special=False)]
        starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        pieces = np.fromiter(chain.from_iterable(lists), np.int64, int(starts[-1]))
        return Pieces(torch.from_numpy(pieces), torch.from_numpy(starts))

    def save(self, folder: Path, model: nn.Module) -> dict[str, Any]:
        """Write the tokenizer's files; returns what the library has in the `config.json` of this model."""
        self._tokenizer.save_pretrained(folder)
        return {**json.loads(self.config.to_json_string()), "architectures": [type(model).__name__]}

    def _ids(self, words: Sequence[str], *, special: bool) -> list[list[int]]:
        """The pieces of each word by itself; by the tokenizer of the tokenizers library, which takes half the time."""
        found = self._tokenizer.backend_tokenizer.encode_batch_fast(
            [[word] for word in words], is_pretokenized=True, add_special_tokens=special
        )
        return [each.ids for each in found]


def read_encoder_files(source: str) -> EncoderFiles:
    """Those of a folder, or of a name on the hub. Raises TrainingError where they cannot be read."""
    with _explained(_reading(source)):
        library = _library()
        config = library.AutoConfig.from_pretrained(source, trust_remote_code=False)
        config._attn_implementation = None  # which may be a kernel's name on the hub, and so code of anybody
        tokenizer = library.AutoTokenizer.from_pretrained(source, trust_remote_code=False, add_prefix_space=True)
        if not tokenizer.is_fast:
            raise TrainingError("its tokenizer has no tokenizer.json; save it by the library once")
        return EncoderFiles(config, tokenizer)


def read_encoder_weights(source: str, files: EncoderFiles) -> Mapping[str, Tensor]:
    """The weights of a classifier that a folder, or a name on the hub, has beside these files, by the library's names;
    those of the last layers may be missing. Raises TrainingError where they cannot be read, or where others are
    missing."""
    with _explained(_reading(source)):
        model, told = _library().AutoModelForSequenceClassification.from_pretrained(
            source,
            config=files.config,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
        inner = f"{model.base_model_prefix}."
        if lost := sorted(each for each in told["missing_keys"] if each.startswith(inner) and "pooler." not in each):
            raise TrainingError(f"it has no weights {lost[0]}, which its configuration asks for")
        return {name: each for name, each in model.state_dict().items() if name not in told["missing_keys"]}


@cache
def _library() -> Any:
    """transformers, quiet. Raises TrainingError where it is not installed."""
    require_library()
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    return transformers


def _reading(source: str) -> str:
    """What failed where an encoder cannot be read."""
    return (
        f"cannot read the encoder {source}{'' if Path(source).is_dir() else ', which is no folder here, from the hub'}"
    )


@contextmanager
def _explained(failed: str) -> Iterator[None]:
    """Any error of the library becomes a TrainingError of one sentence."""
    try:
        yield
    except MemoryError:
        raise TrainingError(f"{failed}, which does not fit into this machine's memory") from None
    except Exception as error:  # the library documents none
        raise TrainingError(f"{failed}: {' '.join(str(error).split())}") from error
