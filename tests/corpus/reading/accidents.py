"""Lines of every format that people have, and the accidents that happen to lines: what `test_fuzz.py` reads."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from corpus.dataset_settings import Settings
from corpus.reading.formats import MAX_LINE_BYTES, Format
from tests import oracle

# Deeper than any parser allows: malformed for all.
NEVER_NESTED = 5_000

TEXTS = (
    "Works great, don't you think? It's a \\\"must\\\" have",
    "caf\u00e9 &amp; bar isn&#39;t \u2019twas rock &#x27;n&apos; roll &lt;br /&gt; \\u2019 \\ud83d\\ude00 \U0001f600",
    "''quoted'' 'tis o'clock' ''' supercalifragilistic antidisestablishmentarianism x" + "y" * 70,
    "\u0130stanbul \u212aelvin \u017ftop stra\u00dfe \u03a3\u03a3 THE the ThE product would get",
    "",
    "\u0007@a[b`c{d\u0007'e",
    "1 2 3 ... !!! \\n\\t line\\\\nbreak",
)


def listed(text: str) -> tuple[str, ...]:
    """What a text names, with one space between."""
    return tuple(text.split(" "))


RATINGS = listed(r'1 5.0 "3" 4e0 5 "\t2" 4.0 50E-1 3.0000000000000000000001 2 1.0 0 6 2.5 true null "5x" -0')
LABEL_VALUES = listed(
    '0 1 "1" "pos" "neg" 2 1.0 "__label__1" "__label__2" "negative" "positive" true null "" [1] 1e300'
)
LETTERS = listed(
    "\u0085 \u00a0 \u2028 \u2019 \u0130 \u212a \u017f \ufb01 \u1e9e e\u0301 \U0010ffff "
    "\x00 \r \n \r\n \t \x0b \x0c \x1c \x7f \ufeff "
    r"\ud800 \udc00\ud800 \ud83d\ude00 \u0000 \u2019 \u \ \\ \" \/ \x \n "
    "&#39; &amp;#39; &amp;amp; &#x27; &apos &lt &#0; &#1114112; &#xD800; &#128; &rsquo; & &;"
)
SYNTAX = listed(
    '" "" """ "," , : { } [ ] {} [] $LABEL$ __label__2 __label__ '
    "' ''' NaN Infinity -Infinity 1e999 -1e999 1e-999 0x10 01 +1 .5 5. null true "
    '"reviewText":"again" "overall":1 ,"overall":5 "label":0 "text": "overall":"4"'
)
NESTED = ("[" * 100 + "]" * 100, '{"a":' * 90 + "1" + "}" * 90, "[" * NEVER_NESTED + "]" * NEVER_NESTED)
WORDS = tuple(letter * length for letter, length in zip("abcdefg", (7, 8, 9, 15, 16, 17, 300), strict=True))
NO_UTF8 = (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80", b"\x85")
OTHERS = ("9" * 400, "1" * 20, " ", "  \t\r", "x'" * 50)
TOKENS = (*NO_UTF8, *(token.encode() for token in (*LETTERS, *SYNTAX, *NESTED, *WORDS, *OTHERS)))


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A format as readers and the oracle know it, and lines to begin with."""

    form: Format
    file: oracle.File
    settings: Settings
    lines: Callable[[random.Random], bytes]
    first: bytes = b""
    code: int | None = None


def json_line(fields: tuple[str, ...], value: str, values: tuple[str, ...]) -> Callable[[random.Random], bytes]:
    def line(chance: random.Random) -> bytes:
        said = [f'"{field}": "{chance.choice(TEXTS)}"' for field in fields]
        said += [f'"{value}": {chance.choice(values)}', f'"other": {{"n": [1, -2.5e3, "{chance.choice(TEXTS)}"]}}']
        chance.shuffle(said)
        return ("{" + ", ".join(said) + "}").encode()

    return line


def columns_line(
    separator: str, order: str, values: tuple[str, ...], quote: str = ""
) -> Callable[[random.Random], bytes]:
    """`order` says what each column is: t a text, v the rating or label, o another."""

    def column(chance: random.Random, kind: str) -> str:
        held = chance.choice(values if kind == "v" else TEXTS)
        return f"{quote}{held}{quote}" if quote and chance.random() < 0.7 else held

    return lambda chance: separator.join(column(chance, kind) for kind in order).encode()


def kind(
    form: Format,
    lines: Callable[[random.Random], bytes],
    *,
    first: bytes = b"",
    label: int | None = None,
    **said: object,
) -> Kind:
    settings = Settings(**said)  # type: ignore[arg-type]
    shown = {name: getattr(form, name) for name in ("kind", "text", "value", "header", "separator")}
    file = oracle.File(b"", **shown, label=None if label is None else str(label))
    return Kind(form=form, file=file, settings=settings, lines=lines, first=first, code=label)


def columns(kind: str, separator: str, *, text: str, value: str, header: str = "") -> Format:
    names = tuple(header.split(",")) if header else ()
    return Format(
        kind=kind, text=tuple(text.split(",")), value=value, separator=separator, header=bool(header), columns=names
    )


SNAP = Format(kind="json", text=("reviewText",), value="overall")
KINDS = {
    "snap": kind(SNAP, json_line(("reviewText",), "overall", RATINGS)),
    "half stars": kind(
        SNAP,
        json_line(("reviewText",), "overall", (*RATINGS, "3.5", '"4.5/5"', '"4 / 5"', '"8/10"', "0.5", '"/5"')),
        rating_steps=2,
        rating_range=(1, 10),
        rating_fraction=True,
        positive_from=7,
    ),
    "title and text": kind(
        Format(kind="json", text=("title", "text"), value="rating"), json_line(("title", "text"), "rating", RATINGS)
    ),
    "labels": kind(
        Format(kind="json", text=("text",), value="label"), json_line(("text",), "label", LABEL_VALUES), labelled=True
    ),
    "a positive label": kind(
        Format(kind="json", text=("text",), value="label"),
        json_line(("text",), "label", (*LABEL_VALUES, '"good"')),
        labelled=True,
        positive_label="good",
    ),
    "tsv": kind(
        columns("separated", "\t", text="body", value="stars", header="stars,body,more"),
        columns_line("\t", "vto", ("1", "5", "3.0", "9", "")),
        first=b"stars\tbody\tmore\r\n",
    ),
    "separated": kind(
        columns("separated", "$LABEL$", text="1", value="2"),
        columns_line("$LABEL$", "tv", ("0", "1", "x")),
        labelled=True,
    ),
    "csv": kind(
        columns("csv", ",", text="2,3", value="1"), columns_line(",", "vtt", ("1", "2", "3"), '"'), labelled=True
    ),
    "csv with a header": kind(
        columns("csv", ";", text="text", value="rating", header="text,rating"),
        columns_line(";", "tv", ("1", "5", "4.0", "x"), '"'),
        first=b"text;rating\n",
    ),
    "fasttext": kind(
        Format(kind="fasttext"), columns_line(" ", "vt", ("__label__1", "__label__2", "__label__", "")), labelled=True
    ),
    "text": kind(Format(kind="text"), columns_line("", "t", ("",)), labelled=True, label=1),
}


def mutated(chance: random.Random, line: bytes, other: bytes) -> bytes:
    """The line after some accidents."""
    for _ in range(chance.choice((0, 0, 1, 1, 1, 2, 5))):
        at = chance.randrange(len(line) + 1)
        accident = chance.random()
        if accident < 0.35:
            line = line[:at] + chance.choice(TOKENS) + line[at:]
        elif accident < 0.55 and at < len(line):
            line = line[:at] + bytes([line[at] ^ 1 << chance.randrange(8)]) + line[at + 1 :]
        elif accident < 0.7:
            line = line[:at] + line[at + chance.randrange(12) :]
        elif accident < 0.8:
            line = line[:at] + other[chance.randrange(len(other) + 1) :]
        elif accident < 0.9:
            line = line[:at] + bytes(chance.randrange(256) for _ in range(chance.randrange(5))) + line[at:]
        elif accident < 0.95:
            line = line[:at] + line[max(at - chance.randrange(30), 0) : at] + line[at:]
        else:
            line = line[:at]
    return line


def content_of(kind: Kind, chance: random.Random, lines: int) -> bytes:
    """So many mutated lines, more or less, as a file."""
    made = [kind.lines(chance) for _ in range(lines)]
    broken = [mutated(chance, line, made[chance.randrange(lines)]) for line in made]
    mark = b"\xef\xbb\xbf" if chance.random() < 0.2 else b""
    if kind.form.kind != "csv" and chance.random() < 0.02:  # the oracle takes a second for such a record of csv
        broken[chance.randrange(lines)] += b" " * (MAX_LINE_BYTES - chance.randrange(600))
    return mark + kind.first + b"\n".join(broken) + (b"\n" if chance.random() < 0.5 else b"")
