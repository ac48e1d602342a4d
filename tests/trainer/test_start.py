"""The start of a run."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.errors import TrainingError
from trainer.config import TrainConfig
from trainer.start import _require_here, load_data


def test_a_machine_that_joined_does_not_begin_anew_what_others_have_in_folders_of_their_own() -> None:
    others = ("rank 1 on i-2", "/results/checkpoints")
    with pytest.raises(TrainingError, match=r"rank 1 on i-2 has checkpoints .* and the first rank has none in /here"):
        _require_here([None, None, others], "/here")
    _require_here([None, None], "/here")
    _require_here([("rank 0", "/here"), others], "/here")


def test_ranks_with_other_settings_or_another_dataset_are_refused(tmp_path: Path) -> None:
    config, first = TrainConfig(data=Path("d.h5"), output=tmp_path), ["a"]
    ranks: Any = SimpleNamespace(
        is_first=False,
        world_size=2,
        local_size=2,
        agreement=lambda **_: nullcontext(),
        gather=lambda mine: [mine, mine],
        broadcast=lambda _: (config.plain(), *first),
    )
    task: Any = SimpleNamespace(load=lambda *_, **__: SimpleNamespace(digest="a"))
    load_data(task, replace(config, threads=7, data=Path("e.h5")), ranks, lambda: False)
    with pytest.raises(
        TrainingError, match=r"--learning-rate is 0.5 here and 0.008 on the first rank; start all ranks"
    ):
        load_data(task, replace(config, learning_rate=0.5), ranks, lambda: False)
    first[0] = "b"
    with pytest.raises(TrainingError, match=r"d\.h5 is another dataset than the first rank's \(digest a, not b\)"):
        load_data(task, config, ranks, lambda: False)
