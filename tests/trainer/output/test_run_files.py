"""Output folder: protection from a new run, and atomic writes."""

from pathlib import Path

import pytest

from common.errors import TrainingError
from trainer.output import run_files
from trainer.output.run_files import (
    finished_summary,
    locked_output,
    prepare_output,
    replaced_folder,
    require_free_output,
    was_stopped,
    write_whole,
)

ENDED, STOPPED = '{"kind": "end", "stopped": false}', '{"kind": "end", "stopped": true}'


def test_two_runs_do_not_write_to_one_folder(tmp_path, monkeypatch, messages):
    monkeypatch.setattr(run_files, "END_SECONDS", -1)
    with locked_output(tmp_path), messages.raises(TrainingError), locked_output(tmp_path):
        pass
    with locked_output(tmp_path):
        pass


def test_a_summary_says_that_a_run_has_ended(tmp_path, messages):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-000000001.pt").write_text("")
    for summary in (None, "[" * 100_000, STOPPED):
        if summary:
            (tmp_path / "summary.json").write_text(summary)
        with messages.raises(TrainingError):
            require_free_output(tmp_path, force=True)
    (tmp_path / "summary.json").write_text(ENDED)
    require_free_output(tmp_path, force=True)


@pytest.mark.parametrize("file", ["checkpoints/step-000000001.pt.damaged", "model/vocabulary.txt"])
def test_an_output_without_checkpoints_and_a_complete_model_is_free(tmp_path, file):
    (tmp_path / file).parent.mkdir()
    (tmp_path / file).write_text("good\n")
    require_free_output(tmp_path, force=False)
    require_free_output(tmp_path / "missing", force=False)


def test_a_finished_model_is_replaced_only_by_force(tmp_path, messages):
    write_model_mark(tmp_path)
    with messages.raises(TrainingError):
        require_free_output(tmp_path, force=False)
    require_free_output(tmp_path, force=True)


@pytest.mark.parametrize("other", ["record.jsonl", "model", "a\nb"])
def test_a_folder_that_is_not_a_model_is_never_replaced(tmp_path, other, messages):
    write_model_mark(tmp_path)
    (tmp_path / "model" / other).write_text("mine")
    for writes in (lambda: require_free_output(tmp_path, force=True), lambda: fill_folder(tmp_path / "model")):
        with messages.raises(TrainingError):
            writes()
    assert (tmp_path / "model" / other).read_text() == "mine"


def write_model_mark(output: Path) -> None:
    (output / "model").mkdir()
    (output / "model" / "config.json").write_text("old")


def fill_folder(path: Path) -> None:
    with replaced_folder(path) as folder:
        (folder / "config.json").write_text("new")


def fill_partly(path: Path, error: type[BaseException]) -> None:
    with replaced_folder(path) as folder:
        (folder / "config.json").write_text("half")
        raise error


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failed_write_keeps_the_old_folder(tmp_path, error):
    write_model_mark(tmp_path)
    with pytest.raises(error):
        fill_partly(tmp_path / "model", error)
    assert names(tmp_path) == ["model"]
    assert (tmp_path / "model" / "config.json").read_text() == "old"


def test_a_writer_killed_between_two_renames_loses_nothing(tmp_path):
    write_model_mark(tmp_path)
    (tmp_path / "model").rename(tmp_path / ".model.old")
    (tmp_path / ".model.partial").mkdir()
    with pytest.raises(KeyboardInterrupt):
        fill_partly(tmp_path / "model", KeyboardInterrupt)
    assert (tmp_path / "model" / "config.json").read_text() == "old"
    fill_folder(tmp_path / "model")
    assert names(tmp_path) == ["model"]
    assert (tmp_path / "model" / "config.json").read_text() == "new"


def test_a_link_in_place_of_a_model_is_not_followed(tmp_path, messages):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "config.json").write_text("kept")
    (tmp_path / ".model.partial").symlink_to(precious)
    fill_folder(tmp_path / "model")
    (tmp_path / "linked").symlink_to(precious)
    with messages.raises(TrainingError):
        fill_folder(tmp_path / "linked")
    assert (precious / "config.json").read_text() == "kept"


@pytest.mark.parametrize("summary", [None, STOPPED, "[]", "{", "{}", "\udcff"])
def test_only_a_run_that_came_to_its_end_is_finished(tmp_path, summary):
    (tmp_path / "summary.json").write_text(ENDED)
    assert finished_summary(tmp_path) is None  # its model is missing
    write_model_mark(tmp_path)
    assert finished_summary(tmp_path) == {"kind": "end", "stopped": False}
    (tmp_path / "summary.json").unlink()
    if summary is not None:
        (tmp_path / "summary.json").write_text(summary, "utf-8", "surrogateescape")
    assert finished_summary(tmp_path) is None


@pytest.mark.parametrize("planted", [".probe", ".summary.json.partial"])
def test_a_planted_link_is_not_followed(tmp_path, planted):
    output, precious = tmp_path / "out", tmp_path / "precious"
    output.mkdir()
    precious.write_text("kept")
    (output / planted).symlink_to(precious)
    prepare_output(output)
    write_whole(output / "summary.json", b"new")
    assert precious.read_text() == "kept"
    assert (output / "summary.json").read_bytes() == b"new"
    assert not (output / "summary.json").is_symlink()


def test_files_of_a_killed_writer_are_replaced_and_preparing_a_folder_leaves_no_file(tmp_path):
    output = tmp_path / "new" / "one"
    prepare_output(output)
    assert names(output) == []
    (output / ".summary.json.partial").write_text("half of a long summary")
    write_whole(output / "summary.json", b"{}")
    assert [(path.name, path.read_text()) for path in output.iterdir()] == [("summary.json", "{}")]


@pytest.mark.parametrize(("summary", "stopped"), [(STOPPED, True), (ENDED, False), ("[1]", False), (None, False)])
def test_the_model_of_a_stopped_run_may_be_replaced(tmp_path, summary, stopped):
    if summary:
        (tmp_path / "summary.json").write_text(summary)
    assert was_stopped(tmp_path) is stopped
