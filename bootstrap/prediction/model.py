"""A trained model from a folder or from S3, and what the ratings of files mean to it."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from corpus.dataset_settings import Settings, in_steps

if TYPE_CHECKING:
    from trainer.classification.trained_model import TrainedModel


def open_model(address: str) -> "TrainedModel":
    """The model at an address; see `trainer.classification.model_folder.load_model`."""
    with _without_garbage_collection():
        from trainer.classification.model_folder import load_model

        return load_model(address)


def rating_settings(model: "TrainedModel", options: Mapping[str, Any]) -> Settings:
    """What the ratings of files mean: as in the model's training, except for the `options` of jobs that are given.

    A model's scale is in steps of its own: halves, where it learnt half stars. A model that has no record of its steps
    is taken to have those of `rating_step`. Raises DataError for settings that contradict each other.
    """
    from trainer.classification.losses import Scale

    rating_range, positive_from = options.get("rating_range"), options.get("positive_from")
    scale, asked_steps = model.loss.scale, round(1 / (options.get("rating_step") or 1))
    model_steps = model.about.get("rating_steps", asked_steps)
    if (scale.low, scale.high) == (0, 1):  # the scale of a model that was trained on labels
        usual = Settings()
        scale, model_steps = Scale(*usual.rating_range, usual.positive_from), usual.rating_steps
    steps = max(asked_steps, model_steps)
    low, high, first_positive = (value * steps // model_steps for value in (scale.low, scale.high, scale.positive_from))
    if rating_range is not None:
        low, high = (in_steps(rating, steps) for rating in rating_range)
    if positive_from is not None:
        first_positive = in_steps(positive_from, steps)
    return Settings(
        ragged=bool(model.classes),  # as rows of so many classes have to be
        rating_steps=steps,
        rating_range=(low, high),
        rating_fraction=options.get("rating_fraction") or model.about.get("rating_fraction", False),
        positive_from=first_positive,
    )


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Objects that are made here are not searched for garbage, neither now nor later.

    Torch alone makes hundreds of thousands of objects. To search them again and again took a fifth of the start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
