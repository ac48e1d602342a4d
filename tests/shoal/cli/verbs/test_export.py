"""`shoal export`: models are copied to S3 completely or not at all, and predict from there."""

from pathlib import Path

import pytest
from shoal_local_aws.faults.kinds import Denied

import shoal
from corpus.reading import s3
from tests.shoal.cli.command import shoal_here

BUCKET = "models"
FILES = ["config.json", "measures.json", "model.safetensors", "vocabulary.txt"]
TEXTS = ["good song", "bad"]


@pytest.fixture(scope="module", autouse=True)
def bucket(aws) -> None:
    s3.client().create_bucket(Bucket=BUCKET)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """The output of a training run."""
    from tests.trainer.classification.made_models import random_model
    from trainer.classification.model_folder import write_model

    output = tmp_path_factory.mktemp("run")
    write_model(output / "model", random_model())
    return output


@pytest.fixture
def address(aws, run, request) -> str:
    """A model on S3."""
    there = f"s3://{BUCKET}/{request.node.name}/model"
    assert shoal_here("export", "--model", run, "--output", there).returncode == 0
    return there


def keys(address: str) -> list[str]:
    place = s3.place_of(f"{address}/")
    return [each["Key"].removeprefix(place.key) for each in s3.list_objects(s3.client(), place)]


def test_a_model_on_s3_predicts_like_the_local_one(address, run) -> None:
    assert keys(address) == FILES
    here = shoal.Model(run).predict(TEXTS)
    for there in (address, f"{address}/", address.removesuffix("/model")):
        assert shoal.Model(there).predict(TEXTS) == here


def test_an_export_is_repeated_and_replaces_another_model_only_by_force(address, tmp_path, messages) -> None:
    from tests.trainer.classification.made_models import random_model
    from trainer.classification.model_folder import write_model

    write_model(tmp_path / "model", random_model(hidden=4))
    place = s3.place_of(f"{address}/model.onnx")
    s3.put(s3.client(), place, b"of the model that is replaced")
    for force, status in ((), 1), (("--force",), 0), ((), 0):
        done = shoal_here("export", "--model", tmp_path, "--output", address, *force)
        assert done.returncode == status, done.stderr
        if status:
            messages.hide(address, "ADDRESS")
            messages.check(done.stderr.rstrip())
    assert keys(address) == FILES
    s3.put(s3.client(), s3.place_of(f"{address}/notes/mine"), b"mine")
    messages.check(shoal_here("export", "--model", tmp_path, "--output", address, "--force").stderr.rstrip())


@pytest.mark.parametrize(
    ("name", "content"),
    [("config.json", None), ("vocabulary.txt", None), ("vocabulary.txt", b"good\n")],
    ids=["no config", "no words", "few words"],
)
def test_an_incomplete_model_on_s3_is_reported(address, messages, name, content) -> None:
    place = s3.place_of(f"{address}/{name}")
    if content is None:
        s3.client().delete_object(Bucket=BUCKET, Key=place.key)
    else:
        s3.put(s3.client(), place, content)
    done = shoal_here("predict", "--model", address)
    assert done.returncode == 1
    messages.hide(address, "ADDRESS")
    messages.check(done.stderr.rstrip())


def test_a_failed_export_leaves_no_configuration(aws, run, messages) -> None:
    there = f"s3://{BUCKET}/broken"
    with aws.faults.during(Denied(service="s3", operation="PutObject")):
        done = shoal_here("export", "--model", run, "--output", there)
    assert (done.returncode, "config.json" in keys(there)) == (1, False)
    messages.check(done.stderr.rstrip())


def test_existing_objects_are_not_replaced(run, messages) -> None:
    there = f"s3://{BUCKET}/taken"
    s3.put(s3.client(), s3.place_of(f"{there}/mine"), b"mine")
    done = shoal_here("export", "--model", run, "--output", there)
    assert (done.returncode, keys(there)) == (1, ["mine"])
    messages.check(done.stderr.rstrip())


def test_export_writes_the_measures_and_onnx_on_request(run, tmp_path) -> None:
    from trainer.classification.model_folder import load_model

    assert shoal_here("export", "--model", run, "--output", tmp_path / "new", "--onnx").returncode == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(
        [*FILES, "model.onnx", "predict.py", "requirements.txt"]
    )
    assert load_model(tmp_path / "new").about == load_model(run).about
