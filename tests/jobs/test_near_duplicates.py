"""Near-duplicates of reviews, counted by the jobs and pair by pair."""

import gzip
import json
import random
import shutil
from dataclasses import replace
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import pytest

from benchmarks.real_reviews import ABSENT, REVIEWS
from benchmarks.streaming import StreamingNode, made, planned
from corpus.dataset_settings import DEFAULT, NEAR, REFERENCE, Settings
from corpus.reading.sources import Inputs
from corpus.rules import in_test_set
from corpus.text import digest
from corpus.tokens import tokens
from embedded.faults.kinds import AttemptFaults
from jobs.pipeline import preprocess_locally
from jobs.shingles import BAND_ROWS, BANDS
from jobs.steps import JobStep
from tests.reviews import snap_lines
from tests.jobs.test_runners import Spark
from tests.jobs.test_shingles import WORDS, changed, jaccard

SETTINGS = replace(DEFAULT, near_duplicates=True)


def pile(seed: int, *, texts: int = 400) -> list[list[str]]:
    """Texts, of a half of which there are two, of another half of these three, that differ in a few words."""
    chance = random.Random(seed)
    found = []
    for number in range(texts):
        text = chance.sample(WORDS, chance.randint(30, 120))
        found += [text, *(changed(text, chance.randint(1, 5), chance) for _ in range((0, 1, 0, 2)[number % 4]))]
    return found


def counted(texts: list[list[str]]) -> tuple[dict[str, int], float]:
    """The counts of these texts, by comparing all of them, and how many of the pairs no band is expected to find."""
    in_test = [in_test_set(digest(tokens(" ".join(text))), SETTINGS.test_share) for text in texts]
    near, unlikely = [], 0.0
    for one, other in combinations(range(len(texts)), 2):
        if not set(texts[one]).isdisjoint(texts[other]) and (index := jaccard(texts[one], texts[other])) >= NEAR:
            near.append((one, other))
            unlikely += (1 - index**BAND_ROWS) ** BANDS
    across = [pair for pair in near if in_test[pair[0]] != in_test[pair[1]]]
    return {
        "pairs": len(near),
        "texts": len({text for pair in near for text in pair}),
        "test": len({text for pair in across for text in pair if in_test[text]}),
    }, unlikely


def written(folder: Path, texts: list[list[str]], files: int = 1) -> Inputs:
    for number in range(files):
        lines = snap_lines(*((" ".join(text), 5) for text in texts[number::files]))
        (folder / f"{number}.json").write_bytes(lines)
    return Inputs(files=tuple(str(folder / f"{number}.json") for number in range(files)))


@pytest.mark.slow
def test_planted_near_duplicates_are_found_as_often_as_their_indices_say(tmp_path: Path) -> None:
    texts = pile(0)
    likely, unlikely = counted(texts)
    inputs = written(tmp_path, texts)
    found = preprocess_locally(inputs, str(tmp_path / "out"), settings=SETTINGS, runner="inline").counts
    near = found["near_duplicates"]
    assert likely["pairs"] > 100
    assert likely["test"] > 10
    assert unlikely < 1
    for name, number in likely.items():
        assert number - 2 <= near[name] <= number
    assert near["compared"] >= near["pairs"]
    assert (near["in_both"], near["left_out"]) == (0, 0)


@pytest.mark.slow
@pytest.mark.skipif(not REVIEWS, reason=ABSENT)
def test_of_real_reviews_it_finds_those_that_comparing_every_pair_finds(tmp_path: Path) -> None:
    (file,) = [path for path in REVIEWS if path.name.startswith("All_Beauty")]
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    texts = [tokens(line["reviewText"]) for line in lines if "reviewText" in line]
    every, unlikely = counted([list(text) for text in dict.fromkeys(map(tuple, texts)) if text])
    assert unlikely < 1
    inputs = Inputs(files=(str(file),))
    near = preprocess_locally(inputs, str(tmp_path), settings=SETTINGS, runner="inline").counts["near_duplicates"]
    assert {name: near[name] for name in every} == every


