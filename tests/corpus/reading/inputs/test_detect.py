"""Which format is detected from the lines of a file, what is refused, and with which sentence."""

import bz2
import gzip
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import Codes, Format, MalformedLineError
from corpus.reading.inputs.detect import detect_format
from corpus.reading.parsing import line_parser
from corpus.reading.sources import ReadingOptions
from tests.corpus.reading.inputs.beginnings import AMAZON, FASTTEXT, SNAP_2014, SNAP_2023, json_of, understood
from tests.reviews import json_lines

IMDB = json_lines({"id": 1, "stars": 9, "label": 1, "text": "grand"}, {"id": 2, "stars": 2, "label": 0, "text": "dull"})
POLARITY = b'"2","Fine","a lamp, \\n and ""bright"""\n"1","Bad","broke\nat once"\n'
ARRAY = b'[\n{"text": "a"},\n{"text": "b"}]\n'


def csv_of(text: tuple[str, ...], value: str, columns: tuple[str, ...] = (), **more: str) -> Format:
    return Format(**{"kind": "csv", **more}, text=text, value=value, header=bool(columns), columns=columns)  # type: ignore[arg-type]


AMAZON_FORM = csv_of(
    ("review_headline", "review_body"),
    "star_rating",
    ("marketplace", "star_rating", "review_headline", "review_body"),
    kind="separated",
    separator="\t",
)
BOTH = {"text": ("summary", "reviewText")}
TITLE_TEXT = (("title", "text"), "label")
SEMICOLONS = csv_of(("what",), "n", ("n", "what"), separator=";")
DOLLARS = csv_of(("1",), "2", kind="separated", separator="$LABEL$")
SNAP = json_of("reviewText", value="overall")
COLUMN_2 = {"text": ("2",), "rating": "1"}
YES = {"text": ("x",), "label": "y", "positive_label": "yes"}


@pytest.mark.parametrize(
    ("name", "content", "options", "form", "labelled"),
    [
        ("a.json", SNAP_2014, {}, SNAP, False),
        ("a.json", SNAP_2023, {}, json_of("text", value="rating"), False),
        ("a", b"\xef\xbb\xbf" + SNAP_2014, {}, SNAP, False),
        ("a.json", SNAP_2014 + b"{broken\n" * 9, {}, SNAP, False),
        ("a.json", SNAP_2014, BOTH, json_of(*BOTH["text"], value="overall"), False),
        ("a.json", IMDB, {"label": "label"}, json_of("text", value="label"), True),
        ("a.json", IMDB, {"rating": "stars", "rating_range": (1, 10)}, json_of("text", value="stars"), False),
        ("a.json", json_lines({"x": "fine", "y": "yes"}), YES, json_of("x", value="y"), True),
        ("a.csv", POLARITY * 3, {}, csv_of(("2", "3"), "1"), True),
        ("a", POLARITY.replace(b"\nat", b" at") * 3, {}, csv_of(("2", "3"), "1"), True),
        ("a.csv", b"label,title,text\n" + POLARITY, {}, csv_of(*TITLE_TEXT, ("label", *TITLE_TEXT[0])), True),
        ("a.csv", b"fine,5\nbad,2\nso so,3\n", {}, csv_of(("1",), "2"), False),
        ("a.csv", b"5,fine,x\n2,bad,y\n", COLUMN_2, csv_of(("2",), "1"), False),
        ("a.csv", b"n,what,x\n5,fine,x\n2,bad,y\n", COLUMN_2, csv_of(("what",), "n", ("n", "what", "x")), False),
        ("a.csv", b"n;what\n5;fine\n", {**COLUMN_2, "separator": ";"}, SEMICOLONS, False),
        ("a.tsv", AMAZON, {}, AMAZON_FORM, False),
        ("a", AMAZON, {}, AMAZON_FORM, False),
        ("a", b"fine lamp$LABEL$1\nbroke$LABEL$0\n", {"separator": "$LABEL$"}, DOLLARS, True),
        ("a.txt", FASTTEXT, {}, Format(kind="fasttext"), True),
        ("a.txt", FASTTEXT, {"kind": "fasttext"}, Format(kind="fasttext"), True),
        ("a.txt", b"__label__0 broke at once\n__label__1 a fine lamp\n", {}, Format(kind="fasttext"), True),
    ],
)
def test_a_file_is_read_as_it_was_written(
    tmp_path: Path, name: str, content: bytes, options: dict[str, object], form: Format, labelled: bool
) -> None:
    found = understood(tmp_path, name, content, **options)
    assert [source.format for source in found.sources] == [form]
    assert found.labelled == labelled


