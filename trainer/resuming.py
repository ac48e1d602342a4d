"""Configuration of a resumed run: that of its checkpoint, except for the settings that are allowed to change.

If the user does not give an option, its value in the checkpoint is used, not its default. For example, the numbers of
epochs and of rows per step remain those of the run.
"""

from collections.abc import Mapping
from typing import Any

from common.errors import TrainingError
from common.options import flag
from trainer.config import TrainConfig, implied_settings
from trainer.options.optimisation_options import KEPT_ON_RESUME
from trainer.output.run_files import CHECKPOINTS

SETTINGS_OF_NODES = ("data", "output", "cache", "threads")
"""Settings that are allowed to differ between ranks, because nodes have different paths, memory and cores."""

_FREE = ("balance", "slow", "checkpoint_minutes", "resume", "force", "precision", "preset", "minutes", "fixed")
_MAY_CHANGE = frozenset((*SETTINGS_OF_NODES, *_FREE))
"""Settings that change the result only by rounding."""

_DERIVED_SETTINGS = ("embedding", "buckets")
"""Settings with a default that depends on the vectors or the rows. A resumed run keeps them."""


def resumed_config(state: dict[str, Any], config: TrainConfig) -> tuple[TrainConfig, list[str]]:
    """Return the configuration for resuming the run of `state` (checkpoint.py), and notes for the user.

    Raises TrainingError if the state belongs to a run with other settings.
    """
    implied = implied_settings(config.model, config.preset)
    left: dict[str, Any] = {name: None for name in KEPT_ON_RESUME if name in implied and name not in config.fixed}
    config = config.changed(**left)
    saved = state["config"]
    _require_same_settings(state, config.plain())
    kept = {name: saved[name] for name in (*KEPT_ON_RESUME, *_DERIVED_SETTINGS) if name in saved}
    # After the loss became infinite or NaN, the user can resume the run with a smaller learning rate.
    rate = config.optimisation.learning_rate
    before = saved.get("learning_rate", rate)
    notes = [] if rate == before else [f"continuing with --learning-rate {rate}; it was {before}"]
    return config.changed(**kept), notes


def _require_same_settings(state: dict[str, Any], now: Mapping[str, Any]) -> None:
    """Raise TrainingError if a setting in `now` differs from the run of `state`, and is not allowed to change."""
    made = f"the checkpoints in {now['output']}/{CHECKPOINTS} were made"
    otherwise = "resume with the original setting, or choose another --output"
    free = {*_MAY_CHANGE, "learning_rate"}
    free |= {name for name in (*KEPT_ON_RESUME, *_DERIVED_SETTINGS) if now.get(name) is None}
    if now["global_batch"] == state["global_batch"]:  # even if the user did not give it
        free.add("global_batch")
    for name, value in state["config"].items():
        if name not in free and now.get(name) != value:
            raise TrainingError(
                f"{made} {_describe_setting(name, value)}, not {_describe_setting(name, now[name])}; {otherwise}"
            )


def _describe_setting(name: str, value: Any) -> str:
    return f"without {flag(name)}" if value is None else f"with {flag(name)} {value}"