@pytest.mark.parametrize(
    ("files", "runner"), [(1, "inline"), (3, "inline"), pytest.param(3, "local", marks=pytest.mark.slow)]
)
def test_neither_tasks_nor_runner_change_the_counts_and_the_rows_stay_the_same(
    files: int, runner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undivided: tuple[str, dict[str, int]]
) -> None:
    monkeypatch.setattr("jobs.pipeline.CORE_BYTES", 1)
    inputs = written(tmp_path, pile(0), files)
    found = preprocess_locally(inputs, str(tmp_path / "out"), settings=SETTINGS, runner=runner)
    assert (found.digest, found.counts["near_duplicates"]) == undivided


@pytest.fixture(scope="module")
def undivided(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, int]]:
    """The digest of the rows without the option, and the counts with it."""
    folder = tmp_path_factory.mktemp("undivided")
    inputs = written(folder, pile(0))
    plain, found = (
        preprocess_locally(inputs, str(folder / name), settings=settings, runner="inline")
        for name, settings in (("plain", DEFAULT), ("near", SETTINGS))
    )
    assert "near_duplicates" not in plain.counts
    return plain.digest, found.counts["near_duplicates"]


@pytest.mark.slow
def test_hadoop_streaming_counts_the_same_although_tasks_fail(
    tmp_path: Path, undivided: tuple[str, dict[str, int]]
) -> None:
    plan = planned(written(tmp_path, pile(0), 3), str(tmp_path), settings=SETTINGS, tasks=3)
    StreamingNode(tmp_path / "node", faults=AttemptFaults(seed=5)).run(plan, reducers=3)
    assert (made(plan).digest, made(plan).counts["near_duplicates"]) == undivided
    assert [step.name for step in plan.steps() if isinstance(step, JobStep)] == [
        *("deduplicate", "count words", "sketch texts", "fetch texts", "compare texts", "encode")
    ]


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pyspark") is None, reason="needs java, and pyspark from PyPI"
)
def test_spark_counts_the_same(tmp_path: Path, undivided: tuple[str, dict[str, int]]) -> None:
    plan = planned(written(tmp_path, pile(0), 3), str(tmp_path), settings=SETTINGS, tasks=3)
    Spark(tmp_path / "cluster").run(plan, reducers=3)
    assert (made(plan).digest, made(plan).counts["near_duplicates"]) == undivided


def test_more_parts_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undivided: tuple[str, dict[str, int]]
) -> None:
    monkeypatch.setattr("jobs.steps._PART_BYTES", 4_000)
    found = preprocess_locally(written(tmp_path, pile(0)), str(tmp_path / "out"), settings=SETTINGS, runner="inline")
    assert (found.digest, found.counts["near_duplicates"]) == undivided


def test_what_all_texts_have_in_common_is_not_compared_pair_by_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.pipeline.CORE_BYTES", 1 << 30)
    form = random.Random(1).sample(WORDS, 200)
    texts = [[*form[:number], f"name{number}", *form[number:]] for number in range(200)]
    found = preprocess_locally(written(tmp_path, texts), str(tmp_path / "out"), settings=SETTINGS, runner="inline")
    near = found.counts["near_duplicates"]
    assert near["compared"] < 200 * 199 // 2
    assert near["left_out"] > 0
    assert (near["texts"], near["test"]) == (200, found.counts["test"])


@pytest.mark.parametrize("settings", [REFERENCE, replace(DEFAULT, duplicates=True)])
def test_of_kept_copies_those_in_both_sets_are_counted_and_words_are_those_of_the_rows(
    settings: Settings, tmp_path: Path
) -> None:
    texts = [["the", "lamp", f"word{chr(97 + number)}", *["is", "bright", "and", "shines"]] for number in range(20)]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    inputs = Inputs(files=written(tmp_path / "a", texts).files, test=written(tmp_path / "b", texts[:5]).files)
    asked = replace(settings, near_duplicates=True)
    near = preprocess_locally(inputs, str(tmp_path / "out"), settings=asked, runner="inline").counts["near_duplicates"]
    assert near["in_both"] == (5 if settings.duplicates else 0)
    assert near["texts"] == 0
