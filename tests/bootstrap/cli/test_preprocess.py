"""`shoal preprocess` as a person types it: what it shows before the work, after it, and when something is wrong."""

import gzip
import json
import os
import re
import shlex
from pathlib import Path

import boto3
import pytest

from bootstrap.cli.main import main
from embedded.aws import EmbeddedAws

REVIEWS = b"".join(
    json.dumps({"reviewText": f"a fine lamp number word{chr(97 + n)}", "overall": 1 + n % 5}).encode() + b"\n"
    for n in range(20)
)
CSV = b"label,title,text\n" + b"2,Fine,a bright lamp\n1,Bad,broke at once\n" * 10


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with some files, in which commands are typed."""
    monkeypatch.chdir(tmp_path)
    for name, content in (
        ("a.json", REVIEWS),
        ("b.json.gz", gzip.compress(REVIEWS, mtime=0)),
        ("c.csv", CSV),
        ("good.txt", b"a bright lamp\nit shines\n"),
        ("bad.txt", b"broke at once\n"),
        ("odd.json", b'{"body": "a", "score": 3, "mood": "glad"}\n{"body": "b", "score": 1, "mood": "sad"}\n'),
        ("topics.txt", b"".join(b"__label__%s A lamp, %d!\n" % (b"cab"[n % 3 : n % 3 + 1], n // 6) for n in range(60))),
        ("p.dat", b"fine lamp$LABEL$1\nbroke$LABEL$0\n"),
    ):
        (tmp_path / name).write_bytes(content)
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["preprocess", *arguments]) == 0
    return capsys.readouterr().out


def preview(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    shown_here = shown(capsys, "--local", *arguments, "--dry-run", "--json")
    return dict(json.loads(shown_here))


@pytest.mark.usefixtures("folder")
def test_help_shows_every_way_to_give_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preprocess", "--help"]) == 0
    examples = capsys.readouterr().out.partition("Examples:")[2]
    for option in (
        *("--test-input", "--positive-input", "--separator '$LABEL$'", "--label-field", "--text-field", "--dry-run"),
        *("s3://", "--deployment", "--local"),
    ):
        assert option in examples


def test_a_dry_run_shows_what_was_understood_and_writes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.rglob("*"))
    said = shown(capsys, "--local", "--input", "a.json", "b.json.gz", "--output", "out", "--dry-run")
    for part in (
        "JSON lines",
        "reviewText",
        "overall",
        "1: a fine lamp",
        "about 40 records in 2 files",
        "out/dataset.h5",
        "memory",
        "whole texts as rows, words with digits and punctuation, a vocabulary of 2,000,000, positive from 4 of 1 to 5",
    ):
        assert part in said
    assert sorted(folder.rglob("*")) == before


@pytest.mark.usefixtures("folder")
def test_a_dry_run_tells_what_the_reference_takes_from_texts(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--local", "--input", "a.json", "--dry-run", "--preset", "reference")
    said, better = shown(capsys, *asked), "with --stopwords keep-negations a model distinguishes 'not good' from 'good'"
    assert "rows of 100 words, a vocabulary of 10,000" in said
    assert better in said
    assert better not in shown(capsys, *asked, "--stopwords", "none")


TOPICS = ("--input", "topics.txt", "--classes", "c", "__label__a", "b")
WHOLE = (*TOPICS, "--keep-duplicates")


@pytest.mark.usefixtures("folder")
def test_whole_texts_and_their_classes_are_shown_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    before = shown(capsys, "--local", *WHOLE, "--dry-run")
    assert (
        "whole texts as rows, words with digits and punctuation, duplicates kept, a vocabulary of 2,000,000, "
        "3 classes: c, a, b, 10.0% to test, stopwords: none"
    ) in before
    assert "; 5 words a text" in before
    assert "; 2 words a text" in shown(capsys, "--local", *TOPICS, "--words", "letters", "--dry-run")
    after = shown(capsys, "--local", *WHOLE, "--output", "out", "--runner", "inline")
    assert "60, with duplicates" in after
    assert "at the row length" not in after
    assert [line.split()[0] for line in after.splitlines() if " 33.3% " in line] == ["c", "a", "b"]
    assert main(["dataset", "info", "out/dataset.h5"]) == 0
    info = capsys.readouterr().out
    assert "3: c, a, b" in info
    assert re.search(r"\n  a lamp , [0-9] !\n", info)


@pytest.mark.usefixtures("folder")
def test_a_dry_run_needs_no_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert "would write" not in shown(capsys, "--local", "--input", "a.json", "--dry-run")


@pytest.mark.usefixtures("folder")
def test_a_dry_run_gives_a_program_the_whole_preview(capsys: pytest.CaptureFixture[str]) -> None:
    said = preview(capsys, "--input", "c.csv", "--output", "out", "--row-length", "7")
    assert said["formats"] == [
        {
            "kind": "csv",
            "text": ["title", "text"],
            "value": "label",
            "header": True,
            "separator": ",",
            "labelled": True,
            "test": False,
            "class": None,
            "files": 1,
            "bytes": len(CSV),
            "first": os.path.realpath("c.csv"),
        }
    ]
    assert (said["rows"], said["output"]) == (20, ["out/dataset.h5", "out/counts.json"])
    sample, settings, estimate = said["sample"], said["settings"], said["estimate"]
    assert isinstance(sample, dict)
    assert isinstance(settings, dict)
    assert isinstance(estimate, dict)
    assert sample["values"] == {"1": 10, "2": 10}
    assert sample["example"] == {"value": "2", "begins": "Fine a bright lamp"}
    assert (settings["labelled"], settings["row_length"]) == (True, 7)
    assert estimate["seconds"] > 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--input", "p.dat", "--separator", "$LABEL$"), "columns between '$LABEL$', without header"),
        (("--positive-input", "good.txt", "--negative-input", "bad.txt"), "a text a line"),
        (("--input", "odd.json", "--text-field", "body", "--rating-field", "score"), "score"),
        (
            ("--input", "odd.json", "--text-field", "body", "--label-field", "mood", "--positive-label", "glad"),
            "positive is 'glad'",
        ),
        (("--input", "*.json", "--text-field", "reviewText", "--rating-field", "overall"), "has no field"),
        (("--input", "a.json", "--test-input", "b.json.gz"), "own files to test"),
        (("--input", "a.json", "--format", "json"), "JSON lines"),
    ],
)
def test_options_set_how_input_is_read(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], part: str
) -> None:
    main(["preprocess", "--local", "--dry-run", *arguments])
    said = capsys.readouterr()
    assert part in said.out + said.err


def test_many_files_are_shown_by_how_they_are_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "many").mkdir()
    for number in range(30):
        (folder / "many" / f"{number:02}.json").write_bytes(REVIEWS)
    (folder / "many" / "x.csv").write_bytes(b"rating,text\n5,a lamp\n")
    said = shown(capsys, "--local", "--input", "many", "--dry-run")
    assert "30 like " in said
    assert said.count(".json") == 1


@pytest.mark.usefixtures("folder")
def test_warnings_and_malformed_lines_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "empty.json").write_bytes(b"")
    (folder / "a.json").write_bytes(REVIEWS + b"{oops\n")
    said = shown(capsys, "--local", "--input", "a.json", "empty.json", "--dry-run")
    assert "empty.json is empty and left out" in said
    assert "a.json, line 21: {oops" in said


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("how", [("--dry-run",), ("--output", "an out", "--runner", "inline")])
def test_ratings_on_another_scale_are_reported_with_the_whole_command_that_reads_them(
    folder: Path, capsys: pytest.CaptureFixture[str], how: tuple[str, ...]
) -> None:
    rated = (json.dumps({"reviewText": f"lamp {chr(97 + n)}", "overall": 1 + n % 10}) for n in range(26))
    (folder / "tens.json").write_text("\n".join(rated))
    assert main(["preprocess", "--local", "--input", "tens.json", *how]) == 1
    said = capsys.readouterr()
    assert "of the first 26 ratings are not from 1 to 5, such as '6' (3)" in said.err
    output = "" if how == ("--dry-run",) else " --output 'an out' --runner inline"
    command = f"shoal preprocess --local --input tens.json{output} --rating-range 1 10 --positive-from 7"
    assert said.err.rstrip().endswith(f"type: {command}")
    assert ("read as" in said.out) == (how == ("--dry-run",))
    again = shlex.split(command)[1:]
    assert main([*again, *(how if how == ("--dry-run",) else ())]) == 0


def test_a_dry_run_ends_with_the_error_of_the_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "noisy.json").write_bytes(REVIEWS + b"{\n" * 2)
    (folder / "cut.json.gz").write_bytes(gzip.compress(REVIEWS)[:-30])
    for name, allowed, sentence in (
        ("noisy.json", ("--max-malformed", "0.1"), "2 of 22 lines are malformed (2 not_json), more than 5%"),
        ("cut.json.gz", ("--allow-damaged",), "cut.json.gz (lines that can be read: "),
    ):
        for how in (("--dry-run",), ("--output", "out", "--runner", "inline")):
            command = ["preprocess", "--local", "--input", name, *how]
            assert main(command) == 1
            said = capsys.readouterr()
            assert sentence in said.err
            assert bool(said.out) == (how == ("--dry-run",))
            assert main([*command, *allowed]) == 0
            capsys.readouterr()


def test_fields_of_two_kinds_of_value_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["preprocess", "--local", "--input", "a", "--output", "d", "--rating-field", "b", "--label-field", "c"]
    assert main(given) == 2
    assert "--rating-field and --label-field contradict each other" in capsys.readouterr().err


@pytest.fixture(scope="module")
def _s3(aws: EmbeddedAws) -> None:
    client = boto3.client("s3")
    client.create_bucket(Bucket="pile")
    client.put_object(Bucket="pile", Key="reviews/a.json", Body=REVIEWS)


@pytest.mark.usefixtures("folder", "_s3")
def test_input_and_results_may_be_on_s3(capsys: pytest.CaptureFixture[str]) -> None:
    said = preview(capsys, "--input", "s3://pile/reviews/", "--output", "s3://pile/made")
    assert said["rows"] == 20
    assert said["output"] == ["s3://pile/made/DIGEST/dataset.h5", "s3://pile/made/DIGEST/counts.json"]


def test_after_a_run_the_figures_that_a_person_looks_at_are_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = shown(capsys, "--local", "--input", "a.json", "b.json.gz", "--output", "out", "--runner", "inline")
    for part in ("distinct texts", "rating", "class", "words kept of a text", "most frequent words: ", "lamp", "####"):
        assert part in said
    assert (folder / "out" / "dataset.h5").exists()


@pytest.mark.parametrize("how", [("--dry-run",), ("--output", "out", "--runner", "inline")])
def test_warnings_of_the_input_are_shown_by_a_dry_run_and_by_a_run(
    folder: Path, capsys: pytest.CaptureFixture[str], how: tuple[str, ...]
) -> None:
    (folder / "empty.json").write_bytes(b"")
    command = ["preprocess", "--local", "--input", "a.json", "empty.json", "--rating-range", "1", "10", *how]
    for form in ((), ("--json",)):
        assert main([*command, *form]) == 0
        said = capsys.readouterr()
        told = json.loads(said.out)["warnings"] if form else (said.out + said.err).splitlines()
        assert [each for each in told if "empty.json is empty and left out" in each]
        assert [each for each in told if "set the first positive rating by --positive-from" in each]


def test_after_a_run_a_program_gets_counts_and_places(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.json").write_bytes(REVIEWS + b"{oops\n")
    said = json.loads(shown(capsys, "--local", "--input", "a.json", "--output", "out", "--runner", "inline", "--json"))
    assert (said["lines"], said["malformed"], said["distinct"]) == (21, 1, 20)
    assert said["malformed_lines"] == [
        {"reason": "not_json", "file": os.path.realpath("a.json"), "line": 21, "begins": "{oops"}
    ]


def test_a_dry_run_shows_how_many_rows_are_needed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "few.json").write_bytes(b"".join(REVIEWS.splitlines(keepends=True)[:9]))
    said = preview(capsys, "--input", "few.json")
    assert said["warnings"] == [
        "training needs at least 3 rows to learn from and 2 to test, and has 8 and 1; give about 40 distinct texts or "
        "more, another --test-share, or --test-input"
    ]
    assert preview(capsys, "--input", "few.json", "--test-share", "0.3")["warnings"] == []
