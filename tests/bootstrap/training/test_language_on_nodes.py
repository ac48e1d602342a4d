"""A classifier that starts on nodes of the embedded AWS from a model of this machine, or of the bucket."""

from dataclasses import replace
from pathlib import Path

import boto3
import numpy as np
import pytest
import torch

from bootstrap.hosts.hosts_file import read_hosts
from bootstrap.progress import Bars
from bootstrap.training.places.brought import _start
from bootstrap.training.places.hosts import OnHosts
from bootstrap.training.sources.dataset import DatasetSource
from common.errors import ShoalError, TrainingError
from corpus.reading.s3 import S3Path
from tests.bootstrap.training.on_nodes import DATASET, boot
from tests.fleet import BUCKET, Fleet
from tests.trained import train_on
from tests.trainer.classification.made_models import random_model
from trainer.classification.loading import load_model
from trainer.classification.model_folder import write_model
from trainer.config import configured
from trainer.embeddings.vectors import WordVectors, write_text
from trainer.language.model import EncoderSettings, LanguageModel
from trainer.language.model_folder import PretrainedModel, write_language_model
from trainer.start_model import start_options

pytestmark = pytest.mark.usefixtures("node_bucket")
WORDS = [f"word{letter}" for letter in "abcdefghijklmnopqrst"]


@pytest.fixture
def language(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    settings = EncoderSettings(words=22, embedding=6, hidden=8, layers=1, direction="forward", tied=True)
    about = {"dataset": "d" * 32, "epoch": 1, "tokens": 7}
    trained = PretrainedModel(
        model=LanguageModel(settings), vocabulary=WORDS, words="letters", about=about, measures={"perplexity": 9.5}
    )
    write_language_model(tmp_path / "language", trained)
    return tmp_path / "language"


@pytest.mark.soak
def test_nodes_start_from_a_language_model_that_is_brought_to_them(aws, language: Path, tmp_path: Path) -> None:
    one = Fleet().add("one", "g5.xlarge", 2, boot=boot(None))
    given = {"data": "dataset", "output": tmp_path / "out", "start_from": str(language), "epochs": 2}
    with Bars() as bars:
        summary = train_on(one.deployment, configured(given), DATASET, bars)
    assert summary["world_size"] == 2
    model = load_model(tmp_path / "out")
    run = summary["run"].rstrip("/")
    assert model.about["pretrained"]["address"] == f"{run}/sets"
    assert list(model.ids) == WORDS
    kept = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"{run.split('/', 3)[3]}/sets/")
    assert sorted(Path(each["Key"]).name for each in kept["Contents"]) == [
        "config.json",
        "measures.json",
        "model.safetensors",
        "vocabulary.txt",
    ]


@pytest.mark.soak
def test_nodes_go_on_with_a_classifier_and_its_old_data_that_are_brought_to_them(aws, tmp_path: Path) -> None:
    one = Fleet().add("one", "g5.xlarge", 1, boot=boot(None))
    write_model(tmp_path / "model", replace(random_model(tuple(WORDS[:9])), stopwords=frozenset()))
    given = {
        "data": "dataset", "output": tmp_path / "out", "start_from": str(tmp_path), "epochs": 2,
        "old_data": str(aws.folder / "dataset.h5"), "old_share": 0.1,
    }  # fmt: skip
    with Bars() as bars:
        train_on(one.deployment, configured(start_options(given)), DATASET, bars)
    model = load_model(tmp_path / "out")
    assert list(model.ids) == WORDS
    (step,) = model.about["continued"]
    assert step["old_rows"] == 190


def test_a_file_of_fasttexts_program_is_named_and_a_folder_by_its_files() -> None:
    folder = S3Path("bucket", "runs/one/sets/")
    assert _start([Path("here/model.bin")], folder) == "s3://bucket/runs/one/sets/model.bin"
    files = [Path("here/config.json"), Path("here/model.safetensors")]
    assert _start(files, folder) == "s3://bucket/runs/one/sets"


@pytest.mark.soak
def test_nodes_start_from_word_embeddings_that_are_brought_to_them(aws, tmp_path: Path) -> None:
    one = Fleet().add("one", "g5.xlarge", 2, boot=boot(None))
    write_text(str(tmp_path / "vectors.txt"), WordVectors(WORDS[:5], np.eye(5, 12, dtype=np.float32)))
    given = {"data": "dataset", "output": tmp_path / "out", "embeddings": str(tmp_path), "model": "lstm", "epochs": 1}
    with Bars() as bars:
        summary = train_on(one.deployment, configured(given), DATASET, bars)
    assert load_model(tmp_path / "out").settings["embedding"] == 12
    record = (tmp_path / "out" / "record.jsonl").read_text()
    assert f"5 of 20 words start with the vectors in {summary['run'].rstrip('/')}/sets/vectors.txt" in record


def test_a_language_model_that_nodes_cannot_read_is_told_before_they_start(aws, tmp_path: Path) -> None:
    one = Fleet().add("two", "g5.xlarge", 1, boot=boot(None))
    given = {"data": "dataset", "output": tmp_path / "out"}
    with Bars() as bars, pytest.raises(ShoalError, match="may not read s3://elsewhere/language"):
        train_on(one.deployment, configured({**given, "start_from": "s3://elsewhere/language"}), DATASET, bars)
    with Bars() as bars, pytest.raises(TrainingError, match="there is no model at"):
        train_on(one.deployment, configured({**given, "start_from": str(tmp_path)}), DATASET, bars)
    with Bars() as bars, pytest.raises(ShoalError, match="an encoder goes with --local"):
        train_on(one.deployment, configured({**given, "start_from": "hf:there", "model": "encoder"}), DATASET, bars)
    assert one.desired() == {"two": 0}


def test_hosts_do_not_start_from_an_encoder(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("folder=s3://somewhere\n10.0.0.1\n")
    place = OnHosts(read_hosts(tmp_path / "hosts.txt"))
    given = {"data": "dataset", "output": tmp_path / "out", "start_from": "hf:there", "model": "encoder"}
    with Bars() as bars, pytest.raises(ShoalError, match="an encoder goes with --local"):
        place.prepare(DatasetSource("dataset"), configured(given), bars)
