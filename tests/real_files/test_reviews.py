"""Common forms of review files, with invented content, give the listed rows, or are refused.

If a refusal shows a command that converts the file, the test runs the command, and the new file gives the listed rows.
"""

import io
import re
import shutil
import subprocess
import sys
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import yaml
from pyarrow import parquet

from common.errors import DataError
from corpus.reading.acceptance import check_input, check_negative_labels, label_notes
from corpus.reading.encodings import check_encoding_of_malformed
from corpus.reading.formats import LABELS
from corpus.reading.inputs.fields import reading_settings
from corpus.reading.inputs.inspection import inspect_inputs
from corpus.reading.lines import check_line_ends
from corpus.reading.ranges import cut_into_tasks
from corpus.reading.sources import Inputs, ReadingOptions
from corpus.reading.tally import other_labels
from tests.corpus.reading.cuts import PACKERS, read
from tests.corpus.reading.inputs.beginnings import tuples, written

TABLE: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("reviews.yaml").read_text())
CONVERSION = re.compile(r"convert it with `([^`]+)`")


def content_of(content: Any) -> str:
    """Return the content that a row describes: a text, a list of contents, or a content with repetitions."""
    if isinstance(content, list):
        return "".join(map(content_of, content))
    return content if isinstance(content, str) else content_of(content["of"]) * content["times"]


FLAGS = {
    "kind": "--format",
    "text": "--text-field",
    "rating": "--rating-field",
    "label": "--label-field",
    "positive_label": "--positive-label",
    "classes": "--classes",
    "quoting": "--quoting",
    "separator": "--separator",
    "max_malformed": "--max-malformed",
}
COMMAND = re.compile(r"\b(?:python3|tr) .*?OLD > NEW")


def advised(folder: Path, row: dict[str, Any], refusal: str, messages) -> None:
    """Follow each advice of a refusal, and check the rows. The table must have all options and commands of the
    message."""
    commands = {each["run"] for each in row["advice"] if "run" in each}
    flags = {FLAGS[name] for each in row["advice"] for name in (*each.get("options", {}), *each) if name in FLAGS}
    if "--label-field" not in flags:  # the rating is the alternative that fits
        refusal = refusal.replace(" or --label-field", "")
    assert set(re.findall(r"--[a-z]+(?:-[a-z]+)*", COMMAND.sub("", refusal))) == flags
    assert set(COMMAND.findall(refusal)) == commands
    for number, each in enumerate(row["advice"]):
        place = folder / str(number)
        place.mkdir()
        if "run" in each:
            (name,) = row["files"]
            line = each["run"].replace("NEW", str(place / name)).replace("OLD", str(folder / name))
            subprocess.run(line.replace("python3", sys.executable), shell=True, check=True)
        else:
            for name in row["files"]:
                shutil.copy(folder / name, place)
        options = {**row.get("options", {}), **each.get("options", {})}
        found = {"use": row.get("use", "files"), "advice": [], "found": each, **each, "files": {}, "options": options}
        assert found_in(place, found, messages) == {name: each[name] for name in ("rows", "malformed") if name in each}


def bytes_of(content: Any, encoding: str) -> bytes:
    """Return the bytes of a file: a Parquet table with the given columns, or the content that `content_of` returns."""
    if isinstance(content, dict) and "parquet" in content:
        parquet.write_table(pyarrow.table(content["parquet"]), table := io.BytesIO())
        return table.getvalue()
    return content_of(content).encode(encoding)


def found_in(folder: Path, row: dict[str, Any], messages) -> dict[str, Any]:
    """Return the rows and malformed lines, and check the warnings, or the message that refuses the files."""
    for name, content in row["files"].items():
        pack = PACKERS[Path(name).suffix if Path(name).suffix in PACKERS else ""]
        written(folder, name, pack(bytes_of(content, row.get("encoding", "utf-8"))))
    try:
        return rows_of(folder, row, messages)
    except DataError as error:
        messages.check(error)
        if "advice" in row:
            advised(folder, row, str(error), messages)
        command = CONVERSION.search(str(error))
        if command is None or "converted" not in row["found"]:
            return {"refused": True}
        for path in folder.iterdir():
            converted = subprocess.run(command[1].split(), input=path.read_bytes(), capture_output=True, check=True)
            path.write_bytes(converted.stdout)
        return {"refused": True, "converted": rows_of(folder, row, messages)["rows"]}


def rows_of(folder: Path, row: dict[str, Any], messages) -> dict[str, Any]:
    """Return the rows and malformed lines, and check the warnings. Raises DataError for refused files."""
    use = row.get("use", "files")
    options = ReadingOptions(**tuples(row.get("options", {})))
    inspected = inspect_inputs(Inputs(**{use: (str(folder),)}, options=options))
    settings = inspected.settings(reading_settings(inspected.labelled, options))
    reviews, tally = read([part for task in cut_into_tasks(inspected.sources, 1) for part in task], settings)
    check_encoding_of_malformed(tally)
    check_line_ends(tally)
    check_negative_labels(tally, 0.05, settings, "")
    if "advice" in row:
        check_input(tally, row.get("max_malformed", 0.05), settings, dry_run=True)
    for note in (*inspected.warnings, *label_notes(other_labels(tally.counts), settings)):
        messages.check(note)
    usual = inspected.labelled and not options.classes and options.positive_label is None and use == "files"
    shown = {
        "rows": [[text, LABELS[code] if usual else code] for text, code in sorted(reviews)],
        "malformed": [f"{each.reason} in line {each.line}" for each in tally.malformed_lines()],
        "damaged": [each.replace(f"{folder}/", "") for each in tally.damage_reports()],
    }
    if len(reviews) > 9:
        expected = row["found"].get("rows", row["found"].get("converted"))
        shown["rows"] = {text: sum(text == each for each, _ in reviews) for text in expected}
        shown["others"] = len(reviews) - sum(shown["rows"].values())
    if tally.counts["malformed"] != len(shown["malformed"]):
        shown["malformed"] = tally.counts["malformed"]
    return {name: value for name, value in shown.items() if value}


@pytest.mark.parametrize("row", TABLE, ids=itemgetter("case"))
def test_review_files_give_the_expected_rows(tmp_path: Path, row: dict[str, Any], messages) -> None:
    assert found_in(tmp_path, row, messages) == row["found"]
