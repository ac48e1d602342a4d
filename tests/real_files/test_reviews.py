"""Common forms of review files, with invented content, give the listed rows, or are refused."""

import re
import subprocess
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.errors import DataError
from corpus.reading.acceptance import check_negative_labels, label_notes
from corpus.reading.formats import LABELS
from corpus.reading.inputs.fields import reading_settings
from corpus.reading.inputs.inspection import inspect_inputs
from corpus.reading.ranges import cut_into_tasks
from corpus.reading.sources import Inputs, ReadingOptions
from corpus.reading.tally import other_labels
from tests.corpus.reading.cuts import read
from tests.corpus.reading.inputs.beginnings import tuples, written

TABLE: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("reviews.yaml").read_text())


def content_of(content: Any) -> str:
    """Return the content that a row describes: a text, a list of contents, or a content with repetitions."""
    if isinstance(content, list):
        return "".join(map(content_of, content))
    return content if isinstance(content, str) else content_of(content["of"]) * content["times"]


def found_in(folder: Path, row: dict[str, Any], messages) -> dict[str, Any]:
    """Return the rows and malformed lines, and check the warnings, or the message that refuses the files."""
    use = row.get("use", "files")
    for name, content in row["files"].items():
        written(folder, name, content_of(content).encode(row.get("encoding", "utf-8")))
    options = ReadingOptions(**tuples(row.get("options", {})))
    try:
        inspected = inspect_inputs(Inputs(**{use: (str(folder),)}, options=options))
        settings = inspected.settings(reading_settings(inspected.labelled, options))
        reviews, tally = read([part for task in cut_into_tasks(inspected.sources, 1) for part in task], settings)
        check_negative_labels(tally, 0.05, settings, "")
    except DataError as error:
        messages.check(error)
        return {"refused": True}
    for note in (
        *inspected.warnings_for(row.get("words", "tokens")),
        *label_notes(other_labels(tally.counts), settings),
    ):
        messages.check(note)
    usual = inspected.labelled and not options.classes and options.positive_label is None and use == "files"
    shown = {
        "rows": [[text, LABELS[code] if usual else code] for text, code in sorted(reviews)],
        "malformed": [f"{each.reason} in line {each.line}" for each in tally.malformed_lines()],
        "damaged": [each.replace(f"{folder}/", "") for each in tally.damage_reports()],
    }
    if len(reviews) > 9:
        shown["rows"] = {text: sum(text == each for each, _ in reviews) for text in row["found"]["rows"]}
        shown["others"] = len(reviews) - sum(shown["rows"].values())
    if tally.counts["malformed"] != len(shown["malformed"]):
        shown["malformed"] = tally.counts["malformed"]
    return {name: value for name, value in shown.items() if value}


@pytest.mark.parametrize("row", TABLE, ids=itemgetter("case"))
def test_review_files_give_the_expected_rows(tmp_path: Path, row: dict[str, Any], messages) -> None:
    assert found_in(tmp_path, row, messages) == row["found"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        '{"text":{"0":"good","1":"bad"},"rating":{"0":5,"1":1}}',
        '{"columns":["text","rating"],"index":[0,1],"data":[["good",5],["bad",1]]}',
        '{"0":{"text":"good","rating":5},"1":{"text":"bad","rating":1}}',
        '{"reviews": [{"text": "good", "rating": 5}, {"text": "bad", "rating": 1}], "replies": [{"text": "thanks"}]}',
    ],
    ids=["columns", "split", "index", "two lists"],
)
def test_the_command_of_a_refusal_makes_a_file_that_is_read(tmp_path: Path, content: str) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "OLD").write_text(content)
    with pytest.raises(DataError) as caught:
        inspect_inputs(Inputs(files=(str(tmp_path / "OLD"),)))
    command = re.search("python3 -c .*", str(caught.value))
    assert command
    subprocess.run(command[0], shell=True, check=True, cwd=tmp_path)
    assert inspect_inputs(Inputs(files=(str(tmp_path / "NEW"),))).rows == 2