PIECES = st.sampled_from(
    [
        *(b"<html>\x1b[2J", b'{"\x7f": "\\u001b"}'),
        *(line for content in (SNAP_2014, IMDB, POLARITY, AMAZON, FASTTEXT) for line in content.splitlines()),
    ]
)
CONTENTS = st.binary(max_size=60) | st.lists(PIECES | st.binary(max_size=9), max_size=6).map(b"\n".join)
WISHES = st.builds(
    ReadingOptions,
    separator=st.sampled_from([None, ",", "\t", "$LABEL$"]),
    text=st.sampled_from([(), ("text",), ("1",), ("2", "1")]),
    label=st.sampled_from([None, "label", "1", "3"]),
)


@given(CONTENTS, st.booleans(), WISHES, st.sampled_from([None, 0, 1]), st.sampled_from(["a", "a.csv", "a.json.gz"]))
def test_any_beginning_is_understood_or_refused(
    content: bytes, whole: bool, options: ReadingOptions, code: int | None, name: str
) -> None:
    refusal, settled = "", None
    try:
        settled = detect_format(name, content, whole, options, code)
    except DataError as error:
        refusal = str(error)
    assert refusal.isprintable()
    if settled is not None and settled.format.kind in ("json", "separated", "fasttext", "text"):
        codes = Codes(Settings(labelled=settled.labelled))
        parse = line_parser(settled.format, codes, code)
        for line in content.split(b"\n"):
            with suppress(MalformedLineError):
                parse(line)


LATIN = b"label,text\n" + "1,caf\u00e9\n".encode("latin-1") * 9
UTF_16 = SNAP_2014.decode()
TAR = b"a.json" + bytes(251) + b"ustar"


def labels(*values: object) -> bytes:
    return json_lines(*({"text": "a", "label": each} for each in values))


