"""Brings the files of this machine that a training names to where its ranks find them: into a folder of its run."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bootstrap.aws import objects
from bootstrap.progress import Bars
from corpus.reading import s3
from corpus.reading.s3 import is_s3
from trainer.config import TrainConfig
from trainer.embeddings.vectors import vectors_file

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_ANSWERS = {".questions": ".answers"}
"""Of a set of analogies in MSR's format the other file."""


def in_bucket(config: TrainConfig, folder: s3.S3Path) -> TrainConfig:
    """The configuration with the addresses of its files after `upload`."""
    vectors = _vectors(config)
    return replace(
        config,
        embeddings=vectors and _address(vectors, folder),
        similarity=tuple(_address(each, folder) for each in config.similarity),
        analogy=tuple(_address(each, folder) for each in config.analogy),
    )


def upload(client: "S3Client", config: TrainConfig, folder: s3.S3Path, bars: Bars) -> None:
    """Upload the configuration's files to the folder: word embeddings from which it starts, and sets of words."""
    vectors = _vectors(config)
    for address in (*config.similarity, *config.analogy, *([] if vectors is None else [vectors])):
        if is_s3(address):
            continue
        path = Path(address)
        beside = path.with_suffix(_ANSWERS.get(path.suffix, path.suffix))
        objects.upload(client, [path, beside] if beside != path and beside.exists() else [path], folder, bars)


def _vectors(config: TrainConfig) -> str | None:
    found = config.embeddings
    return vectors_file(found) if found is not None and not is_s3(found) else found


def _address(address: str, folder: s3.S3Path) -> str:
    """Where ranks find a file: one of this machine in the folder."""
    return (
        address if is_s3(address) else str(s3.S3Path(folder.bucket, folder.key + objects.safe_name(Path(address).name)))
    )
