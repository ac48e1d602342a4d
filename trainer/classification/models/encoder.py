"""A pretrained Transformer encoder, such as BERT (Devlin et al. 2019), with the last layers that its library gives it.

Each word of the vocabulary has its subword pieces, found once. A row becomes those of its words, one after the other,
between the pieces that the encoder has before and behind each text.

The library's dropout draws from the rank's generator, in the order of the rank's rows. So the library's modules always
compute as in an evaluation, and masks of each row's own are where they had theirs: on states, not on the weights of
attention.
"""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from corpus.text import FIRST_WORD
from trainer.classification.encoder_files import EncoderFiles
from trainer.classification.models.classifier import Classifier
from trainer.classification.models.lstm import in_groups
from trainer.computing.dropout import POOL, Dropout

_PLACE = 1009
"""How far apart the masks of two places are in the pool that they share."""
_held = threading.local()
"""The keys of the rows that a thread computes: the library passes none on to its layers."""


class Encoder(Classifier):
    """The library's classifier. It begins at random; `start` gives it what was learnt before. The names of its weights
    are the library's."""

    pieces: Tensor
    starts: Tensor

    def __init__(self, *, words: int, outputs: int, files: EncoderFiles) -> None:
        """`words` counts the ids, with padding and unknown."""
        super().__init__()
        self.files, self._words = files, words
        self.library = files.build(outputs).requires_grad_(True)  # of positions that are waves, too
        self._most = files.most_pieces(self.library)
        _replace_dropout(self.library, files.config.hidden_size)
        self.library.eval()
        for name in ("pieces", "starts"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int64), persistent=False)

    def read_vocabulary(self, vocabulary: Sequence[str]) -> None:
        device = next(self.parameters()).device
        assert len(vocabulary) + FIRST_WORD == self._words
        self.pieces, self.starts = (each.to(device) for each in self.files.pieces(vocabulary))

    def start(self, state: Mapping[str, Tensor]) -> None:
        """Begin with learnt weights, by the library's names; those of a last layer with other outputs are left out."""
        own = self.state_dict()
        fitting = {name: each for name, each in state.items() if name in own and own[name].shape == each.shape}
        self.library.load_state_dict(fitting, strict=False)

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the files that the library needs besides weights and `config.json`; returns what belongs in that."""
        return self.files.save(folder, self.library)

    def train(self, mode: bool = True) -> "Encoder":
        super().train(mode)
        self.library.eval()
        return self

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.library.state_dict(*args, **kwargs)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        return self.library.load_state_dict(state_dict, strict, assign)

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:  # noqa: ARG002
        pieces, counts = self._pieces(tokens.long())
        order = counts.argsort(descending=True, stable=True)
        outputs = in_groups(self._one_group, pieces[order], counts[order], None if keys is None else keys[order])
        return outputs[order.argsort()]

    def _one_group(self, pieces: Tensor, counts: Tensor, keys: Tensor | None) -> Tensor:
        real = torch.arange(pieces.shape[1], device=pieces.device) < counts[:, None]
        _held.keys = keys
        try:
            found: Tensor = self.library(input_ids=pieces, attention_mask=real.long()).logits
        finally:
            _held.keys = None
        return found

    def _pieces(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """(rows, longest): the pieces of rows of words (rows, width), and (rows,): their numbers; cut to the most that
        the encoder reads."""
        before, after = self.files.before, self.files.after
        each = self.starts.diff()[ids]  # (rows, width)
        ends = each.cumsum(1)
        inner = ends[:, -1].clamp(max=self._most - len(before) - len(after))  # (rows,)
        places = torch.arange(int(inner.max()), device=ids.device).expand(len(ids), -1).contiguous()
        words = torch.searchsorted(ends, places, right=True).clamp(max=ids.shape[1] - 1)  # (rows, longest)
        at = self.starts[ids.gather(1, words)] + places - (ends - each).gather(1, words)
        real = places < inner[:, None]
        own = torch.where(real, self.pieces[at.where(real, 0)], self.files.padding)
        first = ids.new_tensor(before).expand(len(ids), -1)
        found = torch.cat([first, own, ids.new_full((len(ids), len(after)), self.files.padding)], dim=1)
        for number, piece in enumerate(after):
            found.scatter_(1, (len(before) + inner + number)[:, None], piece)
        return found, len(before) + inner + len(after)


class _RowDropout(nn.Module):
    """What stands where the library has nn.Dropout: masks of each row for states (rows, width) and (rows, pieces,
    width); all else, such as the weights of attention, and what all rows share, is left as it is."""

    p = 0.0
    """Attention that takes this from the module drops nothing."""

    def __init__(self, masks: Dropout, place: int) -> None:
        super().__init__()
        self._masks, self._place = masks, place

    def forward(self, values: Tensor) -> Tensor:
        keys, width = getattr(_held, "keys", None), self._masks.pool.shape[1]
        if keys is None or len(values) != len(keys) or values.dim() > 3 or values.shape[-1] != width:
            return values
        keys = (keys + _PLACE * self._place) % POOL
        found: Tensor = (
            self._masks.at_each_time(values.transpose(0, 1), keys).transpose(0, 1)
            if values.dim() == 3
            else self._masks(values, keys)
        )
        return found


def _replace_dropout(model: nn.Module, width: int) -> None:
    """Give every place of the library's dropout its masks; places of one share have a pool together."""
    pools: dict[float, Dropout] = {}
    places = [(each, name, child) for each in model.modules() for name, child in each.named_children()]
    for number, (module, name, child) in enumerate(places):
        if isinstance(child, nn.Dropout):
            if child.p not in pools:
                pools[child.p] = Dropout(child.p, width)
            setattr(module, name, _RowDropout(pools[child.p], number))


def build(settings: Mapping[str, Any]) -> Encoder:
    return Encoder(**settings)


def weights(settings: Mapping[str, Any]) -> int:
    """The number of weights of a model that `build` returns."""
    files: EncoderFiles = settings["files"]
    return files.weights(settings["outputs"])
