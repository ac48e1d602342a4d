"""Copies a trained model to a folder or to S3.

On S3, the files of a folder cannot appear all at once. So `config.json` is uploaded last, and the target must be empty.
"""

from pathlib import Path

from common.errors import ShoalError, explain_os_error
from common.private_folders import temporary_folder
from corpus.reading import s3
from corpus.reading.s3 import S3Path, is_s3
from corpus.reading.storage import check_writable
from trainer.classification.model_folder import write_model
from trainer.classification.trained_model import TrainedModel
from trainer.output.run_files import CONFIG


def export_model(model: TrainedModel, output: str, *, onnx: bool) -> int:
    """Write a model to a new folder (a path or s3://...), with `onnx` also as model.onnx; return the size in bytes.

    Raises ShoalError if `output` is not empty, and TrainingError or DataError if writing fails.
    """
    if is_s3(output):
        place = s3.place_of(f"{output.rstrip('/')}/")
        check_writable(output)
        with s3.explained_errors(output, "list"):
            _require_free(output, next((found["Key"] for found in s3.list_objects(s3.client(), place, 1)), None))
        with temporary_folder("shoal-model-") as above:
            folder = above / "model"
            write_model(folder, model, onnx=onnx)
            return _upload(folder, place)
    folder = Path(output)
    with explain_os_error(ShoalError, f"cannot write {output}", "choose another --output"):
        _require_free(output, next((path.name for path in folder.iterdir()), None) if folder.is_dir() else None)
        folder.parent.mkdir(parents=True, exist_ok=True)
    write_model(folder, model, onnx=onnx)
    return sum(path.stat().st_size for path in folder.iterdir())


def _require_free(output: str, found: str | None) -> None:
    if found is not None:
        raise ShoalError(f"{output} already contains {found}; choose another --output, or remove its content")


def _upload(folder: Path, place: S3Path) -> int:
    """Upload the files of a model's folder, `config.json` last; return their total size in bytes."""
    total = 0
    for path in sorted(folder.iterdir(), key=lambda path: path.name == CONFIG):
        there = S3Path(place.bucket, f"{place.key}{path.name}")
        with s3.explained_errors(str(there), "write"):
            s3.upload(s3.client(), path, there)
        total += path.stat().st_size
    return total
