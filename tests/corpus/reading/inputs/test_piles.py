"""Folders and files as people have them: with pictures, sorted by label, with semicolons, with two text fields."""

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import DataError
from corpus.reading.formats import Format
from corpus.reading.inputs.understanding import Understanding, understand_inputs
from corpus.reading.sources import Inputs, ReadingOptions
from tests.corpus.reading.inputs.beginnings import SNAP_2014, json_of, understood, written
from tests.reviews import json_lines

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)) * 40
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(reversed(range(256))) * 40
NOISE = b"\x01\x02" + random.Random(1).randbytes(4_000)


def folder_of(folder: Path, **contents: bytes) -> str:
    """A folder with files of these contents; two underscores in a name stand for a slash, one for a dot."""
    for name, content in contents.items():
        path = folder / "pile" / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return str(folder / "pile")


def names(found: Understanding) -> list[str]:
    return [source.address.rpartition("/")[2] for source in found.sources]


@pytest.mark.parametrize(("name", "content"), [("cover_png", PNG), ("photo", JPEG), ("thumbs_db", NOISE)])
@pytest.mark.parametrize("pattern", ["", "/*"])
def test_a_picture_in_a_folder_is_passed_over_with_a_note(tmp_path: Path, name: str, content: bytes, pattern) -> None:
    pile = folder_of(tmp_path, **{"a_json": SNAP_2014, name: content})
    found = understand_inputs(Inputs(files=(pile + pattern,)))
    assert names(found) == ["a.json"]
    assert [note.rpartition("/")[2] for note in found.warnings] == [
        f"{name.replace('_', '.')} is a picture or another binary file and is left out"
    ]


@pytest.mark.parametrize(("content", "what"), [(PNG, "a picture"), (NOISE, "another binary file")])
def test_a_picture_that_was_named_is_refused(tmp_path: Path, content: bytes, what: str) -> None:
    with pytest.raises(DataError, match=rf"x\.json is .*{what}; leave it out"):
        understood(tmp_path, "x.json", content)


def test_text_in_another_encoding_is_no_picture(tmp_path: Path) -> None:
    pile = folder_of(tmp_path, a_json=SNAP_2014, b_txt="caf\u00e9 \u00fcber alles\n".encode("latin-1") * 50)
    with pytest.raises(DataError, match="is not UTF-8 text"):
        understand_inputs(Inputs(files=(pile,)))


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        (("*.txt",), ["a.json", "b.json", "c.json"]),
        (("old",), ["a.json", "x.txt"]),
        (("old/b.*", "*.txt"), ["a.json", "c.json"]),
        (("pile", "tmp", "*.txt", "old"), ["a.json"]),
    ],
)
def test_what_is_excluded_is_not_read(tmp_path: Path, patterns: tuple[str, ...], left: list[str]) -> None:
    pile = folder_of(tmp_path, a_json=SNAP_2014, old__b_json=SNAP_2014, old__c_json=SNAP_2014, x_txt=SNAP_2014)
    found = understand_inputs(Inputs(files=(pile,), exclude=patterns))
    assert names(found) == left
    assert [note for note in found.warnings if "fits no file" not in note] == []
    assert names(understand_inputs(Inputs(files=(f"{pile}/[ax].*",), exclude=("x.txt",)))) == ["a.json"]


def test_a_pattern_to_exclude_that_fits_nothing_or_everything_is_reported(tmp_path: Path) -> None:
    pile = folder_of(tmp_path, a_json=SNAP_2014)
    assert understand_inputs(Inputs(files=(pile,), exclude=("*.jpg",))).warnings == ("--exclude *.jpg fits no file",)
    with pytest.raises(DataError, match="--exclude leaves no file of the input"):
        understand_inputs(Inputs(files=(pile,), exclude=("*.json",)))


SEMICOLONS = b'text;rating\n"good, bright; fine";5\nbroke, at once;1\n'
BODY = SEMICOLONS.replace(b"text", b"body")


@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (SEMICOLONS, {}, ("text", "rating", True)),
        (BODY, {"text": ("body",), "rating": "rating"}, ("body", "rating", True)),
        (b"1;broke, at once\n2;good, bright\n" * 9, {}, ("2", "1", False)),
    ],
)
def test_semicolons_may_separate_columns(tmp_path: Path, name: str, content: bytes, options, expected) -> None:
    form = understood(tmp_path, name, content, **options).sources[0].format
    assert (form.kind, form.separator) == ("csv", ";")
    assert (*form.text, form.value, form.header) == expected
    found = understood(tmp_path, name, b"text,rating\ngood; fine,5\nbad; dim,1\n")  # semicolons within texts
    assert found.sources[0].format.separator == ","


def test_of_reviewtext_and_text_the_former_counts(tmp_path: Path) -> None:
    both = {"reviewText": "a fine lamp", "text": "Lamps, 2nd shelf", "overall": 5}
    found = understood(tmp_path, "a.json", SNAP_2014 + json_lines(both))
    assert found.sources[0].format == json_of("reviewText", value="overall")
    assert (found.sample.lines, found.sample.malformed) == (3, 0)
    asked = understand_inputs(Inputs(files=(str(tmp_path / "a.json"),), options=ReadingOptions(text=("text",))))
    assert asked.sources[0].format == json_of("text", value="overall")


def test_positive_and_negative_are_labels(tmp_path: Path) -> None:
    found = understood(tmp_path, "a.csv", b"label,text\n" + b"positive,a\nnegative,b\n" * 5)
    assert found.labelled
    assert found.sample.values == {"positive": 5, "negative": 5}
    with pytest.raises(DataError, match="it is not clear which are positive"):
        understood(tmp_path, "b.csv", b"label,text\n" + b"positive,a\nneg,b\n" * 5)


def sorted_by_label(separator: str) -> bytes:
    """Megabytes of which the first half is all of one class."""
    return b"".join(f"{label}{separator}a fine lamp {'x' * 90}\n".encode() * 50_000 for label in (1, 2))


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress)])
@pytest.mark.parametrize(("name", "separator", "kind"), [("a.tsv", "\t", "separated"), ("a.csv", ",", "csv")])
def test_a_file_that_is_sorted_by_label_is_understood(
    tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes], name: str, separator: str, kind: str
) -> None:
    found = understood(tmp_path, name + suffix, pack(sorted_by_label(separator)))
    assert found.sources[0].format == Format(kind=kind, text=("2",), value="1", separator=separator)
    assert found.labelled
    if kind == "separated" and not suffix:  # of a file of lines a part from its middle is looked at, too
        assert set(found.sample.values) == {"1", "2"}
    assert found.rows == pytest.approx(100_000, rel=0.01)


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", lambda content: gzip.compress(content, 1))])
def test_a_class_that_is_only_in_the_middle_is_seen(
    tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    content = b"".join(
        b"%d\ta fine lamp %s\n" % (label, b"x" * 90) * count for label, count in ((1, 35_000), (2, 20_000), (1, 45_000))
    )
    assert understood(tmp_path, f"a.tsv{suffix}", pack(content)).labelled


def test_a_file_of_one_value_alone_still_has_to_be_explained(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="may be ratings or labels: only '1' was seen"):
        understood(tmp_path, "a.tsv", b"1\ta fine lamp\n" * 50_000)


def test_what_a_person_named_that_is_damaged_is_not_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", SNAP_2014 * 100 + b"\x00\xff\n")
    assert understand_inputs(Inputs(files=(str(tmp_path),))).sources[0].address == path
