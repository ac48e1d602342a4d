"""Preprocessing on this machine makes the oracle's dataset of raw files."""

import gzip
import zlib
from operator import itemgetter
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.real_reviews import ABSENT, REVIEWS
from common.errors import DataError
from corpus.dataset import open_dataset
from corpus.dataset_settings import Settings
from corpus.reading.sources import Inputs, ReadingOptions
from jobs.local import preprocess_locally
from shoal.demo.reviews import write_reviews
from tests import oracle
from tests.corpus.reading.inputs.beginnings import tuples
from tests.jobs.piles import NLTK, PLAIN, assert_equals_oracle, preprocess
from tests.reviews import json_lines, snap_lines

TOPICS = ("sports", "3", "arts & crafts", "world")
ROWS = yaml.safe_load(Path(__file__).with_name("formats.yaml").read_text())


def settings_of(rules: oracle.Rules) -> Settings:
    same = {name: getattr(rules, name) for name in ("ragged", "words", "duplicates", "labelled", "classes")}
    return Settings(**same, stopwords="none" if rules.words == "tokens" else "nltk")


def check(folder: Path, files: list[oracle.File], rules: oracle.Rules) -> None:
    """Preprocess the files, each JSON lines, and compare the dataset with the oracle's."""
    chosen, named = settings_of(rules), {False: [], True: []}
    for number, file in enumerate(files):
        (folder / f"{number}.json").write_bytes(file.content)
        named[file.test].append(str(folder / f"{number}.json"))
    value = {"label" if rules.labelled else "rating": "value"}
    inputs = Inputs(
        files=tuple(named[False]),
        test=tuple(named[True]),
        options=ReadingOptions(text=("text",), classes=rules.classes, **value),
    )
    preprocess_locally(inputs, str(folder / "out"), settings=chosen, max_malformed=1)
    stopwords = None if chosen.stopwords == "none" else NLTK
    assert_equals_oracle(folder / "out", files, stopwords, rules=rules, test_input=bool(named[True]))


def json_file(pairs: list[tuple[object, object]], *, test: bool = False, more: bytes = b"") -> oracle.File:
    content = json_lines(*({"text": text, "value": value} for text, value in pairs)) + more
    return oracle.File(content, text=("text",), value="value", test=test)


WORDS = st.sampled_from(
    ["good", "Bad", "the", "don't", "'quoted'", "caf\u00e9", "x<br />y", "4.5", "#:counts", '"', "!", "&amp;"]
)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join) | st.text(max_size=10)
ODD_LINES = st.sampled_from([b"", b"\n", b" \r\n", b"{\n", b'{"value": 5}\n', b'{"text": null, "value": 3}', b"{"])


@st.composite
def piles(draw: st.DrawFn) -> tuple[list[oracle.File], oracle.Rules]:
    """Draw files with at least one text of each label, and their rules."""
    values = draw(st.sampled_from([[1, 5, 4, "2", 5.0], ["neg", "pos"], ["sports", "3", 3, "__label__world"]]))
    rules = oracle.Rules(
        labelled=values[0] != 1,
        classes=TOPICS if "sports" in values else (),
        ragged="sports" in values or draw(st.booleans()),
        words=draw(st.sampled_from(["letters", "tokens"])),
        duplicates=draw(st.booleans()),
    )
    others = [] if values[0] == "neg" else ["no pair"]
    pairs = st.lists(st.tuples(TEXTS, st.sampled_from([*values, *others])), max_size=12)
    first = [(f"lamp word{chr(97 + number)} shines", values[number % len(values)]) for number in range(20)]
    files = [json_file([*first, *draw(pairs)], more=draw(ODD_LINES))]
    files += [json_file(more, test=draw(st.booleans())) for more in draw(st.lists(pairs.filter(bool), max_size=2))]
    if draw(st.booleans()):
        files[0].content = b"\xef\xbb\xbf" + files[0].content
    return files, rules


@settings(max_examples=6, derandomize=True)
@given(piles())
def test_generated_texts_make_the_oracles_rows_by_every_rule(tmp_path_factory, pile) -> None:
    check(tmp_path_factory.mktemp("generated"), *pile)


