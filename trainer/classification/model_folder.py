"""Model folder of a classifier. Training and `shoal export` write it, and `shoal predict` reads it.

- `model.safetensors`: the weights, and tensors of the vocabulary that would be slow to compute
- `config.json`: the description of the model and its training data (`_config`), with the sizes and digests of the other
  files
- `vocabulary.txt`: one word per line, in the order of the ids, which start at 2
- `measures.json`: the `epoch` of the model, from 1, and the measures on the `test` rows
- `model.onnx`, `predict.py`, `requirements.txt`: the model for other programs, a program that uses it without Shoal
  (`standalone.py`), and its libraries, if the export included them

`config.json` is written last, also to S3, so a folder without it is incomplete. Do not parse a file before its digest
is checked: after an interrupted copy, a folder can contain files of two models. A file that this program is not allowed
to read is reported as unreadable, not as missing.
"""

import json
import shlex
import shutil
import stat
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b, file_digest
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from common.errors import DataError, TrainingError, disk_advice
from common.files import DOCUMENT_BYTES, RECORD_BYTES, indented_json, open_regular, read_regular
from common.json_values import parse_json_object
from common.private_folders import temporary_folder
from common.version import VERSION
from corpus.reading import s3
from corpus.reading.s3 import is_s3
from corpus.reading.storage import join
from corpus.text import UNKNOWN
from trainer.classification.trained_model import TrainedModel, build_unfilled, load_weights
from trainer.output.archive import DamagedError
from trainer.output.run_files import (
    CONFIG,
    MEASURES,
    MODEL,
    ONNX,
    PROGRAM,
    REQUIREMENTS,
    VOCABULARY,
    WEIGHTS,
    replaced_folder,
)
from trainer.registry import WORD_MODELS

FORMAT = 7
READ = (WEIGHTS, VOCABULARY, MEASURES)
"""Files that are read for every model, in addition to `config.json`."""
ONNX_RUNTIME = "1.32.0"
"""Version of ONNX Runtime with which `predict.py` was tested."""
_OF_VOCABULARY = "vocabulary."
"""Prefix of the names of a classifier's `vocabulary_tensors` in the file of weights."""
_ORIGIN = ("dataset", "rating_steps", "rating_fraction")
"""Fields of a model's `about` that are stored in `config.json`. Its other fields are stored in `measures.json`."""


def write_model(folder: Path, model: TrainedModel, *, onnx: bool = False) -> None:
    """Write a model folder, and replace an older model atomically. `onnx`: whether to add ONNX and its program.

    Raises TrainingError if the folder is not writable, or if it is not a model folder.
    """
    try:
        with replaced_folder(folder) as new:
            of_vocabulary = model.classifier.vocabulary_tensors()
            tensors = {
                **model.classifier.state_dict(),
                **{f"{_OF_VOCABULARY}{name}": tensor for name, tensor in of_vocabulary.items()},
            }
            state = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
            save_file(state, new / WEIGHTS, metadata={"format": "pt"})
            (new / VOCABULARY).write_text("".join(f"{word}\n" for word in model.ids), "utf-8")
            shutil.copymode(new / VOCABULARY, new / WEIGHTS)  # safetensors makes the file readable only for its owner
            measures = {name: value for name, value in model.about.items() if name not in _ORIGIN}
            (new / MEASURES).write_bytes(indented_json(measures))
            if onnx:
                write_onnx(new / ONNX, model)
                shutil.copyfile(Path(__file__).with_name("standalone.py"), new / PROGRAM)
                (new / REQUIREMENTS).write_text(f"numpy=={np.__version__}\nonnxruntime=={ONNX_RUNTIME}\n")
            files = {path.name: size_and_digest(path) for path in sorted(new.iterdir())}
            (new / CONFIG).write_bytes(indented_json(_config(model, files)))
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TrainingError(
            f"cannot write {folder}: {reason}; {disk_advice(error)}, then run the command again"
        ) from error


