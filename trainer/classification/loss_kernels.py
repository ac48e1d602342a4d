"""The losses of losses.py and their gradients, compiled by numba for CPUs.

Each function returns the sum of the losses of n rows, and writes its gradient with respect to `outputs` (n, k) to
`gradients` (n, k). The loss of a row with label 1 is multiplied by `weight`.
"""

from typing import Any

import numpy as np

from common.compiled import compiled


@compiled
def bce(outputs: Any, labels: Any, weight: Any, gradients: Any) -> Any:
    """Compute the binary cross-entropy of a single output per row, the log-odds of label 1."""
    one, total = outputs.dtype.type(1.0), 0.0
    for row in range(len(outputs)):
        odds, label = outputs[row, 0], outputs.dtype.type(labels[row])
        counts = weight if labels[row] == 1 else one
        small = np.exp(-abs(odds))  # at most 1
        total += counts * (max(odds, outputs.dtype.type(0.0)) - odds * label + np.log1p(small))
        gradients[row, 0] = counts * ((one if odds >= 0 else small) / (one + small) - label)
    return total


@compiled
def mse(outputs: Any, ratings: Any, labels: Any, weight: Any, boundary: Any, gradients: Any) -> Any:
    """Compute the squared error of a single output per row, which predicts the rating minus `boundary`."""
    one, total = outputs.dtype.type(1.0), 0.0
    for row in range(len(outputs)):
        off = outputs[row, 0] - (outputs.dtype.type(ratings[row]) - boundary)
        counts = weight if labels[row] == 1 else one
        total += counts * off * off
        gradients[row, 0] = (one + one) * counts * off
    return total


@compiled
def softmax(outputs: Any, targets: Any, lowest: Any, labels: Any, weight: Any, gradients: Any) -> Any:
    """Compute the cross-entropy of outputs for `targets` (n,). Output 0 is for the target `lowest`."""
    one, total = outputs.dtype.type(1.0), 0.0
    for row in range(len(outputs)):
        most, target = outputs[row].max(), int(targets[row]) - lowest
        counts = weight if labels[row] == 1 else one
        likely = outputs.dtype.type(0.0)
        for output in range(outputs.shape[1]):
            gradients[row, output] = np.exp(outputs[row, output] - most)
            likely += gradients[row, output]
        total += counts * (np.log(likely) - (outputs[row, target] - most))
        for output in range(outputs.shape[1]):
            gradients[row, output] *= counts / likely
        gradients[row, target] -= counts
    return total
