"""A classifier as the start of one that goes on learning, on a dataset of other words, labels or classes.

It keeps its words, whether or not the new data have them, and gets those that it lacks; and its classes likewise. A new
class starts with the mean of the outputs of all others. Where the ratings are other ones than before, each starts with
the mean of the outputs of its side, positive or negative.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from common.errors import TrainingError
from corpus.reading.storage import readable
from corpus.text import FIRST_WORD, word_ids
from trainer.classification.data import StartWeights, TextData
from trainer.classification.losses import CROSS_ENTROPY, Scale
from trainer.classification.model_folder import READ, read_config, read_model_folder
from trainer.classification.old_rows import OldRows, find_old_rows
from trainer.classification.renumbering import joined, renumbered
from trainer.classification.start_program import read_start_program
from trainer.classification.start_weights import describe_test_rows, require_rule_of_words, share_known, with_new_words
from trainer.classification.trained_model import TrainedModel
from trainer.config import TrainConfig
from trainer.options.presets import OF_THE_START
from trainer.output.stored_files import local_folder
from trainer.registry import MODELS
from trainer.start_model import find_start_model, is_program_file

_NEAR_TABLE, _TABLE = "embedding.weight", "vectors"
"""How the names of tables end: of the LSTM's word vectors, and of fastText's, which has n-grams behind its words."""
_OUTPUTS = ("head.1.weight", "head.1.bias", "last.weight")
"""How the names of weights end that have a row for each output."""


class _Words(NamedTuple):
    """The words of the model before and now. The first ones, `near`, have a vector of the LSTM's."""

    old: Sequence[str]
    old_near: int
    new: list[str]
    near: int


def start_from_classifier(config: TrainConfig, data: TextData) -> TextData:
    """The data with the words and classes of the classifier that --from names, and then those that it lacks, with the
    training rows of --old-data, and the weights to start with. Raises TrainingError and DataError."""
    address = config.start_from
    assert address is not None
    model = _model_at(find_start_model(address).folder)
    if model.name != config.model:
        raise TrainingError(f"{address} goes with --model {model.name}, not {config.model}; leave out --model")
    require_rule_of_words(address, model.words, data)
    classes = joined_classes(model.classes, data.classes, address)
    words = _words(model, data, config)
    old = find_old_rows(config, data) if config.old_data else None
    if old:
        classes = joined_classes(classes, old.data.classes, str(config.old_data))
    known = word_ids(words.new)
    if model.row_length is not None:
        data = data.read_to(model.row_length)
    found = renumbered(data, words.new, known, classes, cache=config.cache)
    if old:
        more = renumbered(old.data, words.new, known, classes, cache=None).training
        found = replace(found, training=joined(found.training, more, cache=config.cache))
    about = _about(address, model, data, old)
    added = sum(word not in model.ids for word in words.new)
    new_classes = classes[len(model.classes) :]
    weights = StartWeights(
        settings={name: model.settings.get(name) for name in OF_THE_START if name in MODELS[model.name].settings}
        | {"loss": model.loss.kind},
        state=_state(model, words, _sources(model, classes, found.scale)),
        near=words.near,
        about=about,
        note=f"the classifier {address} goes on learning; it knows {share_known(data, model.ids):.1%} of the words in "
        f"the validation rows; new words, which start from their parts: {added:,}. "
        + (f"New classes: {', '.join(new_classes)}. " if new_classes else "")
        + (f"{old.note} " if old else "")
        + describe_test_rows(apart=about["continued"][-1]["test_rows_apart"]),
    )
    return replace(found, weights=weights)


def _model_at(address: str) -> TrainedModel:
    if is_program_file(address):
        with readable(address) as path:
            return read_start_program(path, address)
    with local_folder(address, READ, read_config) as path:
        return read_model_folder(path, address)


def joined_classes(before: tuple[str, ...], others: tuple[str, ...], address: str) -> tuple[str, ...]:
    """The names of these classes, and then those of `others` that are not among them. Raises TrainingError where one of
    both is negative and positive, which have no such names; `address` is that of one of both, for the message."""
    if bool(before) != bool(others):
        names = ", ".join((before or others)[:8])
        raise TrainingError(
            f"{address} and the dataset cannot be joined: one tells negative texts from positive ones, and the other "
            f"the classes {names}; train a model of its own, without --from"
        )
    return (*before, *(name for name in others if name not in before))


def _words(model: TrainedModel, data: TextData, config: TrainConfig) -> _Words:
    old = list(model.ids)
    old_near = min(len(old), model.settings.get("vocabulary", len(old)))
    near = dict.fromkeys([*old[:old_near], *data.vocabulary[: config.vocabulary]])
    # Only a model with n-grams has use for words without a vector of the LSTM's.
    far = [*old, *data.vocabulary] if "ngrams" in MODELS[model.name].settings else ()
    return _Words(old, old_near, list(dict.fromkeys([*near, *far])), len(near))


def _sources(model: TrainedModel, classes: Sequence[str], scale: Scale) -> list[list[int]]:
    """For each output now those of the model whose mean it starts with."""
    before = model.loss
    if classes:
        every = list(range(before.classes))
        return [[label] for label in every] + [every] * (len(classes) - before.classes)
    if before.kind != CROSS_ENTROPY or before.scale == scale:
        return [[output] for output in range(before.outputs)]
    border = before.scale.positive_from - before.scale.low
    sides = [list(range(border)), list(range(border, before.outputs))]
    return [sides[rating >= scale.positive_from] for rating in range(scale.low, scale.high + 1)]


def _state(model: TrainedModel, words: _Words, sources: Sequence[Sequence[int]]) -> Mapping[str, Tensor]:
    near = word_ids(words.old[: words.old_near])
    found = {}
    for name, each in model.classifier.state_dict().items():
        if name.endswith(_NEAR_TABLE):
            found[name] = with_new_words(each, words.new[: words.near], near)
        elif name.endswith(_TABLE):
            ngrams = each[FIRST_WORD + len(words.old) :]
            found[name] = torch.cat([with_new_words(each, words.new, model.ids), ngrams])
        elif name.endswith(_OUTPUTS):
            found[name] = torch.stack([each[list(outputs)].mean(0) for outputs in sources])
        else:
            found[name] = each
    return found


def _about(address: str, model: TrainedModel, data: TextData, old: OldRows | None) -> dict[str, Any]:
    """The lineage: what the model has of it, and this step."""
    before = model.about
    lineage = before.get("continued", [])
    learnt = [before.get("dataset"), *(each.get("dataset") for each in lineage), *_pretrained_on(before)]
    step = {
        "address": address,
        "dataset": before.get("dataset"),
        "epochs": before.get("epoch"),
        "test": {name: each for name, each in before.get("test", {}).items() if name != "confusion"},
        "test_rows_apart": True if set(learnt) == {data.digest} else None,
    }
    if old:
        step |= {"old_data": old.data.digest, "old_rows": len(old.data.training), "left_out": old.left_out}
    return {
        **({"pretrained": before["pretrained"]} if "pretrained" in before else {}),
        "continued": [*lineage, step],
    }


def _pretrained_on(about: Mapping[str, Any]) -> Iterable[str]:
    """What the language model below it has learnt from, if there is one."""
    return [about["pretrained"].get("dataset")] if "pretrained" in about else []
