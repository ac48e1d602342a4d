"""Checkpoints: an invalid one is not used, and two are kept."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common.errors import TrainingError
from tests.trainer.runs import raising
from trainer.output import checkpoint


def state(number: int) -> dict[str, Any]:
    """Return the state after `number` steps."""
    return {
        "format": checkpoint.FORMAT,
        "config": {"seed": 0},
        "digest": "a",
        "global_batch": 1,
        "progress": {"step": number},
        "model": {"weights": torch.full((1000,), float(number))},
        "optimiser": {},
        "task": {},
    }


def steps_found(folder: Path) -> int | None:
    """Return the steps of the latest valid checkpoint."""
    found, _ = checkpoint.newest(folder)
    return found[1]["progress"]["step"] if found else None


def passed_over(folder: Path) -> list[tuple[str, str, bool]]:
    return [(each.path.name, each.why, each.whole) for each in checkpoint.newest(folder)[1]]


def test_the_last_two_are_kept(tmp_path):
    assert checkpoint.newest(tmp_path / "missing") == (None, [])
    for steps in (1, 20, 300):
        checkpoint.save(tmp_path, state(steps), steps=steps)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000020.pt", "step-000000300.pt"]


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_truncated_checkpoint_is_skipped_for_the_previous_one(tmp_path, share):
    checkpoint.save(tmp_path, state(1), steps=1)
    path = checkpoint.save(tmp_path, state(2), steps=2)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert steps_found(tmp_path) == 1
    assert passed_over(tmp_path) == [("step-000000002.pt", "is damaged", False)]


def test_a_damaged_checkpoint_of_any_size_is_not_read_into_memory(tmp_path):
    size = 16 << 20
    with (tmp_path / "step-000000001.pt").open("wb") as file:
        file.truncate(size)
    tracemalloc.start()
    try:
        assert passed_over(tmp_path) == [("step-000000001.pt", "is damaged", False)]
        assert tracemalloc.get_traced_memory()[1] < size / 2
    finally:
        tracemalloc.stop()


def test_a_folder_in_place_of_a_checkpoint_is_renamed(tmp_path):
    checkpoint.save(tmp_path, state(1), steps=1)
    (tmp_path / "step-000000010.pt").mkdir()
    assert steps_found(tmp_path) == 1
    assert passed_over(tmp_path) == [("step-000000010.pt", "is a folder", False)]
    checkpoint.set_aside(tmp_path / "step-000000010.pt")
    assert passed_over(tmp_path) == []
    assert (tmp_path / "step-000000010.pt.damaged").is_dir()


def test_a_checkpoint_of_another_program_or_version_is_skipped(tmp_path, messages):
    checkpoint.save(tmp_path, state(1), steps=1)
    checkpoint.save(tmp_path, {**state(2), "format": checkpoint.FORMAT - 1}, steps=2)
    assert steps_found(tmp_path) == 1
    ((name, why, whole),) = passed_over(tmp_path)
    assert (name, whole) == ("step-000000002.pt", True)
    messages.check(why)


def test_a_checkpoint_with_a_failed_rename_does_not_displace_others(tmp_path):
    for number in (7, 8, 9):
        (tmp_path / f"step-00000000{number}.pt").mkdir()
    for steps in (1, 2, 3):
        checkpoint.save(tmp_path, state(steps), steps=steps)
    kept = [path.name for path in tmp_path.iterdir() if path.is_file()]
    assert sorted(kept) == ["step-000000002.pt", "step-000000003.pt"]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    content: bytes = checkpoint.save(tmp_path_factory.mktemp("whole"), state(2), steps=2).read_bytes()
    return content


@settings(max_examples=500)
@example(where=0.9542316246398758, bit=4)  # archive directory: torch reads freed memory
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_harmless_or_the_checkpoint_is_skipped(archive, tmp_path, where, bit):
    if not (tmp_path / "step-000000001.pt").exists():
        checkpoint.save(tmp_path, state(1), steps=1)
    content = bytearray(archive)
    content[int(where * len(content))] ^= 1 << bit
    (tmp_path / "step-000000002.pt").write_bytes(content)
    found, _ = checkpoint.newest(tmp_path)
    number = found[1]["progress"]["step"]
    assert number in (1, 2)
    assert torch.equal(found[1]["model"]["weights"], torch.full((1000,), float(number)))


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), OSError(24, "Too many open files")], ids=str
)
def test_an_unreadable_checkpoint_is_not_a_damaged_one(monkeypatch, tmp_path, error, messages):
    checkpoint.save(tmp_path, state(1), steps=1)
    monkeypatch.setattr(checkpoint, "open_regular", raising(error))
    with messages.raises(TrainingError):
        checkpoint.newest(tmp_path)


def test_too_little_memory_is_not_damage(monkeypatch, tmp_path):
    checkpoint.save(tmp_path, state(1), steps=1)
    monkeypatch.setattr(torch, "load", raising(MemoryError()))
    with pytest.raises(MemoryError):
        checkpoint.newest(tmp_path)


def test_a_failed_write_is_an_error_and_keeps_earlier_checkpoints(tmp_path, messages):
    (tmp_path / "taken").write_text("")
    with messages.raises(TrainingError):
        checkpoint.save(tmp_path / "taken", state(1), steps=1)
    checkpoint.save(tmp_path, state(1), steps=1)
    (tmp_path / "step-000000002.pt").mkdir()
    with messages.raises(TrainingError):
        checkpoint.save(tmp_path, state(2), steps=2)
    assert sorted(path.name for path in tmp_path.glob("*.pt")) == ["step-000000001.pt", "step-000000002.pt"]
    assert not list(tmp_path.glob(".*partial"))
