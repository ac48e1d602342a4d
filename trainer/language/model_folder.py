"""A trained language model as a folder.

- `model.safetensors`: the weights
- `config.json`: its layers, its rule of words, and what it learnt from, with the size and digest of each other file
- `vocabulary.txt`: a word a line, in the order of the ids, which begin with 2
- `measures.json`: its measures on the test texts
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from common.errors import DataError, TrainingError
from common.files import indented_json
from common.json_values import made, parse_json_object
from common.version import VERSION
from corpus.dataset_settings import WORD_RULES
from corpus.text import FIRST_WORD
from trainer.language.model import DIRECTIONS, EncoderSettings, LanguageModel
from trainer.output import archive
from trainer.output.archive import DamagedError
from trainer.output.run_files import CONFIG, MEASURES, VOCABULARY, WEIGHTS, whole_folder
from trainer.output.stored_files import check_config, require_stored, stored, with_digest
from trainer.start_model import FILES

FORMAT = 2
MODEL = "awd-lstm"
_WIDEST, _DEEPEST, _MOST_IDS = 8192, 64, 1 << 24


@dataclass(frozen=True, kw_only=True)
class PretrainedModel:
    """A language model, with what it needs to read texts."""

    model: LanguageModel
    vocabulary: list[str]
    words: str
    """The rule of words: one of corpus.dataset_settings.WORD_RULES."""
    about: Mapping[str, Any]
    """What it learnt from: the `dataset`'s digest, the `tokens` in all epochs, and more."""
    measures: Mapping[str, Any]


def write_language_model(folder: Path, trained: PretrainedModel) -> None:
    """Write a model to a folder, in place of an old model's folder, whole or not at all. Raises TrainingError."""
    try:
        with whole_folder(folder) as new:
            save_file(
                {name: each.cpu().contiguous() for name, each in trained.model.state_dict().items()}, new / WEIGHTS
            )
            (new / VOCABULARY).write_text("".join(f"{word}\n" for word in trained.vocabulary), "utf-8")
            (new / MEASURES).write_bytes(indented_json(dict(trained.measures)))
            config = {
                "format": FORMAT,
                "shoal": VERSION,
                "model": MODEL,
                "settings": asdict(trained.model.settings),
                "words": trained.words,
                "data": dict(trained.about),
                "files": {path.name: stored(path) for path in sorted(new.iterdir())},
            }
            (new / CONFIG).write_bytes(indented_json(with_digest(config)))
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TrainingError(f"cannot write {folder}: {reason}; free some space, then continue with --resume") from error


def read_config(path: Path, shown: str) -> Mapping[str, Any]:
    """The content of `config.json`; `shown` is the folder's address for messages. Its digest, its format and `files`
    are checked. Raises TrainingError."""
    try:
        config = parse_json_object(path.read_text("utf-8"))
        if config.get("format") != FORMAT:
            raise DamagedError(f"it is of format {config.get('format')!r}, and this Shoal reads {FORMAT}")
        check_config(config, FILES)
    except OSError as error:
        raise TrainingError(f"cannot read {shown}/{CONFIG}: {error.strerror}") from error
    except (DamagedError, DataError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise TrainingError(
            f"{shown}/{CONFIG} was not written by Shoal, or was changed since: {reason}; copy or export the model again"
        ) from error
    return config


def read_language_model(folder: Path, shown: str) -> PretrainedModel:
    """The model in a folder; `shown` is its address for messages. Raises TrainingError."""
    config = read_config(folder / CONFIG, shown)
    try:
        settings, words = _checked(config)
        for name in FILES:
            require_stored(folder / name, f"{shown}/{name}", config)
        vocabulary = (folder / VOCABULARY).read_text("utf-8").split("\n")[:-1]
        if len(vocabulary) + FIRST_WORD != settings.words or len(set(vocabulary)) < len(vocabulary):
            raise DamagedError("its vocabulary is not that of its settings")
        measures = parse_json_object((folder / MEASURES).read_text("utf-8"))
        with safe_open(folder / WEIGHTS, framework="pt") as file:
            if sum(prod(file.get_slice(name).get_shape()) for name in file.keys()) != settings.weights:  # noqa: SIM118
                raise DamagedError("the number of its weights is not that of its settings")
            model = LanguageModel(settings)
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        archive.require_tensors(state, model.state_dict())
        model.load_state_dict(state)
    except OSError as error:
        raise TrainingError(f"cannot read {shown}: {error.strerror or error}") from error
    except MemoryError:
        raise TrainingError(f"{shown} does not fit into this machine's memory") from None
    except (DamagedError, DataError, SafetensorError, LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise TrainingError(
            f"{shown} is not a language model written by `shoal pretrain`, or a damaged one: {reason}"
        ) from error
    return PretrainedModel(model=model, vocabulary=vocabulary, words=words, about=config["data"], measures=measures)


def _checked(config: Mapping[str, Any]) -> tuple[EncoderSettings, str]:
    """The settings, and the rule of words. Raises DamagedError and DataError for values that no model has."""
    if not isinstance(config.get("settings"), dict):
        raise DamagedError("it has no settings")
    settings, words = made(EncoderSettings, config["settings"]), config.get("words")
    sizes = (settings.embedding, settings.hidden)
    if (
        not all(1 <= each <= _WIDEST for each in sizes)
        or not 1 <= settings.layers <= _DEEPEST
        or not FIRST_WORD < settings.words <= _MOST_IDS
        or settings.direction not in DIRECTIONS
        or words not in WORD_RULES
    ):
        raise DamagedError("its settings are not those of a model")
    return settings, str(words)
