"""The start of a run."""

import pytest

from common.errors import TrainingError
from trainer.start import _require_here


def test_a_machine_that_joined_does_not_begin_anew_what_others_have_in_folders_of_their_own() -> None:
    others = ("rank 1 on i-2", "/results/checkpoints")
    with pytest.raises(TrainingError, match=r"rank 1 on i-2 has checkpoints .* and the first rank has none in /here"):
        _require_here([None, None, others], "/here")
    _require_here([None, None], "/here")
    _require_here([("rank 0", "/here"), others], "/here")