@pytest.mark.parametrize(
    ("name", "content", "options", "wrong"),
    [
        # Of no kind that is read.
        ("a.json", ARRAY, {}, r"a\.json is a JSON array, not an object a line; convert it: jq"),
        ("a.json", json.dumps([{"text": "a"}] * 9).encode(), {}, r"a\.json is a JSON array"),
        ("a.json", b'["a fine lamp", 5]\n["broke", 1]\n', {}, "a line of .* is a JSON array"),
        ("a.json", json.dumps({"text": "a", "rating": 1}, indent=1).encode(), {}, "is JSON over several lines"),
        ("a.json", b"{'text': 'a', 'rating': 1}\n", {}, "Python's notation, not JSON"),
        ("a.json", UTF_16.encode("utf-16"), {}, r"is in UTF-16; convert it to UTF-8: iconv"),
        ("a.json", UTF_16.encode("utf-16-le"), {}, r"is in UTF-16"),
        ("a.csv", LATIN, {}, r"is not UTF-8 text.*iconv -f LATIN1"),
        ("a.json", b"<!DOCTYPE html>\n<html><body>404</body>\n", {}, r"is a web page or XML \(<!DOCTYPE html>\)"),
        ("a.json", b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", {}, "is a web page or XML"),
        ("a.json", b"%PDF-1.7 ...", {}, "is a PDF document"),
        ("a.json", b"SQLite format 3\0", {}, "is an SQLite database"),
        ("a.json", bytes(range(128, 256)) * 40, {}, "is not UTF-8 text"),
        ("a", b"just a text\nand another\n", {}, r"the format of .*a is not clear: .* 'just a text'; give --format"),
        ("a", b"just a text\n", {"kind": "text"}, "--positive-input or --negative-input"),
        ("a", b"just a text\n", {"kind": "json"}, "holds no JSON object a line: .* 'just a text'"),
        ("a", b"just a text\n", {"kind": "csv"}, r"has no separator ','"),
        ("a", b"just a text\n", {"separator": "$LABEL$"}, r"has no separator '\$LABEL\$'"),
        ("a", b"just a text\n", {"kind": "parquet"}, "is not a Parquet file"),
        ("a", b"\n \n", {}, "the input has no lines"),
        # Packed otherwise than the name says.
        ("a.json", gzip.compress(SNAP_2014, mtime=0), {}, r"holds gz data, .* rename it to end in \.gz"),
        ("a.json.gz", SNAP_2014, {}, r"cannot read .*a\.json\.gz: it holds no gz data"),
        ("a.gz", bz2.compress(SNAP_2014), {}, r"holds bz2 data, .* rename it to end in \.bz2"),
        ("a.json", b"PK\x03\x04...", {}, "holds zip data, .*; unpack it first"),
        ("a.zip", b"PK\x03\x04...", {}, "unpack it first"),
        ("a.tar.gz", gzip.compress(SNAP_2014, mtime=0), {}, "unpack it first"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c", {}, "unpack it first"),
        ("a.json.Z", b"\x1f\x9d\x90", {}, "unpack it first"),
        ("a.json.gz", gzip.compress(TAR, mtime=0), {}, "holds a tar archive; unpack it first"),
        # Fields that are not there, or of which it is not clear which is meant.
        ("a.json", SNAP_2014, {"text": ("body",)}, r"no field 'body'; its fields are: reviewerID \(A1\), reviewText"),
        ("a.json", SNAP_2014, {"rating": "stars"}, "has no field 'stars'"),
        ("a.json", IMDB, {}, r"the rating or label \(stars or label\); name it by --rating-field or"),
        ("a.json", json_lines({"text": "a", "x": 1}), {}, r"is the rating or label; .*text \(a\), x \(1\)"),
        ("a.json", json_lines({"body": "a", "rating": 1}), {}, "is the text; name it by --text-field"),
        ("a.json", json_lines({"text": "a", "review": "b", "rating": 1}), {}, "which field of .* is the text"),
        ("a.csv", b"fine,5,7\nbad,2,3\n", {}, r"the columns .* give their numbers.*1 \(fine\), 2 \(5\)"),
        ("a.csv", b"5,4,fine\n2,3,bad\n", {}, "the columns of .* are not clear"),
        ("a.csv", b"1,Fine,a lamp\n1,Bad,broke\n", {}, "column 1 of .* only '1' was seen"),
        ("a.csv", b"5,fine\n2,bad\n", {"rating": "3"}, "has no column '3'"),
        ("a.csv", b"x,\x1b[2Jtext\n5,\x07a\n", {"text": ("text",)}, r"its fields are: x \(5\), \?\[2Jtext \(\?a\)"),
        ("a.csv", b"rating,text,text\n5,a,b\n", {}, "two columns of .* are named 'text'"),
        ("a.txt", FASTTEXT, {"label": "x"}, "has no fields: it is read as fasttext"),
        # Labels.
        ("a.json", labels("good", "bad", "bad"), {}, r"are 'bad' \(2\), 'good' \(1\), .* by --positive-label VALUE"),
        ("a.json", labels(0, 1, 2), {}, "--positive-label"),
        ("a.json", labels(True, False), {}, "'true'"),
        ("a.json", SNAP_2014, {"positive_label": "5"}, "--positive-label goes with labels, but .* ratings .overall."),
    ],
)
def test_unclear_input_is_refused(
    tmp_path: Path, name: str, content: bytes, options: dict[str, object], wrong: str
) -> None:
    with pytest.raises(DataError, match=wrong):
        understood(tmp_path, name, content, **options)


@pytest.mark.parametrize(
    "values",
    [
        *(("0", "1"), (1, 2), (1.0, 0.0), ("neg", "pos"), (" neg", "pos "), ("__label__0", "__label__1")),
        *(("1",), ("0", "1", *["1"] * 40, "?"), (0, [1])),
    ],
)
def test_known_pairs_of_labels_need_no_explanation(tmp_path: Path, values: tuple[object, ...]) -> None:
    assert understood(tmp_path, "a.json", labels(*values)).labelled
