"""Precision of a run: one that is fast on all of its GPUs."""

import math

import pytest
import torch

from common.errors import TrainingError
from trainer.computing.precision import choose, loss_scale

M60, V100, T4, A10G, H100 = (5, 2), (7, 0), (7, 5), (8, 6), (9, 0)


@pytest.mark.parametrize(
    ("capabilities", "chosen"),
    [
        ([A10G, H100], "bfloat16"),
        ([A10G, T4], "float16"),
        ([V100], "float16"),
        ([M60, H100], "float32"),
        ([None, None], "float32"),
        ([H100, None], "float32"),
    ],
)
def test_auto_is_the_precision_in_which_the_oldest_gpu_is_fast(capabilities, chosen):
    assert choose("auto", capabilities) == chosen


def test_a_requested_precision_is_used_if_all_gpus_support_it(messages):
    assert choose("float32", [H100]) == "float32"
    assert choose("float16", [H100, T4]) == "float16"
    with messages.raises(TrainingError):
        choose("float16", [None])
    for ranks in ([H100, T4], [None]):
        with messages.raises(TrainingError):
            choose("bfloat16", ranks)


@pytest.mark.parametrize("rows", [1, 2, 100, 512, 8192, 65_536])
def test_the_loss_scale_is_a_power_of_two_near_the_root_of_the_rows(rows):
    scale = loss_scale(torch.float16, rows)
    assert math.log2(scale).is_integer()
    assert 0.5 <= scale / math.sqrt(rows) <= 2
    assert loss_scale(torch.bfloat16, rows) == scale
    assert loss_scale(torch.float32, rows) == 1.0
