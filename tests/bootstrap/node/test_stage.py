"""Data of a run is copied to a node once and completely; for a run that continues, its results are copied, too."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from bootstrap.node import stage as stage_module
from bootstrap.node.folder import Folder
from bootstrap.node.machine import Machine
from bootstrap.node.stage import stage
from common.errors import DataError
from common.progress import reporter
from corpus.dataset import open_dataset
from corpus.dataset_settings import DEFAULT
from corpus.layout import DATASET_NAME
from corpus.raw_texts import RawTexts, TextProgress
from corpus.reading.sources import Inputs
from corpus.stream.stream_settings import read_settings
from jobs import training
from jobs.preparation import prepare_work
from shoal.demo.reviews import write_reviews
from tests.bootstrap.node.test_documents import TEXTS
from tests.bootstrap.node.world import DATASET, RUN, STREAM, request

NAMED = {"dataset": None, "texts": TEXTS, "texts_name": "0123456789ab"}


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    made = Folder(tmp_path / "bucket")
    monkeypatch.setattr(stage_module, "open_store", lambda _: made)
    made.write(DATASET.removeprefix("s3://data/"), "the dataset")
    return made


def staged(asked, machine, bucket):
    reported = []
    stage(asked, machine, bucket, reported.append)
    return reported


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "node" / "mnt" / "share").mkdir(parents=True)
    return Machine(root=tmp_path / "node")


def disks(machine):
    (machine.root / "mnt" / "local").mkdir()


def test_a_dataset_is_copied_to_the_nodes_own_disks_if_it_has_any(machine, bucket):
    staged(request(), machine, bucket)
    (shared,) = (machine.share / "datasets").iterdir()
    assert (shared.name, shared.read_text()) == (f"datasets-{'0a' * 16}-dataset.h5", "the dataset")
    disks(machine)
    staged(request(), machine, bucket)
    assert (machine.root / "mnt/local/datasets" / shared.name).read_text() == "the dataset"
    assert oct((machine.root / "mnt/local/rows").stat().st_mode)[-3:] == "700"
    bucket.remove(DATASET.removeprefix("s3://data/"))
    staged(request(), machine, bucket)  # what is there is not brought again


def test_only_the_record_and_checkpoints_of_a_continued_run_are_copied(machine, bucket):
    own = ("record.jsonl", "checkpoints/step-000000010.pt")
    for name in (*own, "summary.json", "checkpoints/step-1.pt", "checkpoints/../../step-000000011.pt", ".hidden"):
        bucket.write(f"runs/{RUN}/{name}", name)
    staged(request(), machine, bucket)
    run = machine.run(request())
    assert sorted(path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()) == sorted(own)
    (run / "record.jsonl").write_text("it is ahead of the bucket")
    staged(request(), machine, bucket)
    assert (run / "record.jsonl").read_text() == "it is ahead of the bucket"


@pytest.fixture
def encoded(monkeypatch):
    made = []

    def make(_, folder, **_option):
        reporter().stage("read", 1_000)
        reporter().at(1_000)
        reporter().stage("write", 1_000)
        reporter().at(1_000)
        made.append(folder)
        (folder / DATASET_NAME).write_text("encoded")
        return Mock(counts={"lines": 80, "malformed": 3, "empty": 0})

    monkeypatch.setattr(training, "make_training_dataset", make)
    return made


@pytest.mark.parametrize("share", ["efs", None])
@pytest.mark.parametrize("own", [False, True])
def test_texts_are_encoded_once_for_all_nodes_that_share_a_folder(machine, bucket, encoded, share, own):
    if own:
        disks(machine)
    asked = request(share=share, **NAMED)
    left = machine.data(asked).parent / "texts-00000000000f.parts"
    left.mkdir(parents=True)
    reported = staged(asked, machine, bucket)
    assert reported == [TextProgress(read=1_000, lines=80, malformed=3)]
    other = Machine(root=machine.root.parent / "other")
    (other.root / "mnt").mkdir(parents=True)
    (other.root / "mnt" / "share").symlink_to(machine.share) if share else (other.root / "mnt" / "share").mkdir()
    staged(asked, other, bucket)
    assert len(encoded) == (1 if share else 2)
    for each in (machine, other):
        assert each.data(asked).read_text() == "encoded"
        assert [path.name for path in each.data(asked).parent.iterdir()] == ["texts-0123456789ab.h5"]


def test_an_error_in_the_texts_leaves_no_dataset(machine, bucket, monkeypatch):
    monkeypatch.setattr(training, "make_training_dataset", Mock(side_effect=DataError("damaged")))
    with pytest.raises(DataError, match=r"^damaged$"):
        staged(request(**NAMED), machine, bucket)
    assert not machine.data(request(**NAMED)).exists()


@pytest.mark.parametrize("max_malformed", [0.05, 0.0001])
def test_a_node_that_preprocesses_removes_duplicates_and_temporary_files(machine, bucket, tmp_path, max_malformed):
    written = write_reviews(tmp_path / "reviews.json", texts=300)
    work = prepare_work(Inputs(files=(str(tmp_path / "reviews.json"),)), DEFAULT)
    texts = RawTexts(
        sources=work.sources, settings=work.settings, max_malformed=max_malformed, plain_bytes=work.plain_bytes
    )
    asked = request(dataset=None, texts=texts, texts_name="0123456789ab")
    folder = machine.data(asked).parent
    if max_malformed == 0.05:
        reported = staged(asked, machine, bucket)
        assert (reported[-1].lines, reported[-1].malformed) == (written.lines, written.malformed)
        with open_dataset(machine.data(asked)) as made:
            assert len(made.train) + len(made.test) == written.distinct == 300
        assert [path.name for path in folder.iterdir()] == ["texts-0123456789ab.h5"]
        return
    with pytest.raises(DataError, match="malformed") as caught:
        staged(asked, machine, bucket)
    assert "--output" not in str(caught.value)
    assert list(folder.iterdir()) == []


def test_a_request_cannot_read_stopwords_from_a_file(machine, bucket, messages):
    settings = replace(TEXTS.settings, duplicates=False, stopwords="/etc/passwd")
    asked = request(dataset=None, texts=replace(TEXTS, settings=settings), texts_name="0123456789ab")
    with messages.raises(DataError):
        staged(asked, machine, bucket)


def test_a_stream_has_its_settings_before_its_readers_start(machine, bucket):
    asked = request(readers=1)
    staged(asked, machine, bucket)
    assert read_settings(machine.data(asked)) == STREAM