def read_config(path: Path, shown: str) -> dict[str, Any]:
    """Return the content of `config.json` after checks of its digest, its format and its `files`.

    `shown`: the address of the folder in error messages. Raises TrainingError if the file is unreadable or invalid, or
    if a different version of Shoal wrote it.
    """
    try:
        config = parse_json_object(read_regular(path, DOCUMENT_BYTES))
        if config.get("model") in WORD_MODELS:
            raise TrainingError(
                f"{shown} is a model of words (--model {config['model']}), which cannot label texts; use it with "
                "`shoal neighbours` or `shoal evaluate`, or start a classifier from its vectors with `shoal train "
                f"--embeddings {shlex.quote(shown)}`"
            )
        if config.get("format") == FORMAT:
            check_config(config, READ)
            return config
    except OSError as error:
        raise TrainingError(
            f"cannot read {shown}/{CONFIG}: {error.strerror}; check the file, or export the model again"
        ) from error
    except (DamagedError, DataError) as error:
        reason = " ".join(str(error).split())
        raise TrainingError(
            f"{shown}/{CONFIG} was not written by Shoal, or was changed since: {reason}; copy or export the model again"
        ) from error
    raise TrainingError(
        f"{shown}/{CONFIG} has format {config.get('format')!r}, but this version of Shoal reads format {FORMAT}; use "
        "the version of Shoal that wrote it, or train again"
    )


