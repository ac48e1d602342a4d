"""The options of a language model."""

from dataclasses import dataclass
from typing import ClassVar

from trainer.options.section import AT_LEAST_0, SHARE, Section, from_1_to, option


@dataclass(frozen=True, kw_only=True)
class LanguageOptions(Section):
    """What a language model predicts, and how far back it learns from."""

    title: ClassVar[str] = "language model"

    direction: str = option(
        "the texts are read forward, backward, or by an LSTM in each direction with common embeddings (both)",
        default="forward",
        choices=("forward", "backward", "both"),
        advanced=False,
    )
    output_weights: str | None = option(
        "the softmax has the embeddings as its weights, so that the last layer is as wide as they are (tied), or has "
        "weights of its own (default: tied, of bytes own)",
        default=None,
        choices=("tied", "own"),
    )
    bptt: int = option(
        "tokens of a row in a step, through which gradients flow back; states are carried on from there",
        default=70,
        must=from_1_to(4096),
    )
    samples: int = option(
        "words with which each step compares the next one, drawn anew for each step (sampled softmax); 0: with all "
        "words. What is reported of held-out text is always by all words",
        default=0,
        must=AT_LEAST_0,
    )
    weight_drop: float = option("share of recurrent weights that a step drops", default=0.2, must=SHARE)
