"""What `--from` names: the model from which a classifier starts, found without torch, because whoever pays for nodes
looks before.

A further kind of model is a member of `Kind`, a branch of `find_start_model`, and in the task of classification what
loads it (classification/task.py, `_STARTS`).
"""

from collections.abc import Mapping
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from common.errors import DataError, TrainingError
from common.json_values import parse_json_object, require_fields
from corpus.dataset_settings import WORD_RULES
from corpus.reading.s3 import is_s3
from corpus.reading.storage import exists, join, open_range
from trainer.config import TrainConfig
from trainer.encoder_address import PREFIX, encoder_source
from trainer.options.classifier_options import ClassifierOptions
from trainer.options.presets import CONTINUED, OF_A_PROGRAM, OF_THE_START
from trainer.output.program_file import HEAD_BYTES, read_program_layers
from trainer.output.run_files import CONFIG, MEASURES, MODEL, OLD_MODEL, VOCABULARY, WEIGHTS
from trainer.registry import CLASSIFIERS, ENCODER, LANGUAGE_MODELS, MODELS

FILES = (WEIGHTS, VOCABULARY, MEASURES)
"""The files of a model's folder that are read besides `config.json`."""
_KEPT = ("dropout", "embedding_dropout")
"""Settings of a classifier with which it goes on, unless others are given."""
_QUANTISED = ".ftz"
_OF_PROGRAM = (".bin", _QUANTISED)
"""How the names of models of fastText's program end."""
_MOST_BYTES = 16 << 20


class Kind(Enum):
    """What a classifier starts from."""

    LANGUAGE = "language model"
    CLASSIFIER = "classifier"
    ENCODER = "Transformer encoder"


class StartModel(NamedTuple):
    """A model to start from."""

    kind: Kind
    folder: str
    """Its address: a path, or s3://...; of an encoder also a name on the hub, of fastText's program a file."""
    model: str
    """The `--model` of the classifier that it makes."""
    words: str
    """Its rule of words; of an encoder that of texts that are read for it."""
    layers: Mapping[str, Any]
    """Options of a run that are its own, by name, and cannot be others."""
    defaults: Mapping[str, Any]
    """Defaults of other options."""

    @property
    def options(self) -> dict[str, Any]:
        """The options of a run that follow from it, by name."""
        return {**self.defaults, **self.layers, "model": self.model}


def find_start_model(address: str) -> StartModel:
    """The model in a folder, or in that of its run, or the encoder that `hf:` names. Raises TrainingError where there
    is none that a classifier can start from, and DataError where that cannot be found out."""
    if address.startswith(PREFIX):
        return StartModel(Kind.ENCODER, encoder_source(address), ENCODER, "tokens", {}, {})
    for folder in (address, join(address, MODEL)):
        if exists(join(folder, CONFIG)):
            return _model_of(folder, _config(folder))
    if is_program_file(address) and exists(address):
        return _program_model(address)
    if address.endswith(OLD_MODEL) or exists(join(address, OLD_MODEL)):
        raise TrainingError(
            f"{address} is a model of an earlier version; name the folder that `shoal export` makes of it"
        )
    raise TrainingError(
        f"there is no model at {address}: neither {CONFIG} nor {MODEL}/{CONFIG}; `shoal pretrain` and `shoal train` "
        "write one when they have finished"
    )


def is_program_file(address: str) -> bool:
    """Whether an address is that of a model of fastText's program, by its name."""
    return address.endswith(_OF_PROGRAM)


def start_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run that were `given`, with those that follow from what --from names. A run whose model is given
    has them already. Raises TrainingError and DataError."""
    if given.get("start_from") is None or "model" in given:
        return dict(given)
    start = find_start_model(given["start_from"])
    return {**start.options, **given}


def files_here(address: str | None) -> list[Path]:
    """The files of a model on this machine, which nodes have to be brought; none of one in S3, or of no model."""
    if address is None or is_s3(address):
        return []
    folder = Path(find_start_model(address).folder)
    return [folder] if is_program_file(address) else [folder / name for name in (CONFIG, *FILES)]


def _config(folder: str) -> dict[str, Any]:
    try:
        with closing(open_range(join(folder, CONFIG), 0, _MOST_BYTES)) as file:
            return parse_json_object(file.read(_MOST_BYTES).decode())
    except (DataError, UnicodeDecodeError) as error:
        raise TrainingError(f"{folder}/{CONFIG} was not written by Shoal, or is damaged: {error}") from error


def _program_model(address: str) -> StartModel:
    if address.endswith(_QUANTISED):
        raise TrainingError(f"{address} is quantised, and cannot go on learning; give the .bin that it was made from")
    with closing(open_range(address, 0, HEAD_BYTES)) as file:
        layers = read_program_layers(file.read(HEAD_BYTES), address)
    loss = "cross-entropy" if layers.pop("labels") == 2 else "softmax"
    try:
        ClassifierOptions(**layers)
    except TrainingError as error:
        raise TrainingError(f"{address} cannot go on learning here: {error}") from error
    return StartModel(Kind.CLASSIFIER, address, "fasttext", "tokens", {**layers, "loss": loss}, OF_A_PROGRAM)


def _model_of(folder: str, config: Mapping[str, Any]) -> StartModel:
    """The model of a folder with this `config.json`."""
    name, words = config.get("model"), config.get("words")
    if name == ENCODER:
        raise TrainingError(f"{folder} has a fine-tuned encoder, which goes on by --from {PREFIX}{folder}")
    if words in WORD_RULES and name in (*LANGUAGE_MODELS, *CLASSIFIERS):
        try:
            is_language = name in LANGUAGE_MODELS
            layers = _layers_of_language(config) if is_language else _layers_of_classifier(config)
            require_fields(TrainConfig, layers)
        except (AttributeError, DataError, KeyError, TypeError) as error:
            raise TrainingError(f"{folder}/{CONFIG} is damaged: it has not all settings of a {name}") from error
        if is_language:
            return StartModel(Kind.LANGUAGE, folder, "pretrained", words, layers, {})
        kept = {name: layers.pop(name) for name in _KEPT if name in layers}
        return StartModel(Kind.CLASSIFIER, folder, name, words, layers, {**CONTINUED.get(name, {}), **kept})
    raise TrainingError(
        f"{folder} has no classifier, and no language model; make one by `shoal train` or `shoal pretrain`, or start "
        "from word embeddings by --embeddings"
    )


def _layers_of_language(config: Mapping[str, Any]) -> dict[str, Any]:
    settings = {**config["settings"], "output_weights": "tied" if config["settings"]["tied"] else "own"}
    return {name: settings[name] for name in ("embedding", "hidden", "layers", "direction", "output_weights")}


def _layers_of_classifier(config: Mapping[str, Any]) -> dict[str, Any]:
    settings = config["settings"]
    # One that is not there, such as char_ngrams, is None, and can be no other either.
    found = {name: settings.get(name) for name in (*OF_THE_START, *_KEPT) if name in MODELS[config["model"]].settings}
    row_length = {} if config["row_length"] is None else {"row_length": config["row_length"]}
    return {**found, **row_length, "loss": config["loss"]["kind"]}
