"""Gradients in half precision, as ranks send them to each other on request."""

import torch
from torch import Tensor

HALF_SCALE = 4096.0
"""Gradients are multiplied by this and sent in half precision: gradients of a mean are small, and below 6e-5 half
precision has fewer digits."""


def in_half_precision(gradients: Tensor, ranks: int) -> Tensor:
    """The gradients times HALF_SCALE, in half precision, such that the sum over `ranks` fits: a value that is too large
    (a gradient above 16 divided by the ranks) becomes the largest number that does."""
    most = torch.finfo(torch.float16).max * (1 - 2**-8) / ranks  # rounding, and that of sums, stays below it
    scaled = (gradients * HALF_SCALE).clamp_(-most, most)
    return torch.where(gradients.isfinite(), scaled, torch.nan).to(torch.float16)
