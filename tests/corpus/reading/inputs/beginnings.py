"""Creates the contents of review files from tables, and shows the results of their inspection."""

import random
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from common.errors import DataError
from corpus.reading.formats import Format
from corpus.reading.inputs.inspection import InputInspection, inspect_inputs
from corpus.reading.sources import Inputs, ReadingOptions
from tests.corpus.reading.cuts import PACKERS
from tests.reviews import snap_lines

TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("inspected.yaml").read_text())
CONTENTS: dict[str, str] = {**TABLE["contents"], "noise": random.Random(5).randbytes(1_500).hex()}
SNAP_2014 = snap_lines(("a fine lamp", 5.0), ("broke at once", 1.0))


def written(folder: Path, name: str, content: bytes) -> str:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return str(folder / name)


def inspected(folder: Path, name: str, content: bytes, **options: object) -> InputInspection:
    return inspect_inputs(Inputs(files=(written(folder, name, content),), options=ReadingOptions(**options)))


def tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace lists by tuples, as the fields of dataclasses require."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def content_of(written: Any) -> bytes:
    """Return the bytes of a file's content that a table describes.

    A content is a name in the table, a text with one byte for each character, or a list of contents. Options repeat a
    content, replace `#` by the number of the repetition, compress the content, and cut off its last bytes.
    """
    if isinstance(written, str):
        return CONTENTS.get(written, written).encode("latin-1")
    if isinstance(written, list):
        return b"".join(content_of(part) for part in written)
    content = content_of(written["of"])
    if "numbered" in written:
        content = b"".join(content.replace(b"#", b"%d" % number) for number in range(written["numbered"]))
    packed = PACKERS[written.get("packed", "")](content * written.get("times", 1))
    return packed[: len(packed) - written.get("cut", 0)]


def shown_format(form: Format) -> str:
    """Return a string with the fields of a format that do not have their default values."""
    values = {name: ",".join(value) if isinstance(value, tuple) else value for name, value in asdict(form).items()}
    return "; ".join(f"{name} {value!s}" for name, value in values.items() if value)


def approximate(number: int) -> int:
    """Round a large number to two digits, because it is an estimate."""
    return number if number < 1_000 else int(float(f"{number:.2g}"))


def page(folder: Path, asked: Mapping[str, Any], options: Mapping[str, Any], messages) -> dict[str, Any]:
    """Return the result of inspecting files below a folder, and check the warnings, or the message of the error."""
    try:
        addresses = {
            name: tuple(each if name == "exclude" else f"{folder}/{each}" for each in names)
            for name, names in asked.items()
        }
        found = inspect_inputs(Inputs(**addresses, options=ReadingOptions(**tuples(options))))
    except DataError as error:
        messages.check(error)
        return {"refused": True}
    for note in found.warnings:
        messages.check(note)
    sample = found.sample
    shown = {
        "formats": {source.address.removeprefix(f"{folder}/"): shown_format(source.format) for source in found.sources},
        "codes": [source.code for source in found.sources if source.code is not None],
        "labelled": found.labelled,
        "classes": list(found.classes),
        "size": f"{approximate(found.rows)} rows of {approximate(found.plain_bytes)} bytes",
        "values": {name: approximate(count) for name, count in sample.values.items()},
        "malformed": {reason: approximate(count) for reason, count in sample.tally.malformed_by_reason.items()},
        "malformed_lines": [
            f"{each.reason} in line {each.line}: {each.begins}" for each in sample.tally.malformed_lines()
        ],
        "example": f"{sample.example_value}: {sample.example}",
        "words": [round(sample.words(rule), 2) for rule in ("letters", "tokens")],
    }
    return {name: value for name, value in shown.items() if value not in ([], {}, False)}
