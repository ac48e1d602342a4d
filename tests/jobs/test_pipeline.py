"""Raw files to a dataset, by the real jobs on mrjob's runners, against the oracle."""

import bz2
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.real_reviews import ABSENT, REVIEWS
from bootstrap.demo.reviews import write_reviews
from common.errors import DataError
from corpus.dataset import open_dataset
from corpus.dataset_settings import DEFAULT, FIXED, REFERENCE, Settings
from corpus.reading.sources import Inputs, ReadingOptions
from jobs.pipeline import preprocess_locally as preprocess_inputs
from tests import oracle
from tests.jobs.piles import PLAIN, Stages, assert_equals_oracle, preprocess, reviews


@pytest.fixture(autouse=True, scope="module")
def every_core_is_worth_it() -> Iterator[None]:
    """Small files, too, are read by several tasks at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobs.pipeline.CORE_BYTES", 1)
        yield


WORDS = st.sampled_from(["good", "Bad", "the", "don't", "'quoted'", "caf\u00e9", "&amp;", "it\u2019s", "lamp", "123"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=10)
LINES = st.one_of(
    st.builds(lambda text, rating: reviews((text, rating)), TEXTS, st.sampled_from([1, 2, 3, 4, 5, "4", 5.0])),
    st.sampled_from([b"\n", b" \r\n", b"{\n", b'{"overall": 5}\n', reviews(("a", 9)), reviews((None, 3))]),
)


@settings(max_examples=12)
@given(st.lists(st.lists(LINES, max_size=12), min_size=1, max_size=3), st.booleans(), st.booleans())
def test_generated_input_makes_the_oracles_dataset(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]], mark: bool, last_newline: bool
) -> None:
    folder = tmp_path_factory.mktemp("generated")
    contents = [(b"\xef\xbb\xbf" if mark else b"") + b"".join([PLAIN, *lines]) for lines in files]
    if not last_newline:
        contents = [content.removesuffix(b"\n") for content in contents]
    paths = [folder / f"input-{number}.json" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    preprocess(paths, folder / "out", runner="inline", max_malformed=1)
    assert_equals_oracle(folder / "out", contents)


def test_the_references_dataset_keeps_its_digest(tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.json", texts=3_000)
    made = preprocess([tmp_path / "reviews.json"], tmp_path / "out", runner="inline", max_malformed=0.2)
    assert made.digest == "7b6a40ab41b7df212dc518a455ea9ff3"
    digests = {
        preprocess([tmp_path / "reviews.json"], tmp_path / "out", settings=kind).digest for kind in (DEFAULT, FIXED)
    }
    assert len({made.digest, *digests}) == 3


@pytest.mark.skipif(not REVIEWS, reason=ABSENT)
@pytest.mark.slow
@pytest.mark.parametrize("runner", ["inline", "local"])
def test_real_reviews_make_the_oracles_dataset(tmp_path: Path, runner: str) -> None:
    merged = preprocess(REVIEWS, tmp_path, runner=runner)
    assert_equals_oracle(tmp_path, [gzip.decompress(path.read_bytes()) for path in REVIEWS])
    known = {"lines": 25_614, "malformed": 21, "empty": 14, "distinct": 18_898, "conflicting": 6, "wordless": 1}
    assert {name: merged.counts[name] for name in known} == known
    assert (merged.counts["train"], merged.counts["test"]) == (17_039, 1_858)


@pytest.mark.skipif(not REVIEWS, reason=ABSENT)
def test_how_the_input_is_cut_changes_nothing(tmp_path: Path) -> None:
    lines = b"".join(gzip.decompress(path.read_bytes()) for path in REVIEWS).splitlines(keepends=True)
    digests = set()
    for pieces in (1, 2, 7):
        folder = tmp_path / str(pieces)
        folder.mkdir()
        for number in range(pieces):
            (folder / f"{number}.json").write_bytes(b"".join(lines[number::pieces]))
        digests.add(preprocess([folder], tmp_path / f"out-{pieces}", runner="inline").digest)
    assert len(digests) == 1


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lambda data: data])
def test_compressed_files_of_several_members_are_read_to_their_end(tmp_path: Path, compress) -> None:
    suffix = {gzip.compress: ".gz", bz2.compress: ".bz2"}.get(compress, "")
    path = tmp_path / f"reviews.json{suffix}"
    path.write_bytes(compress(PLAIN) + compress(reviews(("a second member", 5))))
    preprocess([path], tmp_path / "out", runner="inline")
    assert_equals_oracle(tmp_path / "out", [PLAIN, reviews(("a second member", 5))])


def test_a_range_that_ends_within_a_line_loses_nothing(tmp_path: Path) -> None:
    content = reviews(*((f"{'long text ' * 3_000} {n * 'x'}", 1 + n % 5) for n in range(150)))
    (tmp_path / "reviews.json").write_bytes(content)
    assert len(content) > 4 << 20
    preprocess([tmp_path / "reviews.json"], tmp_path / "out", runner="inline")
    assert_equals_oracle(tmp_path / "out", [content])


def test_other_settings_make_another_dataset(tmp_path: Path) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN + reviews(("lamp lamp lamp", 3)))
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


LABELLED = [(f"word{chr(97 + n)} lamp bulb{chr(97 + n % 7)}", n % 2) for n in range(20)]
RULES = oracle.Rules(labelled=True)


def jsonl(pairs, label=lambda value: value) -> bytes:
    return b"".join(json.dumps({"text": text, "label": label(value)}).encode() + b"\n" for text, value in pairs)


def pieces(pattern: str, pairs=LABELLED) -> bytes:
    return "".join(pattern.format(text=text, value=value, one=value + 1) for text, value in pairs).encode()


@pytest.mark.parametrize(
    ("name", "content", "options", "as_file", "rules"),
    [
        ("a.jsonl", jsonl(LABELLED), ReadingOptions(label="label"), {"text": ("text",), "value": "label"}, RULES),
        ("a.jsonl", jsonl(LABELLED, ["neg", "pos"].__getitem__), ReadingOptions(label="label"),
         {"text": ("text",), "value": "label"}, RULES),
        ("a.jsonl", jsonl(LABELLED, ["ham", "spam"].__getitem__), ReadingOptions(label="label", positive_label="spam"),
         {"text": ("text",), "value": "label"}, oracle.Rules(labelled=True, positive_label="spam")),
        ("a.csv", pieces('"{one}","title\n, {value}","{text}"\n'), ReadingOptions(),
         {"kind": "csv", "text": ("2", "3"), "value": "1"}, RULES),
        ("a.csv", b"stars,body\n" + pieces('{one},"{text}"\n'), ReadingOptions(rating="stars", text=("body",)),
         {"kind": "csv", "header": True, "text": ("body",), "value": "stars"}, oracle.Rules()),
        ("a.dat", pieces("{text}$LABEL${value}\n"), ReadingOptions(separator="$LABEL$"),
         {"kind": "separated", "separator": "$LABEL$", "text": ("1",), "value": "2"}, RULES),
        ("a.txt", pieces("__label__{one} {text}\n"), ReadingOptions(),
         {"kind": "fasttext", "text": (), "value": None}, RULES),
    ],
)  # fmt: skip
def test_other_formats_make_the_oracles_dataset(tmp_path: Path, name, content, options, as_file, rules) -> None:
    (tmp_path / name).write_bytes(content)
    preprocess_inputs(Inputs(files=(str(tmp_path / name),), options=options), str(tmp_path / "out"), settings=REFERENCE)
    assert_equals_oracle(tmp_path / "out", [oracle.File(content, **as_file)], rules=rules)


@pytest.mark.parametrize("runner", ["inline", pytest.param("local", marks=pytest.mark.slow)])
def test_half_stars_written_as_fractions_make_the_oracles_dataset(tmp_path: Path, runner: str) -> None:
    content = reviews(*((f"this lamp number word{chr(97 + n)} shines", f"{(1 + n % 10) / 2:g}/5") for n in range(20)))
    (tmp_path / "a.json").write_bytes(content + reviews(("eight of ten", "8/10")))
    chosen = Settings(rating_steps=2, rating_range=(1, 10), rating_fraction=True, positive_from=7)
    options = ReadingOptions(rating_steps=2, rating_range=(1, 10), rating_fraction=True)
    inputs = Inputs(files=(str(tmp_path / "a.json"),), options=options)
    merged = preprocess_inputs(inputs, str(tmp_path / "out"), settings=chosen, runner=runner)
    rules = oracle.Rules(rating_range=(1, 10), steps=2, fraction=True)
    assert_equals_oracle(tmp_path / "out", [(tmp_path / "a.json").read_bytes()], rules=rules, positive_from=7)
    assert merged.counts["malformed_by_reason"]["bad_rating"] == 1


def test_ratings_on_another_scale_end_the_work_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(reviews(*((f"lamp {n}", n) for n in range(1, 11))))
    stages = Stages()
    with pytest.raises(DataError, match=r"such as '6' \(1\).*--rating-range 1 10 --positive-from 7"):
        preprocess([tmp_path / "a.json"], tmp_path / "out", progress=stages)
    assert stages.seen == []
    assert not (tmp_path / "out").exists()
    assert preprocess([tmp_path / "a.json"], tmp_path / "out", max_malformed=0.5).counts["malformed"] == 5


def test_files_of_one_class_make_the_oracles_dataset(tmp_path: Path) -> None:
    contents = [pieces("{text}\n", [pair for pair in LABELLED if pair[1] == value]) for value in (0, 1)]
    for name, content in zip(("bad", "good"), contents, strict=True):
        (tmp_path / name).write_bytes(content)
    inputs = Inputs(positive=(str(tmp_path / "good"),), negative=(str(tmp_path / "bad"),))
    preprocess_inputs(inputs, str(tmp_path / "out"), settings=REFERENCE)
    files = [oracle.File(text, kind="text", text=(), value=None, label=str(n)) for n, text in enumerate(contents)]
    assert_equals_oracle(tmp_path / "out", files, rules=RULES)


@pytest.mark.parametrize("runner", ["inline", pytest.param("local", marks=pytest.mark.slow)])
def test_a_test_set_of_its_own_keeps_its_texts_from_training(tmp_path: Path, runner: str) -> None:
    other = reviews(("another lamp", 5), ("this lamp number worda is bright", 1))
    (tmp_path / "train.json").write_bytes(PLAIN)
    (tmp_path / "test.json").write_bytes(other)
    inputs = Inputs(files=(str(tmp_path / "train.json"),), test=(str(tmp_path / "test.json"),))
    merged = preprocess_inputs(inputs, str(tmp_path / "out"), settings=REFERENCE, runner=runner)
    assert_equals_oracle(tmp_path / "out", [PLAIN, oracle.File(other, test=True)], test_input=True)
    assert (merged.counts["train"], merged.counts["test"]) == (19, 2)


def test_labels_that_are_no_pair_have_to_be_explained(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl([("lamp", 1), ("bulb", 1)]))
    inputs = Inputs(files=(str(tmp_path / "a.jsonl"),), options=ReadingOptions(label="label"))
    with pytest.raises(DataError, match=r"the labels are 1 \(2 times\).*--positive-label"):
        preprocess_inputs(inputs, str(tmp_path / "out"))


def test_a_hot_text_is_one_row(tmp_path: Path) -> None:
    content = reviews(*[("the same lamp", 5)] * 3_000, *[("the same lamp", 1)] * 3_000) + PLAIN
    (tmp_path / "reviews.json").write_bytes(content)
    merged = preprocess([tmp_path / "reviews.json"], tmp_path / "out", runner="inline")
    assert (merged.counts["distinct"], merged.counts["conflicting"]) == (21, 1)
    assert merged.counts["ratings"]["after"]["1"] == 5


def test_a_second_run_replaces_the_first_and_leaves_no_trace(tmp_path: Path) -> None:
    path, output = tmp_path / "reviews.json", tmp_path / "out"
    path.write_bytes(PLAIN)
    first = preprocess([path], output, runner="inline").digest
    path.write_bytes(PLAIN + reviews(("another lamp", 5)))
    assert preprocess([path], output, runner="inline").digest != first
    assert sorted(found.name for found in output.iterdir()) == ["counts.json", "dataset.h5"]


def empty(folder: Path) -> list[Path]:
    (folder / "empty.json").write_bytes(b"")
    return [folder / "empty.json"]


def blank(folder: Path) -> list[Path]:
    (folder / "blank.json").write_bytes(b"\n \n")
    return [folder / "blank.json"]


def wordless(folder: Path) -> list[Path]:
    (folder / "wordless.json").write_bytes(reviews(("the of and", 5), ("would get", 1)))
    return [folder / "wordless.json"]


def textless(folder: Path) -> list[Path]:
    (folder / "textless.json").write_bytes(reviews(("123", 5), ("!", 1)))
    return [folder / "textless.json"]


@pytest.mark.parametrize("runner", ["inline", pytest.param("local", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda folder: [folder / "absent.json"], r"absent\.json: no such file"),
        (empty, r"empty\.json is empty"),
        (blank, "no lines"),
        (wordless, "hold only stopwords"),
        (textless, "none of the 2 lines holds a text"),
    ],
)
def test_bad_input_ends_with_its_reason_and_leaves_nothing(tmp_path: Path, make, sentence: str, runner: str) -> None:
    inputs = make(tmp_path)
    with pytest.raises(DataError, match=sentence):
        preprocess(inputs, tmp_path / "out", runner=runner)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("runner", ["inline", pytest.param("local", marks=pytest.mark.slow)])
def test_damaged_archives_are_all_named_and_read_as_far_as_they_go_where_that_is_allowed(
    tmp_path: Path, runner: str
) -> None:
    kept = []
    for name, cut in (("a", 400), ("b", 900)):
        packed = gzip.compress(reviews(*((f"{n} packed {chr(97 + n % 26)} {name}", 1 + n % 5) for n in range(400))))
        (tmp_path / f"{name}.json.gz").write_bytes(packed[:-cut])
        unpacked = zlib.decompressobj(31).decompress(packed[:-cut])
        kept.append(unpacked[: unpacked.rindex(b"\n") + 1])
    (tmp_path / "sound.json").write_bytes(PLAIN)
    paths = [tmp_path / name for name in ("a.json.gz", "b.json.gz", "sound.json")]
    with pytest.raises(DataError) as refused:
        preprocess(paths, tmp_path / "out", runner=runner)
    said = [
        f"{path} (lines that can be read: {lines.count(chr(10).encode()):,}; bytes of them: {len(lines):,})"
        for path, lines in zip(paths, kept, strict=False)
    ]
    assert f"2 files are damaged, and nobody knows what is lost: {said[0]}, {said[1]};" in str(refused.value)
    assert "--allow-damaged; the finished steps remain" in str(refused.value)
    stages = Stages()
    merged = preprocess(paths, tmp_path / "out", runner=runner, progress=stages, allow_damaged=True)
    assert stages.seen == ["choose vocabulary", "encode", "merge"]
    assert_equals_oracle(tmp_path / "out", [*(oracle.File(lines, broken=True) for lines in kept), PLAIN])
    assert (merged.counts["damaged_files"], merged.malformed) == (2, [])
    assert [(each["file"], each["bytes"]) for each in merged.damaged] == [
        (str(path), len(lines)) for path, lines in zip(paths, kept, strict=False)
    ]


def test_lines_that_no_memory_should_hold_are_counted_and_passed_over(tmp_path: Path) -> None:
    huge = b'{"reviewText": "' + b"lamp " * (1 << 20) + b'", "overall": 5}\n'
    (tmp_path / "reviews.json").write_bytes(PLAIN + huge + PLAIN + reviews(("nul \x00 byte", 5)))
    preprocess([tmp_path / "reviews.json"], tmp_path / "out", runner="inline")
    assert_equals_oracle(tmp_path / "out", [PLAIN + huge + PLAIN + reviews(("nul \x00 byte", 5))])


def test_malformed_lines_are_fatal_only_above_the_share(tmp_path: Path) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN + b"{\n")
    with pytest.raises(DataError, match=r"1 of 21 lines are malformed \(1 not_json\), more than 4%"):
        preprocess([tmp_path / "reviews.json"], tmp_path / "out", runner="inline", max_malformed=0.04)
    merged = preprocess([tmp_path / "reviews.json"], tmp_path / "out", runner="inline", max_malformed=0.05)
    assert merged.counts["malformed_by_reason"]["not_json"] == 1


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(st.lists(LINES, max_size=40), min_size=1, max_size=4))
def test_much_generated_input_makes_the_oracles_dataset(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("much")
    contents = [b"".join([PLAIN, *lines]) for lines in files]
    paths = [folder / f"input-{number}.json" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    preprocess(paths, folder / "out", runner="inline", max_malformed=1)
    assert_equals_oracle(folder / "out", contents)
