"""`shoal report DIR...`: a page of runs that have ended, are in progress or were cut off, and of datasets."""

import json
import re
from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest

from bootstrap.cli.main import main
from common.errors import ExperimentError
from corpus.dataset import RowBlock, open_dataset, write_dataset
from corpus.dataset_settings import Settings
from experiments.report import drawing
from experiments.report.writing import report
from tests.bootstrap.cli.command import shoal_here
from tests.experiments import made_records as records
from tests.experiments.report import examples
from tests.experiments.report.outline import Outline, page_of

pytestmark = pytest.mark.usefixtures("sketched")


def test_a_folder_gives_the_runs_experiments_and_datasets_in_it(tmp_path) -> None:
    examples.training(tmp_path / "alone")
    examples.experiment(tmp_path / "compared" / "more-ranks")
    examples.dataset(tmp_path / "data")
    outline = page_of(tmp_path, tmp_path / "alone", tmp_path / "data", tmp_path / "compared")
    sections = ["The experiment more-ranks", "Learning curves", "Results"]
    assert [each for each in outline.headings if each in (*sections, "The data")] == [*sections, "The data"]
    assert sum(row[1:2] == ["finished"] for row in outline.rows) == 7


def test_arms_with_the_same_name_in_two_experiments_are_distinguished(tmp_path) -> None:
    examples.experiment(tmp_path / "one")
    examples.experiment(tmp_path / "two")
    page = report([tmp_path], now=0.0).page
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    groups = {row[0] for row in Outline(page).rows if row[1:2] and row[1].endswith("1-rank/1")}
    assert groups == {"one, 1 rank", "two, 1 rank"}


@pytest.mark.parametrize("names", [("a b", "a-b"), ("模型", "データ"), ("<x>", "&x;")])
def test_runs_with_hostile_names_have_unique_anchors(tmp_path, names) -> None:
    for name in names:
        examples.training(tmp_path / name)
    page = report([tmp_path], now=0.0).page
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'aria-labelledby="(\S*) \S*"', page)) <= set(ids)
    downloads = re.findall(r'download="([^"]*)"', page)
    assert len(downloads) == len(set(downloads))


def test_a_plot_that_fails_leaves_its_table(tmp_path, monkeypatch) -> None:
    rows = page_of(examples.training(tmp_path / "one")).rows
    monkeypatch.setattr(drawing.vl_convert, "vegalite_to_svg", Mock(side_effect=ValueError("conversion failed")))
    page = report([tmp_path / "one"], now=0.0).page
    assert Outline(page).rows == rows
    assert "could not be drawn" in page


def test_the_share_of_ideal_uses_the_rates_in_the_summary(tmp_path) -> None:
    folder = examples.training(tmp_path / "mixed", rates=[3000.0, 1000.0])
    last = json.loads((folder / "record.jsonl").read_text().splitlines()[-1])
    summary = {name: value for name, value in last.items() if name != "share_of_ideal"}
    (folder / "summary.json").write_text(json.dumps({**summary, "own_rates": [3000.0, 2000.0]}))
    rows = page_of(folder).rows
    assert ["share of ideal", "60%"] in rows


def test_repeated_runs_are_drawn_alike(tmp_path) -> None:
    for seed in (1, 2):
        examples.training(tmp_path / f"small-{seed}", seed=seed, hidden=16)
        examples.training(tmp_path / f"large-{seed}", seed=seed, hidden=64)
    rows = page_of(tmp_path).rows
    assert {tuple(row[:2]) for row in rows if row and row[0].startswith("hidden")} == {
        ("hidden 16", "small-1"),
        ("hidden 16", "small-2"),
        ("hidden 64", "large-1"),
        ("hidden 64", "large-2"),
    }


@pytest.mark.parametrize("lines", range(1, 9))
def test_an_unfinished_run_has_a_page_at_every_moment(tmp_path, lines, messages) -> None:
    whole = (examples.training(tmp_path / "whole") / "record.jsonl").read_text().splitlines()
    cut = [*whole[:lines], whole[lines][:20]]
    found = report([records.write(tmp_path / "cut", *cut)], now=0.0)
    assert found.summary["state"] == "unfinished"
    (warning,) = found.warnings
    messages.check(warning)


def test_a_dataset_has_histograms_and_the_number_of_its_runs(tmp_path) -> None:
    rows = RowBlock(*(np.ones(shape, kind) for shape, kind in (((4, 3), "u2"), (4, "u2"), (4, "u1"), (4, "u1"))))
    made, settings = examples.dataset(tmp_path / "made"), Settings(row_length=3, vocabulary_size=1)
    write_dataset(made / "dataset.h5", train=rows, test=rows, vocabulary=["good"], settings=settings)
    with open_dataset(made / "dataset.h5") as dataset:
        digest = dataset.digest
    learned = records.whole(tmp_path / "learned", digest=digest)
    page = report([learned, made, examples.dataset(tmp_path / "other")], now=0.0).page
    outline = Outline(page)
    assert [row[:3] for row in outline.rows if row[0] in ("made", "other") and row[2] in ("0", "1")] == [
        ["made", digest[:12], "1"],
        ["other", "not known", "0"],
    ]
    for heading in ("Texts by rating", "Texts by class", "Lengths of texts", "Most frequent words"):
        assert heading in outline.headings
        assert f"<figcaption>{heading}, other</figcaption>" in page


