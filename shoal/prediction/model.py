"""Opens a trained model from a folder or S3, and maps the ratings in files to the model's rating scale."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from corpus.dataset_settings import Settings, in_steps

if TYPE_CHECKING:
    from trainer.classification.trained_model import TrainedModel


def open_model(address: str) -> "TrainedModel":
    """Load the model at an address; see `trainer.classification.model_folder.load_model`."""
    with _without_garbage_collection():
        from trainer.classification.model_folder import load_model

        return load_model(address)


def rating_settings(model: "TrainedModel", options: Mapping[str, Any]) -> Settings:
    """Return the settings for ratings in files: the settings of the model's training, overridden by `options`.

    `options`: options of jobs. The rating scale of a model has the rating step of its training data, such as half
    stars. If the model does not record the step, the option `rating_step` sets it.

    Raises DataError for contradictory settings.
    """
    from trainer.classification.losses import Scale

    rating_range, positive_from = options.get("rating_range"), options.get("positive_from")
    scale, asked_steps = model.loss.scale, round(1 / (options.get("rating_step") or 1))
    model_steps = model.about.get("rating_steps", asked_steps)
    if (scale.low, scale.high) == (0, 1):  # a model trained on labels
        usual = Settings()
        scale, model_steps = Scale(*usual.rating_range, usual.positive_from), usual.rating_steps
    steps = max(asked_steps, model_steps)
    low, high, first_positive = (value * steps // model_steps for value in (scale.low, scale.high, scale.positive_from))
    if rating_range is not None:
        low, high = (in_steps(rating, steps) for rating in rating_range)
    if positive_from is not None:
        first_positive = in_steps(positive_from, steps)
    return Settings(
        ragged=bool(model.classes),  # datasets with more than two classes must be ragged
        rating_steps=steps,
        rating_range=(low, high),
        rating_fraction=options.get("rating_fraction") or model.about.get("rating_fraction", False),
        positive_from=first_positive,
    )


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Exclude the objects created in this block from garbage collection, permanently.

    Importing torch creates hundreds of thousands of objects. Scanning them repeatedly took a fifth of the startup time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
