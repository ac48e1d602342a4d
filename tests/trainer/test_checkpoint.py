"""Checkpoints are whole or passed over, and two are kept."""

from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trainer import checkpoint
from trainer.errors import TrainingError

EMPTY = {"global_batch": 1, "progress": {}, "model": {}, "optimiser": {}}


def state(number: int) -> dict[str, object]:
    return {"number": number, "weights": torch.full((1000,), float(number))}


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    for steps in (1, 20, 300):
        checkpoint.save(tmp_path, state(steps), steps=steps)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000020.pt", "step-000000300.pt"]


def test_the_newest_is_used(tmp_path: Path) -> None:
    for steps in (1, 2):
        checkpoint.save(tmp_path, state(steps), steps=steps)
    found = checkpoint.newest(tmp_path)
    assert found is not None
    assert (found[0].name, found[1]["number"]) == ("step-000000002.pt", 2)
    assert checkpoint.damaged(tmp_path, found[0]) == []


@pytest.mark.parametrize("damage", ["cut short", "a flipped bit", "emptied", "something else"])
def test_a_damaged_newest_gives_way_to_the_one_before(tmp_path: Path, damage: str) -> None:
    checkpoint.save(tmp_path, state(1), steps=1)
    path = checkpoint.save(tmp_path, state(2), steps=2)
    content = bytearray(path.read_bytes())
    if damage == "cut short":
        del content[len(content) // 2 :]
    elif damage == "a flipped bit":
        content[content.index(torch.full((1000,), 2.0).numpy().tobytes()) + 2000] ^= 1
    else:
        content = bytearray(b"" if damage == "emptied" else b"PK and nothing more")
    path.write_bytes(content)
    found = checkpoint.newest(tmp_path)
    assert found is not None
    assert found[1]["number"] == 1
    assert checkpoint.damaged(tmp_path, found[0]) == [path]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    content: bytes = checkpoint.save(tmp_path_factory.mktemp("whole"), state(2), steps=2).read_bytes()
    return content


@settings(max_examples=500)
@example(where=0.9542316246398758, bit=4)  # the archive's directory: its checksums hold, and torch reads free memory
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_harmless_or_makes_way_for_the_one_before(
    archive: bytes, tmp_path: Path, where: float, bit: int
) -> None:
    if not (tmp_path / "step-000000001.pt").exists():
        checkpoint.save(tmp_path, state(1), steps=1)
    content = bytearray(archive)
    content[int(where * len(content))] ^= 1 << bit
    (tmp_path / "step-000000002.pt").write_bytes(content)
    found = checkpoint.newest(tmp_path)
    assert found is not None
    number = found[1]["number"]
    assert number in (1, 2)
    assert torch.equal(found[1]["weights"], torch.full((1000,), float(number)))


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(24, "Too many open files")])
def test_one_that_cannot_be_read_is_not_taken_for_damaged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: OSError
) -> None:
    path = checkpoint.save(tmp_path, state(1), steps=1)

    def fail(_: Path) -> bytes:
        raise error

    monkeypatch.setattr(Path, "read_bytes", fail)
    with pytest.raises(TrainingError, match=rf"cannot read {path}: {error.strerror}; mend that, or remove it"):
        checkpoint.newest(tmp_path)


def test_too_little_memory_is_not_taken_for_damage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checkpoint.save(tmp_path, state(1), steps=1)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(torch, "load", fail)
    with pytest.raises(MemoryError):
        checkpoint.newest(tmp_path)


def test_without_checkpoints_there_is_none(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path / "missing") is None


def test_what_cannot_be_written_is_an_error_and_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(TrainingError, match=r"cannot make the folder .*taken: File exists"):
        checkpoint.save(tmp_path / "taken", state(1), steps=1)
    checkpoint.save(tmp_path, state(1), steps=1)
    (tmp_path / "step-000000002.pt").mkdir()
    with pytest.raises(TrainingError, match=r"cannot write .*step-000000002\.pt: Is a directory"):
        checkpoint.save(tmp_path, state(2), steps=2)
    assert sorted(path.name for path in tmp_path.glob("*.pt")) == ["step-000000001.pt", "step-000000002.pt"]
    assert not list(tmp_path.glob(".*partial"))


def test_another_dataset_or_setting_is_refused(tmp_path: Path) -> None:
    config = {"data": "d.h5", "seed": 0, "threads": 1}
    saved = {"format": checkpoint.FORMAT, "digest": "a", "config": config, **EMPTY}
    checkpoint.check(saved, {**config, "threads": 8}, "a", where=tmp_path)
    with pytest.raises(TrainingError, match=r"made with another dataset than d\.h5"):
        checkpoint.check(saved, config, "b", where=tmp_path)
    with pytest.raises(TrainingError, match="made with --seed 0, not --seed 1"):
        checkpoint.check(saved, {**config, "seed": 1}, "a", where=tmp_path)
    with pytest.raises(TrainingError, match="made with --seed 0, not no --seed of its own"):
        checkpoint.check(saved, {**config, "seed": None}, "a", where=tmp_path)
    with pytest.raises(TrainingError, match="of another version of Shoal; start in another --output"):
        checkpoint.check({**saved, "format": 1}, config, "a", where=tmp_path)
