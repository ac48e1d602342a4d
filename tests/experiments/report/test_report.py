"""`shoal report DIR...`: a table and a page of runs that have ended, are in progress or were cut off."""

import json
import re
from pathlib import Path

import pytest

from shoal.cli.main import main
from tests.experiments import made_records as records
from tests.experiments.report import examples
from tests.experiments.report.outline import Outline, html_of, page_of

pytestmark = pytest.mark.usefixtures("sketched")


@pytest.mark.parametrize("names", [("a b", "a-b"), ("模型", "データ"), ("<x>", "&x;")])
def test_runs_with_hostile_names_have_unique_anchors(tmp_path, names) -> None:
    for name in names:
        examples.training(tmp_path / name)
    page = html_of(tmp_path)
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'aria-labelledby="(\S*) \S*"', page)) <= set(ids)
    downloads = re.findall(r'download="([^"]*)"', page)
    assert len(downloads) == len(set(downloads))


def test_repeated_runs_are_drawn_alike(tmp_path) -> None:
    rows = page_of(examples.experiment(tmp_path)).rows
    drawn = {tuple(row[:2]) for row in rows if row and row[0] in ("1-rank", "2-ranks")}
    assert drawn >= {(name, f"{name}/{repeat}") for name in ("1-rank", "2-ranks") for repeat in (1, 2)}


@pytest.mark.parametrize("lines", range(1, 9))
def test_an_unfinished_run_has_a_page_at_every_moment(tmp_path, lines) -> None:
    whole = (examples.training(tmp_path / "whole") / "record.jsonl").read_text().splitlines()
    page = html_of(records.write(tmp_path / "cut", *whole[:lines], whole[lines][:20]))
    assert ["state", "unfinished"] in Outline(page).rows
    assert "cut: skipped 1 line of the record" in page


def test_a_single_run_shows_its_place(tmp_path) -> None:
    folder = examples.launched(tmp_path / "one", dollars=2.0)
    launch = json.loads((folder / "launch.json").read_text())
    launch["nodes"] = [{"instance_type": "g5.xlarge", "gpus": 1}] * 2
    (folder / "launch.json").write_text(json.dumps(launch))
    assert ["on", "2 x CPU, deployment, 2 x g5.xlarge"] in page_of(folder).rows


SUMMARIES = {
    '{"seconds": "many", "own_rates": 3}': "11.5",
    '{"samples_per_second": [1]}': "11.5",
    "[]": "10.0",
    "{": "10.0",
}


@pytest.mark.parametrize(("summary", "seconds"), SUMMARIES.items())
def test_fields_missing_in_a_summary_are_read_from_the_record(tmp_path, summary, seconds) -> None:
    folder = records.whole(tmp_path / "one")
    (folder / "summary.json").write_text(summary)
    assert ["training, s", seconds] in page_of(folder).rows


def test_a_matrix_of_many_classes_is_shortened_to_the_worst_confusions(tmp_path) -> None:
    names = [f"class_{number}" for number in range(30)]
    counts = [[100 * (place == other) + place * (other == 1) for other in range(30)] for place in range(30)]
    lines = [
        records.start(),
        records.step(1, 101.0),
        records.tested(102, confusion={"classes": names, "counts": counts}),
    ]
    rows = page_of(records.write(tmp_path / "one", *lines)).rows
    shown = [row for row in rows if row[0].startswith("class_")]
    assert [row[0] for row in shown] == names[:9:-1]
    assert shown[0] == ["class_29", "129", "100.0%", "77.5%", "class_1"]


def test_content_of_files_is_escaped_in_the_page(tmp_path) -> None:
    page = html_of(examples.training(tmp_path / "<script>alert(1)<", model="</script><b>x"))
    assert "<script" not in page
    assert "<b>" not in page


def test_the_command_prints_a_table_and_writes_a_page_only_on_request(tmp_path, capsys) -> None:
    folder, page = examples.training(tmp_path / "one"), tmp_path / "page.html"
    page.write_text("<title>Shoal: an older one</title>")
    assert main(["report", str(folder)]) == 0
    assert "finished" in capsys.readouterr().out
    assert [each.name for each in folder.iterdir()] == ["record.jsonl"]
    assert main(["report", str(folder), "--output", str(page)]) == 0
    assert str(page) in capsys.readouterr().out
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("output", ["mine.html", "none/page.html"])
def test_a_file_that_is_no_report_is_kept(output: str, tmp_path, capsys, monkeypatch, messages) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.html").write_text("mine")
    records.whole(tmp_path / "one")
    assert main(["report", "one", "--output", output]) == 1
    messages.check(" ".join(capsys.readouterr().err.split()))
    assert Path("mine.html").read_text() == "mine"


def test_the_command_sorts_by_a_column_the_best_first(tmp_path, capsys) -> None:
    for name, accuracy in (("a", 0.7), ("b", 0.9), ("c", 0.8)):
        records.write(tmp_path / name, records.start(), records.step(1, 101), records.tested(102, accuracy=accuracy))
    records.write(tmp_path / "d", records.start())
    assert main(["report", str(tmp_path), "--sort", "accuracy", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["runs"]] == ["b", "c", "a", "d"]
    assert main(["report", str(tmp_path), "--sort", "loss", "--json"]) == 0
