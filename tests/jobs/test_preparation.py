"""The preparation before the first job gives the same name for the same work, its plan, and its estimate."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.sources import Inputs
from jobs.plan import PLAN_NAME, Plan
from jobs.preparation import PreparedWork, estimate_work, prepare_work
from tests.corpus.reading.inputs.beginnings import SNAP_2014, inspected
from tests.jobs.piles import plan_in


def prepared(folder: Path, content: bytes = SNAP_2014, **chosen: object) -> PreparedWork:
    (folder / "reviews.json").write_bytes(content)
    return prepare_work(Inputs(files=(str(folder / "reviews.json"),)), Settings(**chosen))


def test_work_is_named_by_its_files_settings_and_stopwords(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("of\n")
    first = prepared(tmp_path, stopwords=str(words))
    assert first.name == replace(first, max_malformed=0.5).name
    names = {first.name, prepared(tmp_path).name, prepared(tmp_path, row_length=7).name}
    words.write_text("the\n")
    names |= {prepared(tmp_path, stopwords=str(words)).name, prepared(tmp_path, 2 * SNAP_2014).name}
    assert len(names) == 5


def test_the_plan_uses_the_transferred_files(tmp_path: Path) -> None:
    (tmp_path / "reviews.json").write_bytes(SNAP_2014)

    def transfer(sources):
        return tuple(replace(source, address="s3://raw/reviews.json") for source in sources)

    found = prepare_work(Inputs(files=(str(tmp_path / "reviews.json"),)), Settings(), transfer=transfer)
    plan = found.write_plan(work=str(tmp_path), output="s3://data/datasets", tasks=3)
    assert all("s3://raw/reviews.json" in task.read_text() for task in Path(plan.tasks).iterdir())


def test_files_with_ratings_on_another_scale_are_not_transferred(tmp_path: Path, messages) -> None:
    (tmp_path / "reviews.json").write_bytes(b'{"reviewText": "good", "overall": 90}\n' * 9)

    def transfer(_):
        raise AssertionError

    with messages.raises(DataError):
        prepare_work(Inputs(files=(str(tmp_path / "reviews.json"),)), Settings(), transfer=transfer)


CLASSES = st.lists(st.text("ab '\"$\u00e9,[", min_size=1, max_size=5), min_size=3, max_size=5, unique=True).map(tuple)


@given(CLASSES, st.none() | st.text(), st.sampled_from([{}, {"rating_steps": 2, "rating_range": (1, 10)}]))
def test_a_plan_preserves_settings_and_stopwords(tmp_path_factory, classes, label, scale) -> None:
    for settings in (
        Settings(ragged=True, words="tokens", labelled=True, classes=classes),
        Settings(labelled=True, positive_label=label, duplicates=True, test_input=True),
        Settings(**scale, row_length=7, vocabulary_size=9, test_share=0.3, stopwords="/it's/a file"),
    ):
        plan = plan_in(tmp_path_factory.mktemp("work"), settings=settings, stopwords=("of", "the"))
        plan.write()
        assert Plan.read(plan.work) == plan


def test_a_plan_of_other_code_or_content_is_refused(tmp_path: Path, messages) -> None:
    plan_in(tmp_path, code="other").write()
    with messages.raises(DataError):
        Plan.read(str(tmp_path))
    (tmp_path / "other").mkdir()
    plan_in(tmp_path / "other").write()
    (tmp_path / "other" / PLAN_NAME).replace(tmp_path / PLAN_NAME)
    with messages.raises(DataError):
        Plan.read(str(tmp_path))
    (tmp_path / PLAN_NAME).write_text('{"work": 1}')
    with messages.raises(DataError):
        Plan.read(str(tmp_path))


def test_the_number_of_parts_grows_with_the_input(tmp_path: Path) -> None:
    work = prepared(tmp_path)

    def bits(size: int) -> int:
        folder = tmp_path / str(size)
        folder.mkdir()
        return replace(work, plain_bytes=size).write_plan(work=str(folder), output="out", tasks=1).part_bits

    assert [bits(size) for size in (0, 1, 10**9, 10**10, 10**11, 10**15)] == [3, 3, 3, 7, 10, 16]


def test_an_estimate_grows_with_the_input_and_falls_with_the_cores(tmp_path: Path) -> None:
    small = inspected(tmp_path, "a.json", SNAP_2014)
    large = inspected(tmp_path, "b.json", SNAP_2014 * 100_000)
    works = ((small, 2), (large, 2), (large, 4))
    less, more, parallel = (estimate_work(work, Settings(), cores) for work, cores in works)
    assert less.seconds < more.seconds > parallel.seconds
    assert less.disk_bytes < more.disk_bytes
    assert less.memory_bytes == more.memory_bytes < parallel.memory_bytes < 2 * more.memory_bytes
