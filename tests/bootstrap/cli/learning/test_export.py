"""`shoal export`: models are copied to S3 completely or not at all, and predict from there."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.faults.kinds import CutConnection, Denied, Throttled

from bootstrap.cli.main import main
from corpus.reading import s3
from shoal import Model
from tests.trainer.classification.made_models import random_model
from trainer.classification.model_folder import load_model, write_model

BUCKET = "models"
FILES = ["README.md", "config.json", "measures.json", "model.safetensors", "vocabulary.txt"]
TEXTS = ["good song", "bad"]


@pytest.fixture(scope="module", autouse=True)
def bucket(aws: EmbeddedAws) -> None:
    s3.client().create_bucket(Bucket=BUCKET)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a training run."""
    output = tmp_path_factory.mktemp("run")
    write_model(output / "model", random_model())
    return output


@pytest.fixture
def address(aws: EmbeddedAws, run: Path, request: pytest.FixtureRequest) -> str:
    """A model on S3."""
    there = f"s3://{BUCKET}/{request.node.name}/model"
    assert main(["export", "--model", str(run), "--output", there]) == 0
    return there


def keys(address: str) -> list[str]:
    place = s3.place_of(f"{address}/")
    return [found["Key"].removeprefix(place.key) for found in s3.list_objects(s3.client(), place)]


def test_a_model_on_s3_predicts_like_the_local_one(address: str, run: Path) -> None:
    assert keys(address) == FILES
    here = Model(run).predict(TEXTS)
    for there in (address, f"{address}/", address.removesuffix("/model")):
        assert Model(there).predict(TEXTS) == here


def delete(address: str, name: str) -> None:
    s3.client().delete_object(Bucket=BUCKET, Key=s3.place_of(f"{address}/{name}").key)


def put(address: str, name: str, content: bytes) -> None:
    s3.put(s3.client(), s3.place_of(f"{address}/{name}"), content)


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (
            lambda at: delete(at, "config.json"),
            "no config.json: the model is still being written, or was copied incompletely",
        ),
        (lambda at: delete(at, "vocabulary.txt"), "there is no object at .*/vocabulary.txt"),
        (lambda at: put(at, "vocabulary.txt", b"good\n"), r"/vocabulary.txt has 5 bytes, but config.json states 14"),
        (
            lambda at: put(at, "vocabulary.txt", b"good\nbad\nsang\n"),
            "/vocabulary.txt does not match its digest",
        ),
        (
            lambda at: put(at, "config.json", b"{}"),
            "/config.json has format None, but this version of Shoal reads format 2",
        ),
        (lambda at: put(at, "config.json", b"{"), "/config.json was not written by Shoal, or was changed"),
    ],
)
def test_an_incomplete_model_on_s3_is_reported(
    address: str, capsys: pytest.CaptureFixture[str], harm: Callable[[str], None], sentence: str
) -> None:
    harm(address)
    capsys.readouterr()
    assert main(["predict", "--model", address]) == 1
    err = " ".join(capsys.readouterr().err.split())
    assert re.search(sentence, err), err
    assert address in err
    assert "Traceback" not in err


def test_throttled_or_interrupted_requests_are_retried(aws: EmbeddedAws, address: str, run: Path) -> None:
    for fault in (Throttled(service="s3", share=0.3), CutConnection(times=2, least=1)):
        with aws.faults.during(fault):
            assert Model(address).predict(TEXTS) == Model(run).predict(TEXTS)


def test_a_failed_export_leaves_no_configuration(
    aws: EmbeddedAws, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = f"s3://{BUCKET}/broken"
    with aws.faults.during(Denied(service="s3", operation="PutObject")):
        assert main(["export", "--model", str(run), "--output", there]) == 1
    assert "cannot write s3://models/broken/README.md" in " ".join(capsys.readouterr().err.split())
    assert "config.json" not in keys(there)


@pytest.mark.parametrize("where", ["s3", "here"])
def test_existing_files_are_not_replaced(
    aws: EmbeddedAws, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    output = f"s3://{BUCKET}/taken" if where == "s3" else str(tmp_path)
    if where == "s3":
        put(output, "mine", b"mine")
    else:
        (tmp_path / "mine").write_text("mine")
    assert main(["export", "--model", str(run), "--output", output]) == 1
    assert "; choose another --output, or remove its content" in " ".join(capsys.readouterr().err.split())
    assert "config.json" not in (keys(output) if where == "s3" else [path.name for path in tmp_path.iterdir()])


def test_export_writes_onnx_on_request(run: Path, tmp_path: Path) -> None:
    assert main(["export", "--model", str(run), "--output", str(tmp_path / "new"), "--onnx"]) == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted([*FILES, "model.onnx"])
    assert load_model(tmp_path / "new").about == load_model(run).about
