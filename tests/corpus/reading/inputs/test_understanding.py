"""What is learnt from the beginnings of files: the formats, a sample, and an estimate of the size."""

import bz2
import gzip
import lzma
import os
from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from backports import zstd
from pyarrow import parquet

from benchmarks.real_reviews import ABSENT, FOLDER, REVIEWS
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import Format
from corpus.reading.inputs.understanding import Understanding, understand_inputs
from corpus.reading.sources import Inputs, ReadingOptions
from tests.corpus.reading.inputs.beginnings import (
    AMAZON,
    FASTTEXT,
    SNAP_2014,
    SNAP_2023,
    json_of,
    understood,
    written,
)
from tests.reviews import json_lines

TEXTS = b"a fine lamp\nthe strap , too\n"


def parquet_bytes(folder: Path, columns: dict[str, object], **options: object) -> bytes:
    parquet.write_table(pa.table(columns), folder / "made", **options)
    content = (folder / "made").read_bytes()
    (folder / "made").unlink()
    return content


def test_parquet_is_read_by_its_schema_and_knows_its_rows(tmp_path: Path) -> None:
    texts = [f"a fine lamp number {number}" for number in range(5_000)]
    content = parquet_bytes(tmp_path, {"text": texts, "rating": [1, 5] * 2_500, "x": [0] * 5_000}, row_group_size=900)
    found = understood(tmp_path, "a.parquet", content)
    assert found.sources[0].format == Format(kind="parquet", text=("text",), value="rating")
    assert found.rows == 5_000
    assert found.sample.values == {"1": 2_500, "5": 2_500}


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstd.compress)],
)
def test_packed_files_are_read_as_what_they_hold(tmp_path: Path, suffix: str, pack) -> None:
    found = understood(tmp_path, f"a.csv{suffix}", pack(b"label,text\n" + b"1,a fine lamp\n0,broke\n" * 500))
    assert found.sources[0].format.columns == ("label", "text")
    assert found.plain_bytes == len(b"label,text\n" + b"1,a fine lamp\n0,broke\n" * 500)
    assert found.rows == found.sample.lines == 1_000


def test_files_of_one_class_need_no_fields(tmp_path: Path) -> None:
    good, bad = written(tmp_path, "good", TEXTS), written(tmp_path, "bad.json", json_lines({"text": "broke"}))
    found = understand_inputs(Inputs(positive=(good,), negative=(bad,)))
    assert [(source.format, source.code) for source in found.sources] == [
        (Format(kind="text"), 1),
        (Format(kind="json", text=("text",)), 0),
    ]
    assert found.labelled
    assert found.sample.values == {"positive": 2, "negative": 1}


def test_ratings_and_labels_do_not_mix(tmp_path: Path) -> None:
    written(tmp_path, "a.json", SNAP_2014)
    written(tmp_path, "b.txt", FASTTEXT)
    with pytest.raises(DataError, match=r"b\.txt has labels, but .*a\.json has ratings \(overall\)"):
        understand_inputs(Inputs(files=(str(tmp_path),)))


def test_formats_may_differ_from_file_to_file(tmp_path: Path) -> None:
    written(tmp_path, "a.json", SNAP_2014)
    written(tmp_path, "b.json.gz", gzip.compress(SNAP_2023))
    written(tmp_path, "c.tsv", AMAZON)
    found = understand_inputs(Inputs(files=(str(tmp_path),)))
    assert [source.format.value for source in found.sources] == ["overall", "rating", "star_rating"]
    assert (found.rows, found.sample.values) == (6, {"5": 3, "1": 3})


def test_a_file_without_lines_is_left_out_with_a_warning(tmp_path: Path) -> None:
    written(tmp_path, "a.json", SNAP_2014)
    written(tmp_path, "b.json", b"\n\n")
    written(tmp_path, "c.json", b"")
    found = understand_inputs(Inputs(files=(str(tmp_path),)))
    assert len(found.sources) == 1
    assert [warning.partition("/")[2].partition(".json")[2] for warning in found.warnings] == [
        " is empty and left out",
        " has no lines and is left out",
    ]


def test_a_damaged_archive_among_others_is_read_as_they_are(tmp_path: Path) -> None:
    written(tmp_path, "a.json", SNAP_2014)
    written(tmp_path, "b.json.gz", gzip.compress(os.urandom(3_000).hex().encode())[:500])
    found = understand_inputs(Inputs(files=(str(tmp_path),)))
    assert {source.format for source in found.sources} == {json_of("reviewText", value="overall")}
    assert "may be damaged" in found.warnings[0]


