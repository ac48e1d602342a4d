"""The preparation before the first job gives the same name for the same work, its plan, and its estimate."""

from dataclasses import replace
from pathlib import Path

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.sources import Inputs, ReadingOptions
from jobs.preparation import PreparedWork, estimate_work, prepare_work
from tests.corpus.reading.inputs.beginnings import SNAP_2014, inspected


def prepared(folder: Path, content: bytes = SNAP_2014, **chosen: object) -> PreparedWork:
    (folder / "reviews.json").write_bytes(content)
    return prepare_work(Inputs(files=(str(folder / "reviews.json"),)), Settings(**chosen))


def test_work_is_named_by_its_files_settings_and_stopwords(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("of\n")
    first = prepared(tmp_path, stopwords=str(words))
    assert first.name == replace(first, max_malformed=0.5).name
    assert first.with_stopwords_at("s3://bucket/work/")[0].name == first.name
    names = {first.name, prepared(tmp_path).name, prepared(tmp_path, row_length=7).name}
    words.write_text("the\n")
    names |= {prepared(tmp_path, stopwords=str(words)).name, prepared(tmp_path, 2 * SNAP_2014).name}
    assert len(names) == 5


def test_more_than_256_classes_are_refused(tmp_path: Path, messages) -> None:
    (tmp_path / "a.txt").write_bytes(b"".join(b"__label__%d text\n" % number for number in range(257)))
    most, more = (
        Inputs(files=(str(tmp_path / "a.txt"),), options=ReadingOptions(classes=tuple(map(str, range(count)))))
        for count in (256, 257)
    )
    assert len(prepare_work(most, Settings(ragged=True)).settings.classes) == 256
    with messages.raises(DataError):
        prepare_work(more, Settings(ragged=True))


def test_the_plan_uses_the_transferred_files(tmp_path: Path) -> None:
    (tmp_path / "reviews.json").write_bytes(SNAP_2014)

    def transfer(sources):
        return tuple(replace(source, address="s3://raw/reviews.json") for source in sources)

    found = prepare_work(Inputs(files=(str(tmp_path / "reviews.json"),)), Settings(), transfer=transfer)
    plan = found.plan(work="s3://data/work/here", output="s3://data/datasets", tasks=3)
    assert plan.input_bytes == len(SNAP_2014)
    assert all(b"s3://raw/reviews.json" in task for task in plan.tasks)


def test_files_with_ratings_on_another_scale_are_not_transferred(tmp_path: Path, messages) -> None:
    (tmp_path / "reviews.json").write_bytes(b'{"reviewText": "good", "overall": 90}\n' * 9)

    def transfer(_):
        raise AssertionError

    with messages.raises(DataError):
        prepare_work(Inputs(files=(str(tmp_path / "reviews.json"),)), Settings(), transfer=transfer)


def test_a_stopword_file_is_transferred_with_the_work(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("the\nof\n")
    found, written = prepared(tmp_path, stopwords=str(tmp_path / "words.txt")).with_stopwords_at("s3://data/work/here/")
    assert written == {"s3://data/work/here/stopwords.txt": b"of\nthe"}
    step = found.plan(work="s3://data/work/here", output="s3://data/datasets", tasks=1).steps()[0]
    assert step.files == {"--stopwords": "s3://data/work/here/stopwords.txt"}
    listed = prepared(tmp_path)
    assert listed.with_stopwords_at("s3://data/work/here/") == (listed, {})


def test_an_estimate_grows_with_the_input_and_falls_with_the_cores(tmp_path: Path) -> None:
    small = inspected(tmp_path, "a.json", SNAP_2014)
    large = inspected(tmp_path, "b.json", SNAP_2014 * 100_000)
    works = ((small, 2), (large, 2), (large, 4))
    less, more, parallel = (estimate_work(work, Settings(), cores) for work, cores in works)
    assert less.seconds < more.seconds > parallel.seconds
    assert less.disk_bytes < more.disk_bytes
    assert 2 * less.memory_bytes == 2 * more.memory_bytes == parallel.memory_bytes