def test_a_single_run_shows_its_place_and_notes(tmp_path) -> None:
    folder = examples.launched(tmp_path / "one", dollars=2.0)
    launch = json.loads((folder / "launch.json").read_text())
    launch["nodes"] = [{"instance_type": "g5.xlarge", "gpus": 1}] * 2
    (folder / "launch.json").write_text(json.dumps(launch))
    lines = (folder / "record.jsonl").read_text().splitlines()
    note = {"kind": "note", "time": 103.0, "text": "rank 1\nwas slow"}
    records.write(folder, lines[0], note, *lines[1:])
    page = report([folder], now=0.0).page
    (about,) = re.findall('class="when">(.*?)<', page)
    assert "lstm" in about
    assert "2 x CPU, deployment, 2 x g5.xlarge, from 1970-01-01 00:01 UTC" in about
    assert ["one", "3.0", "rank 1 was slow"] in Outline(page).rows


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


WRONG = {
    "lengths.long": {"lengths": {"long": 3}},
    "ratings.before.1": {"ratings": {"before": {"1": 2**70}, "after": {}}},
    "texts": {"texts": -1},
}


@pytest.mark.parametrize("field", WRONG)
def test_invalid_counts_are_an_error(tmp_path, field) -> None:
    with pytest.raises(ExperimentError, match=rf"counts\.json .*\({field}"):
        report([examples.dataset(tmp_path / "counted", **WRONG[field])], now=0.0)


def test_the_first_datasets_and_the_most_frequent_classes_are_shown(tmp_path) -> None:
    many = {f"{label}": 100 + label for label in range(30)}
    for number in range(6):
        examples.dataset(tmp_path / f"{number}", labels={"before": many, "after": many})
    rows = page_of(tmp_path).rows
    assert [row[0] for row in rows if row[1:2] == ["29"]] == ["0", "1", "2", "3"]
    assert not any(row[1:2] == ["9"] for row in rows)


def test_content_of_files_is_escaped_in_the_page(tmp_path) -> None:
    folder = examples.training(tmp_path / "<script>alert(1)<", model="</script><b>x")
    page = report([folder, examples.dataset(tmp_path / "data")], now=0.0).page
    assert "<script>alert" not in page
    assert "<b>" not in page
    assert "<script" not in page
    assert "<good>" not in page


def test_the_command_writes_the_page_and_prints_its_path(tmp_path, capsys) -> None:
    folder = examples.training(tmp_path / "one")
    (folder / "report.html").write_text("<title>Shoal: an older one</title>")
    assert main(["report", str(folder)]) == 0
    assert str(folder / "report.html") in capsys.readouterr().out
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert sorted(each.name for each in folder.iterdir()) == ["record.jsonl", "report.html"]


def test_runs_on_different_data_cause_a_warning(tmp_path, capsys) -> None:
    records.whole(tmp_path / "one", digest="a" * 32)
    records.whole(tmp_path / "two", digest="b" * 32)
    assert main(["report", str(tmp_path)]) == 0
    assert "different data" in " ".join(capsys.readouterr().out.split())


def test_damaged_counts_and_an_unwritable_output_are_error_messages(tmp_path, capsys, monkeypatch, messages) -> None:
    monkeypatch.chdir(tmp_path)
    records.whole(tmp_path / "one")
    examples.dataset(tmp_path / "counted", ratings={"before": 3, "after": {}})
    for arguments in (["counted"], ["one", "--output", "none/page.html"]):
        assert main(["report", *arguments]) != 0
        messages.check(" ".join(capsys.readouterr().err.split()))


def test_json_has_the_figures_of_each_run_as_numbers(tmp_path, capsys) -> None:
    folder = examples.launched(tmp_path / "paid", dollars=2.0)
    assert main(["report", str(folder), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["folder"], run["state"], run["dollars"]) == (str(folder), "finished", 2.0)
    assert 0 < run["measures"]["accuracy"] < 1


def test_a_report_replaces_only_reports_and_its_name_ends_in_html(tmp_path, messages):
    examples.training(tmp_path / "run")
    report_to = partial(shoal_here, "report", tmp_path / "run", "--output")
    for _ in range(2):
        assert json.loads(report_to(tmp_path / "page", "--json").stdout)["report"] == f"{tmp_path}/page.html"
    mine = tmp_path / "mine.html"
    mine.write_text("mine")
    messages.check(report_to(mine).stderr.rstrip())
    assert mine.read_text() == "mine"
    assert report_to(mine, "--force").returncode == 0
