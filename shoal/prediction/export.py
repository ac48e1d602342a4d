"""Copies a trained model to a folder or to S3.

On S3, the files of a folder cannot appear all at once. So `config.json` is uploaded last.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from common.errors import ShoalError, explain_os_error
from common.files import require_replaceable
from common.private_folders import temporary_folder
from corpus.reading import s3
from corpus.reading.s3 import S3Path, is_s3
from corpus.reading.storage import check_writable, join, open_range
from trainer.classification.model_folder import write_model
from trainer.classification.trained_model import TrainedModel
from trainer.output.run_files import CONFIG, MODEL_FILES, replaced_folder

_MOST_LISTED = 100
_MOST_CONFIG_BYTES = 1 << 24


def export_model(model: TrainedModel, output: str, *, onnx: bool, force: bool = False) -> int:
    """Write a model to a folder (a path or s3://...), with `onnx` also as model.onnx; return the size in bytes.

    Raises ShoalError if `output` has other files or, without `force`, a different model. Raises TrainingError or
    DataError if writing fails.
    """
    place = s3.place_of(f"{output.rstrip('/')}/") if is_s3(output) else None
    check_writable(output)
    existing = _existing(output, place)
    if other := sorted(set(existing) - {*MODEL_FILES}):
        raise ShoalError(
            f"{output} has {other[0]!r}, which is not a file of a model; choose another --output, or remove its content"
        )
    with temporary_folder("shoal-model-") as above:
        folder = above / "model"
        write_model(folder, model, onnx=onnx)
        size = sum(path.stat().st_size for path in folder.iterdir())
        if existing.get(CONFIG, (folder / CONFIG).read_bytes()) != (folder / CONFIG).read_bytes():
            require_replaceable(f"{output} has a different model", ShoalError, force=force)
        if place is not None:
            _upload(folder, place, existing)
            return size
        with explain_os_error(ShoalError, f"cannot write {output}", "choose another --output"):
            Path(output).parent.mkdir(parents=True, exist_ok=True)
            with replaced_folder(Path(output)) as new:
                shutil.copytree(folder, new, dirs_exist_ok=True)
    return size


def _existing(output: str, place: S3Path | None) -> dict[str, bytes]:
    """Return the names of the files in the output (on S3, of the first ones), for `config.json` with its content."""
    if place is not None:
        with s3.explained_errors(output, "list"):
            found = s3.list_objects(s3.client(), place, _MOST_LISTED)
            names = [each["Key"].removeprefix(place.key) for each in found]
    else:
        with explain_os_error(ShoalError, f"cannot write {output}", "choose another --output"):
            names = [path.name for path in Path(output).iterdir()] if Path(output).is_dir() else []
    return {name: _content(join(output, name)) if name == CONFIG else b"" for name in names}


def _content(address: str) -> bytes:
    with open_range(address) as file:
        return file.read(_MOST_CONFIG_BYTES)


def _upload(folder: Path, place: S3Path, existing: Iterable[str]) -> None:
    """Upload the files of a model's folder, `config.json` last, after removing the existing `config.json` and the files
    that only the existing model has."""
    new = {path.name for path in folder.iterdir()}
    with s3.explained_errors(str(place), "write"):
        for name in sorted({CONFIG, *existing} - (new - {CONFIG})):
            s3.client().delete_object(Bucket=place.bucket, Key=f"{place.key}{name}")
    for name in sorted(new, key=lambda name: (name == CONFIG, name)):
        there = S3Path(place.bucket, f"{place.key}{name}")
        with s3.explained_errors(str(there), "write"):
            s3.upload(s3.client(), folder / name, there)