def test_a_damaged_archive_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    content = gzip.compress(json_lines(*({"reviewText": os.urandom(30).hex(), "overall": 5} for _ in range(2_000))))
    found = understood(tmp_path, "a.json.gz", content[: len(content) // 2])
    assert found.sample.malformed == 0
    assert [damage.file for damage in found.sample.tally.damaged_files()] == [str(tmp_path / "a.json.gz")]
    assert found.sample.values["5"] > 500


def test_damaged_archives_alone_are_refused_and_all_named(tmp_path: Path) -> None:
    nothing = gzip.compress(os.urandom(3_000).hex().encode())[:500]
    with pytest.raises(DataError, match=r"b\.json\.gz shows no whole line, so it may be damaged; download again"):
        understood(tmp_path, "b.json.gz", nothing)
    written(tmp_path, "c.json.gz", nothing)
    with pytest.raises(DataError, match=r"2 files show no whole line.*b\.json\.gz, .*c\.json\.gz\)"):
        understand_inputs(Inputs(files=(str(tmp_path),)))


def test_the_sample_says_what_was_read(tmp_path: Path) -> None:
    found = understood(tmp_path, "a.json", SNAP_2014 + b"{\n" + json_lines({"reviewText": "x", "overall": 9}))
    sample = found.sample
    assert (sample.lines, sample.malformed) == (4, 2)
    assert sample.malformed_by_reason == {"not_json": 1, "bad_rating": 1}
    first = sample.malformed_lines[0]
    assert (first.reason, first.line, first.begins) == ("not_json", 3, "{")
    assert (sample.words("letters"), sample.example, sample.example_value) == (3, "a fine lamp", "5")
    assert (found.rows, found.plain_bytes) == (4, found.sources[0].size)


def test_the_words_of_a_text_are_those_of_all_files(tmp_path: Path) -> None:
    for name, text, count in (("a.json", "word", 9_000), ("b.json", "five words are in it", 3_000)):
        written(tmp_path, name, json_lines(*({"reviewText": text, "overall": 5} for _ in range(count))))
    assert understand_inputs(Inputs(files=(str(tmp_path),))).sample.words("letters") == 2


def test_the_sample_has_words_of_each_rule_and_shows_no_command_to_a_terminal(tmp_path: Path) -> None:
    text = "10 of 10, it's \x1b[31mfine\x00!"
    sample = understood(tmp_path, "a.json", json_lines({"reviewText": text, "overall": 5})).sample
    assert (sample.words("letters"), sample.words("tokens")) == (3, 9)
    assert sample.example == "10 of 10, it's ?[31mfine?!"


def test_of_a_large_file_the_rest_is_estimated(tmp_path: Path) -> None:
    count = 60_000
    content = json_lines(*({"reviewText": f"a fine lamp {'x' * 100} {n}", "overall": 1 + n % 5} for n in range(count)))
    for name, data in (("a.json", content), ("a.json.gz", gzip.compress(content, 1))):
        found = understood(tmp_path, name, data)
        assert found.sample.lines < count
        assert found.rows == pytest.approx(count, rel=0.1)
        assert found.plain_bytes == pytest.approx(len(content), rel=0.1)


def test_of_what_is_no_review_reading_ends_early(tmp_path: Path) -> None:
    content = json_lines({"reviewText": "a", "overall": 5}) + b'{"reviewText": "a", "overall": 7}\n' * 200_000
    found = understood(tmp_path, "a.json.gz", gzip.compress(content))
    assert found.sample.malformed < 20_000


def test_hundreds_of_files_are_understood_by_a_little_of_each(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.json").write_bytes(SNAP_2014)
    found = understand_inputs(Inputs(files=(str(tmp_path),)))
    assert len(found.sources) == 300
    assert len(found.sample.files) == 20
    assert found.rows == 600


def test_a_first_line_of_megabytes_is_read_whole(tmp_path: Path) -> None:
    found = understood(tmp_path, "a.json", json_lines({"reviewText": "long " * 500_000, "overall": 5}) + SNAP_2014)
    assert found.sample.values == {"5": 2, "1": 1}


def test_settings_say_what_the_input_says_and_a_positive_label_that_no_text_has_is_noticed(tmp_path: Path) -> None:
    train = written(tmp_path, "a.csv", b"label,text\nyes,a\nno,b\n")
    test = written(tmp_path, "b.csv", b"label,text\nyes,a\n")
    for label, is_there in (("yes", True), ("yess", False)):
        options = ReadingOptions(positive_label=label)
        found = understand_inputs(Inputs(files=(train,), test=(test,), options=options))
        expected = Settings(row_length=7, labelled=True, positive_label=label, test_input=True)
        assert found.settings(Settings(row_length=7)) == expected
        assert [f"has the label '{label}'" in note for note in found.warnings] == [True] * (not is_there)


TOPICS = b"".join(b"__label__%s a text\n" % name for name in (b"10", b"sports", b"2", b"arts"))


def test_labels_of_more_than_two_classes_have_to_be_named_and_the_error_names_them(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"--positive-label VALUE: all others .* --classes 2 10 arts sports$"):
        understood(tmp_path, "a.txt", TOPICS)
    with pytest.raises(DataError, match=r"are negative then$"):
        understood(tmp_path, "b.csv", b"label,text\ngood,a\nbad,b\n")
    names = b"".join(b"__label__user%d a text\n" % number for number in range(40))
    with pytest.raises(DataError, match=r"are negative then$"):
        understood(tmp_path, "c.txt", names)


def test_named_classes_are_those_of_the_sample_and_of_the_settings(tmp_path: Path) -> None:
    found = understood(tmp_path, "a.txt", TOPICS, classes=("__label__sports", "arts", "10", "2"))
    assert (found.labelled, found.classes, found.warnings) == (True, ("sports", "arts", "10", "2"), ())
    assert found.sample.values == {"sports": 1, "arts": 1, "10": 1, "2": 1}
    assert found.sample.example_value == "10"
    assert found.settings(Settings(ragged=True)).classes == found.classes
    with pytest.raises(DataError, match="only ragged rows"):
        found.settings(Settings())


def test_a_class_that_no_text_has_is_noticed(tmp_path: Path) -> None:
    found = understood(tmp_path, "a.txt", TOPICS, classes=("10", "2", "arts", "sports", "art"))
    assert found.warnings == ("no text of the sample has the label 'art'; check --classes",)


def test_more_labels_of_no_class_than_may_be_malformed_end_the_work_before_it_begins(tmp_path: Path) -> None:
    found = understood(tmp_path, "a.txt", TOPICS, classes=("10", "2", "arts"))
    settings = found.settings(Settings(ragged=True))
    with pytest.raises(DataError, match=r"1 of the first 4 labels are none of --classes: '__label__sports' \(1\)"):
        found.check_values(settings, 0.2)
    found.check_values(settings, 0.25)
    assert found.sample.malformed_by_reason == {"bad_label": 1}


@pytest.mark.parametrize("kind", ["json", "csv", "plain csv", "parquet"])
def test_classes_are_read_from_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    labels = [3, 1, 2, 3]
    rows = b"".join(b"%d,a title,a text\n" % label for label in labels)
    content = {
        "json": json_lines(*({"text": "a text", "label": label} for label in labels)),
        "csv": b"label,title,text\n" + rows,
        "plain csv": rows,
        "parquet": parquet_bytes(tmp_path, {"text": ["a text"] * 4, "label": labels}),
    }[kind]
    found = understood(tmp_path, f"a.{kind.split()[-1]}", content, classes=("1", "2", "3"))
    assert (found.labelled, found.sample.values) == (True, {"3": 2, "1": 1, "2": 1})


def test_classes_go_with_labels(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"--classes goes with labels, but .* has ratings \(overall\)"):
        understood(tmp_path, "a.json", SNAP_2014, classes=("1", "5", "3"))


@pytest.mark.usefixtures("pile")
def test_objects_of_s3_are_understood_as_files_are(tmp_path: Path) -> None:
    contents = {
        "a.json": SNAP_2014,
        "b.json.gz": gzip.compress(SNAP_2023 * 1_000),
        "c.parquet": parquet_bytes(tmp_path, {"text": ["a", "b"], "rating": [1, 5]}),
        "d.json": SNAP_2014 * 50_000,
    }
    for key, content in contents.items():
        boto3.client("s3").put_object(Bucket="pile", Key=f"reviews/{key}", Body=content)
        written(tmp_path, key, content)
    there, here = (understand_inputs(Inputs(files=(place,))) for place in ("s3://pile/reviews/", str(tmp_path)))
    assert [source.format for source in there.sources] == [source.format for source in here.sources]
    assert (there.rows, there.plain_bytes, there.sample.values) == (here.rows, here.plain_bytes, here.sample.values)


@pytest.mark.skipif(not REVIEWS, reason=ABSENT)
def test_real_reviews_are_understood_without_a_word() -> None:
    found = understand_inputs(Inputs(files=(str(FOLDER / "reviews"),)))
    assert {source.format for source in found.sources} == {json_of("reviewText", value="overall")}
    assert found.rows == pytest.approx(25_614, rel=0.1)


@pytest.mark.skipif(not REVIEWS, reason=ABSENT)
def test_real_sets_of_labels_are_understood_with_few() -> None:
    def found(options: ReadingOptions | None = None, **files: str) -> Understanding:
        named = {name: (str(FOLDER / pattern),) for name, pattern in files.items()}
        return understand_inputs(Inputs(**named, options=options or ReadingOptions()))

    imdb = found(ReadingOptions(label="label"), files="imdb/imdb_train.jsonl.gz")
    assert imdb.sources[0].format == json_of("text", value="label")
    assert imdb.rows == pytest.approx(25_000, rel=0.1)
    dollars = ReadingOptions(separator="$LABEL$")
    polarity = found(dollars, files="polarity/*.train.dat.gz", test="polarity/*.test.dat.gz")
    expected = Format(kind="separated", separator="$LABEL$", text=("1",), value="2")
    assert {source.format for source in polarity.sources} == {expected}
    assert (polarity.rows, polarity.sample.malformed, polarity.test_input) == (10_000, 0, True)
    sentences = "polarity/yelp_sentences.dev.{}.gz"
    yelp = found(positive=sentences.format(1), negative=sentences.format(0))
    assert (yelp.rows, set(yelp.sample.values)) == (63_483, {"positive", "negative"})