def read_model_folder(folder: Path, shown: str) -> TrainedModel:
    """Return the model from a folder on this machine. `shown`: the address of the folder in error messages.

    Raises TrainingError if the model is unreadable or incomplete, or if a different version of Shoal wrote it.
    """
    config = read_config(folder / CONFIG, shown)
    for name in READ:
        require_stored(folder / name, f"{shown}/{name}", config)
    try:
        content = {
            **config,
            "name": config.get("model"),
            "vocabulary": read_regular(folder / VOCABULARY, RECORD_BYTES).decode().split("\n")[:-1],
            "about": {**config.get("data", {}), **parse_json_object(read_regular(folder / MEASURES, DOCUMENT_BYTES))},
        }
        with safe_open(folder / WEIGHTS, framework="pt") as opened:
            stored = [name for name in opened.keys() if name.startswith(_OF_VOCABULARY)]  # noqa: SIM118
            names = sorted({*opened.keys()} - {*stored})
            numbers = sum(prod(opened.get_slice(name).get_shape()) for name in names)
            model = build_unfilled(content, numbers)
            of_vocabulary = {name.removeprefix(_OF_VOCABULARY): opened.get_tensor(name) for name in stored}
            return load_weights(model, {name: opened.get_tensor(name) for name in names}, of_vocabulary)
    except OSError as error:
        raise TrainingError(f"cannot read {shown}: {error.strerror or error}") from error
    except MemoryError:
        raise TrainingError(f"{shown} does not fit into this machine's memory") from None
    except (DamagedError, DataError, SafetensorError, TrainingError, LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise TrainingError(f"the model {shown} was not written by `shoal train`, or is damaged: {reason}") from error


def _config(model: TrainedModel, files: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    config = {
        "format": FORMAT,
        "shoal": VERSION,
        "model": model.name,
        "settings": dict(model.settings),
        "loss": model.loss.plain(),
        "classes": list(model.classes),
        "words": model.words,
        "stopwords": sorted(model.stopwords),
        "row_length": model.row_length,
        "data": {name: model.about[name] for name in _ORIGIN if name in model.about},
        "files": dict(files),
    }
    return add_digest(config)


_DIGEST_BYTES = 16


def add_digest(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of `config.json` with the digest of this content, which is also the digest of the model."""
    return {**config, "digest": _digest(config)}


def check_config(config: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise DamagedError unless `config` has the right digest, describes the files `names`, and has a field `data`."""
    if config.get("digest") != _digest(config):
        raise DamagedError("its digest does not match its content")
    files = config.get("files")
    if not isinstance(files, dict) or not all(
        isinstance(files.get(name), dict)
        and type(files[name].get("bytes")) is int
        and isinstance(files[name].get("digest"), str)
        for name in names
    ):
        raise DamagedError(f"`files` does not state the size and the digest of each of these files: {', '.join(names)}")
    if not isinstance(config.get("data"), dict):
        raise DamagedError("`data` is missing, or has the wrong type")


def size_and_digest(path: Path) -> dict[str, Any]:
    """Return a file's size in `bytes` and its `digest`, as `config.json` states them."""
    with open_regular(path) as file:
        digest = file_digest(file, lambda: blake2b(digest_size=_DIGEST_BYTES)).hexdigest()
        return {"bytes": file.tell(), "digest": digest}


def require_stored(path: Path, shown: str, config: Mapping[str, Any]) -> None:
    """Raise TrainingError unless a file has the size and the digest that `config.json` states.

    `shown`: the address of the file in error messages.
    """
    try:
        stored = size_and_digest(path)
    except FileNotFoundError:
        raise TrainingError(f"{shown} is missing: the model was copied incompletely; copy or export it again") from None
    except OSError as error:
        raise TrainingError(f"cannot read {shown}: {error.strerror}") from error
    if stored != config["files"][path.name]:
        raise TrainingError(
            f"{shown} does not match its size and digest in {CONFIG}: the model is still being written, was copied "
            "incompletely, or is damaged; copy or export it again"
        )


def _digest(config: Mapping[str, Any]) -> str:
    """Return the digest of all fields of `config.json` except `digest`."""
    content = json.dumps({name: value for name, value in config.items() if name != "digest"}, sort_keys=True)
    return blake2b(content.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def load_model(address: Path | str) -> TrainedModel:
    """Return a trained classifier. `address`: a path or s3://... of a model folder, or of a training run's `--output`.

    Raises TrainingError if the address has no model, or if this version of Shoal cannot read the model. Raises
    DataError if a request to S3 fails.
    """
    folder = _find(str(address))
    with _local_folder(folder) as path:
        return read_model_folder(path, folder)


def _find(address: str) -> str:
    folders = [join(address, name).rpartition("/")[0] for name in (CONFIG, f"{MODEL}/{CONFIG}")]
    for folder in folders:
        if _is_file(join(folder, CONFIG)):
            return folder
    for folder in folders:
        if started := [name for name in READ if _is_file(join(folder, name))]:
            raise TrainingError(
                f"{folder} has {started[0]} but no {CONFIG}: the model is still being written, or was copied "
                "incompletely; copy or export it again"
            )
    raise TrainingError(
        f"there is no model at {address}: neither {CONFIG} nor {MODEL}/{CONFIG} exists; `shoal train` writes a model "
        "at the end of a run"
    )


@contextmanager
def _local_folder(address: str) -> Iterator[Path]:
    """Yield the path of a model folder; if the folder is in S3, the path of a temporary copy.

    Raises DataError if a request to S3 fails. Raises TrainingError if the model is incomplete or invalid.
    """
    if not is_s3(address):
        yield Path(address)
        return
    client = s3.client()
    with temporary_folder("shoal-model-") as folder:
        source = join(address, CONFIG)
        with s3.explained_errors(source, "read"):
            s3.download(client, s3.place_of(source), folder / CONFIG, most=DOCUMENT_BYTES)
        config = read_config(folder / CONFIG, address)
        for file in READ:
            source = join(address, file)
            with s3.explained_errors(source, "read"):
                s3.download(client, s3.place_of(source), folder / file, most=config["files"][file]["bytes"])
        yield folder


def _is_file(address: str) -> bool:
    """Return whether a file exists. Raises TrainingError or DataError if the answer is unknown."""
    if is_s3(address):
        with s3.explained_errors(address, "look for"):
            return s3.head_or_none(s3.client(), s3.place_of(address)) is not None
    try:
        return stat.S_ISREG(Path(address).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise TrainingError(f"cannot read {address}: {error.strerror}; check its permissions") from error


TOKENS, LENGTHS, PROBABILITIES = "tokens", "lengths", "probabilities"
"""Names of the inputs and of the output in an ONNX file."""
_MOST_BYTES = 2_000_000_000


class _Probabilities(nn.Module):
    """Module that maps padded rows of word ids to class probabilities. Its inputs are the same for every model."""

    def __init__(self, model: TrainedModel) -> None:
        super().__init__()
        self.classifier, self._loss = model.classifier, model.loss

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        if self.classifier.reads_whole_texts:
            tokens = tokens[torch.arange(tokens.shape[1]) < lengths[:, None]]  # (t,)
        return self._loss.probabilities(self.classifier(tokens, lengths))


def write_onnx(path: Path, model: TrainedModel) -> None:
    """Write the model as an ONNX file that accepts any number of rows of any width.

    Torch's newer exporter fixes the row width of an LSTM to the width of the example input, so this function uses the
    older exporter. The older exporter records the operations of one example. So a model must not branch on the size of
    its input while `torch.onnx.is_in_onnx_export()` is true. Raises TrainingError if the model is too large for ONNX.
    """
    size = sum(tensor.nbytes for tensor in model.classifier.state_dict().values())
    if size > _MOST_BYTES:
        raise TrainingError(
            f"the model has {size / 1e9:.1f} GB of weights, but an ONNX file can contain at most 2 GB; leave out --onnx"
        )
    tokens = torch.full((2, 3), UNKNOWN, dtype=torch.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns of its deprecation, and of sizes that it might record
        torch.onnx.export(
            _Probabilities(model).eval(),
            (tokens, torch.tensor([3, 2])),
            path,
            dynamo=False,
            input_names=[TOKENS, LENGTHS],
            output_names=[PROBABILITIES],
            dynamic_axes={TOKENS: {0: "rows", 1: "width"}, LENGTHS: {0: "rows"}, PROBABILITIES: {0: "rows"}},
        )
