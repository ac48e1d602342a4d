"""Search as users start it: the chosen settings are trained as if given, and a stopped search restarts."""

import itertools
import json
from math import exp
from types import SimpleNamespace

import pytest

from tests.trainer.runs import finish, lines, notes, stop, summary, train_here, wait_for_lines, weights
from trainer.options.section import shown_options
from trainer.output import checkpoint
from trainer.search import search
from trainer.search.search import Search
from trainer.search.trials import Trial
from trainer.task import TRAINING, BlockScore

QUICK = ("--buckets", "500", "--threads", "1", "--epochs", "2")
LSTM = ("--hidden", "4")
SEARCH = ("-m", "trainer", "--model", "auto", *QUICK, *LSTM)


def test_chosen_settings_are_trained_as_if_given(texts, tmp_path, monkeypatch):
    trials_made = itertools.count()
    monkeypatch.setattr(search, "time", SimpleNamespace(monotonic=lambda: 0.001 * next(trials_made)))
    found, given = tmp_path / "found", tmp_path / "given"
    found_summary = train_here(found, "--model", "auto", *QUICK, *LSTM, "--data", texts, "--minutes", "0.001")
    trials, record = lines(found, "trial"), (found / "record.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["kind"] for line in record]
    assert kinds[: len(trials) + 2] == ["search", *["trial"] * len(trials), "start"]
    names = ("settings", "measures", "folds", "seconds")
    assert found_summary["search"]["trials"] == [{name: line[name] for name in names} for line in trials]
    assert found_summary["search"]["settings"] == [line["settings"] for line in trials if line["best"]][-1]
    assert found_summary["search"]["verdict"] in notes(found)
    assert found_summary["search"]["verdict"].endswith("no time for more trials")
    assert found_summary["times"]["search"] > 0
    assert sum(found_summary["times"].values()) == pytest.approx(found_summary["wall"])
    chosen = shown_options(found_summary["search"]["settings"]).split()
    accuracy = train_here(given, *QUICK, *chosen, "--data", texts)["accuracy"]
    assert all(weights(found)[name].equal(each) for name, each in weights(given).items())
    assert accuracy == found_summary["accuracy"] > found_summary["majority"] + 0.1
    newest, _ = checkpoint.newest(found / "checkpoints")
    measured = [line["measures"]["log_temperature"] for line in trials if line["best"]][-1]
    assert newest[1]["config"]["temperature"] == pytest.approx(exp(measured))


@pytest.mark.parametrize(("now", "ends"), [(969.0, False), (971.0, True)])
def test_the_search_leaves_time_for_a_final_training_on_all_rows(monkeypatch, now, ends):
    monkeypatch.setattr(search, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(Search, "_next_settings", lambda _: {})
    best = Trial(settings={}, folds=[[BlockScore(0.8, 0.5, 0.4, 0.0)]] * 2, seconds=40.0)  # 20 seconds for each fold
    data, fold = (SimpleNamespace(sizes={TRAINING: rows}) for rows in (300, 200))
    own = Search.__new__(Search)
    vars(own).update(_data=data, _folds=[fold] * 2, _trials=[best], _until=1000.0)
    assert (own._next() is None) is ends


@pytest.mark.soak
def test_a_stopped_search_leaves_no_model_and_restarts(launch, texts, tmp_path):
    command = (*SEARCH, "--data", texts, "--output", tmp_path)
    process = launch(0, *command)
    wait_for_lines(process, tmp_path, "trial")
    stop(process)
    stopped = summary(tmp_path)
    assert (stopped["stopped"], stopped["accuracy"]) == (True, None)
    assert (stopped["share_of_ideal"], stopped["balanced"], stopped["lost"]) == (None, None, None)
    assert len(stopped["search"]["trials"]) >= 1
    assert not (tmp_path / "model").exists()
    finish(launch(0, *command, "--minutes", "0.05", "--resume"))
    found_summary = summary(tmp_path)
    trials = len(found_summary["search"]["trials"])
    assert [line["trial"] for line in lines(tmp_path, "trial")] == [*range(1, 1 + trials)]
    assert (tmp_path / "model" / "config.json").exists()
