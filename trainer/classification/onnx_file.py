"""Writes a trained model as an ONNX file, for programs without PyTorch; the model card says what goes in and out.

Torch's newer exporter fixes the width of the example's rows in the LSTM. So this takes the older one, which records one
computation: a model must not choose its way by the size of its input while `torch.onnx.is_in_onnx_export()`.
"""

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from common.errors import TrainingError
from corpus.text import UNKNOWN
from trainer.classification.trained_model import TrainedModel

TOKENS, LENGTHS, PROBABILITIES = "tokens", "lengths", "probabilities"
"""The names of the file's inputs and of its output."""
_MOST_BYTES = 2_000_000_000


class _Probabilities(nn.Module):
    """Padded rows of word ids to the probability of each class, for every model alike."""

    def __init__(self, model: TrainedModel) -> None:
        super().__init__()
        self.classifier, self._loss = model.classifier, model.loss

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        if self.classifier.reads_whole_texts:
            tokens = tokens[torch.arange(tokens.shape[1]) < lengths[:, None]]  # (t,)
        return self._loss.probabilities(self.classifier(tokens, lengths))


def write_onnx(path: Path, model: TrainedModel) -> None:
    """Write the model, for any number of rows of any width. Raises TrainingError if it is too large for the
    format."""
    size = sum(tensor.nbytes for tensor in model.classifier.state_dict().values())
    if size > _MOST_BYTES:
        raise TrainingError(
            f"the model has {size / 1e9:.1f} GB of weights, and an ONNX file holds at most 2 GB; leave out --onnx"
        )
    tokens = torch.full((2, 3), UNKNOWN, dtype=torch.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns of its age, and of sizes that it would record
        torch.onnx.export(
            _Probabilities(model).eval(),
            (tokens, torch.tensor([3, 2])),
            path,
            dynamo=False,
            input_names=[TOKENS, LENGTHS],
            output_names=[PROBABILITIES],
            dynamic_axes={TOKENS: {0: "rows", 1: "width"}, LENGTHS: {0: "rows"}, PROBABILITIES: {0: "rows"}},
        )
