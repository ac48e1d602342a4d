"""Data-parallel training over GPUs of unequal speed: the rows of each step, and their split over the ranks.

| module | contents |
|---|---|
| `shoal_balance` | order of rows, split, balancers: arithmetic with numpy, the same on every rank |
| `shoal_balance.torch` | `BalancedBatches`, a batch sampler for any PyTorch program |
| `shoal_balance.transformers` | `BalancedTrainer`, for Hugging Face's Trainer |

`import shoal_balance` does not import torch, so a program that only orders and splits rows starts fast.
"""

from shoal_balance.balancers import Balancer, EpochBalancer, FixedShares, StepBalancer, make_balancer, parse_balance
from shoal_balance.order import BatchOrder, steps_per_epoch
from shoal_balance.speed import TimeModel, fit_time_model
from shoal_balance.split import (
    FloatArray,
    IntArray,
    Lengths,
    equal_finish_split,
    finish_time,
    proportional_split,
    stratified_rows,
)

__all__ = [
    "Balancer",
    "BatchOrder",
    "EpochBalancer",
    "FixedShares",
    "FloatArray",
    "IntArray",
    "Lengths",
    "StepBalancer",
    "TimeModel",
    "equal_finish_split",
    "finish_time",
    "fit_time_model",
    "make_balancer",
    "parse_balance",
    "proportional_split",
    "steps_per_epoch",
    "stratified_rows",
]