def test_the_digest_of_the_reference_dataset_does_not_depend_on_paths(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "a folder, with [odd] na\u00efve {name}"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_reviews(folder / "reviews 1.json", texts=3_000)
    made = preprocess([Path("reviews 1.json")], Path("results/data"), max_malformed=0.2)
    assert (folder / "results" / "data" / "dataset.h5").exists()
    assert made.digest == "7b6a40ab41b7df212dc518a455ea9ff3"


@pytest.mark.skipif(not REVIEWS, reason=ABSENT)
@pytest.mark.soak
def test_real_reviews_make_the_oracles_dataset(tmp_path) -> None:
    merged = preprocess(REVIEWS, tmp_path)
    assert_equals_oracle(tmp_path, [gzip.decompress(path.read_bytes()) for path in REVIEWS])
    known = {"lines": 25_614, "malformed": 21, "empty": 14, "distinct": 18_898, "conflicting": 6, "wordless": 1}
    assert {name: merged.counts[name] for name in known} == known
    assert (merged.counts["train"], merged.counts["test"]) == (17_039, 1_858)


def test_other_settings_make_another_dataset(tmp_path) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN + snap_lines(("lamp lamp lamp", 3)))
    (tmp_path / "stop.txt").write_text("lamp\n")
    chosen = Settings(
        row_length=3, vocabulary_size=2, positive_from=3, test_share=0.3, stopwords=str(tmp_path / "stop.txt")
    )
    merged = preprocess([tmp_path / "reviews.json"], tmp_path / "out", settings=chosen)
    assert merged.counts["wordless"] == 1
    with open_dataset(tmp_path / "out" / "dataset.h5") as dataset:
        assert dataset.stopwords == {"lamp"}
        assert dataset.vocabulary == ["bright", "is"]
        assert dataset.train.arrays["tokens"].shape == (merged.counts["train"], 3)
        assert dataset.train.arrays["labels"][:].tolist() == (dataset.train.arrays["ratings"][:] >= 3).tolist()


@pytest.mark.parametrize("row", ROWS, ids=itemgetter("case"))
def test_other_formats_make_the_oracles_dataset(tmp_path, row) -> None:
    content, chosen = row["content"].encode(), tuples(row.get("settings", {}))
    (tmp_path / row["name"]).write_bytes(content)
    inputs = Inputs(files=(str(tmp_path / row["name"]),), options=ReadingOptions(**tuples(row["options"])))
    preprocess_locally(inputs, str(tmp_path / "out"), settings=Settings(**chosen), max_malformed=0.1)
    file, rules = oracle.File(content, **tuples(row.get("file", {}))), oracle.Rules(**tuples(row.get("rules", {})))
    assert_equals_oracle(tmp_path / "out", [file], rules=rules, positive_from=chosen.get("positive_from", 4))


def test_all_damaged_archives_are_reported_with_the_lines_before_the_damage(tmp_path, messages) -> None:
    for name, cut in (("a", 400), ("b", 900)):
        packed = gzip.compress(snap_lines(*((f"{n} packed {chr(97 + n % 26)} {name}", 1 + n % 5) for n in range(400))))
        (tmp_path / f"{name}.json.gz").write_bytes(packed[:-cut])
        messages.hide(zlib.decompressobj(31).decompress(packed[:-cut]).count(b"\n"), f"LINES OF {name}")
    (tmp_path / "sound.json").write_bytes(PLAIN)
    with messages.raises(DataError):
        preprocess([tmp_path / name for name in ("a.json.gz", "b.json.gz", "sound.json")], tmp_path / "out")


@pytest.mark.parametrize("different", ["nothing", "settings", "data", "file"])
def test_a_dataset_is_replaced_only_by_the_same_dataset_or_by_force(different, tmp_path, messages):
    def make(name, *texts, **chosen):
        source = tmp_path / name
        source.write_bytes(json_lines(*({"text": f"{each} song", "rating": 5} for each in texts)))
        inputs = Inputs(files=(str(source),))
        settings = Settings(**{"test_share": 0.0, **chosen.pop("settings", {})})
        return preprocess_locally(inputs, str(tmp_path / "out"), settings=settings, **chosen)

    first = make("a.json", "good", "bad", "fair")
    before = (tmp_path / "out" / "dataset.h5").read_bytes()
    if different == "nothing":
        assert make("a.json", "good", "bad", "fair").digest == first.digest
        return
    other = {"settings": {"settings": {"ragged": True}}, "data": {}, "file": {}}[different]
    texts = ("good", "bad", "nice") if different == "data" else ("good", "bad", "fair")
    if different == "file":
        before = b"mine"
        (tmp_path / "out" / "dataset.h5").write_bytes(before)
    with messages.raises(DataError):
        make("b.json", *texts, **other)
    assert (tmp_path / "out" / "dataset.h5").read_bytes() == before
    assert make("b.json", *texts, **other, force=True).dataset == first.dataset
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"dataset.h5", "counts.json"}
