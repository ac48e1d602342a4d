"""Carries out a run that is prepared, at any place: to its results, or until it is left to itself."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.interrupt import Detached, mark_handled, name_of
from bootstrap.progress import Bars
from bootstrap.training.outlook import Stages
from bootstrap.training.places.place import Place, Run
from common.errors import DataError, ShoalError
from experiments.records.launches import write_launch


def carry_out(place: Place, run: Run, bars: Bars, predicted: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Start a run, or follow it where it continues, to its results. Returns and raises what `train` does; of a run that
    is left to itself only `detached` true, and what the place reports of it."""
    stages, config = Stages(datetime.now(UTC), run.spent), run.config
    try:
        with run.resources(bars):
            stages.end("start the nodes")
            with run.started(bars):
                run.wait_for_data(bars)
                stages.end("copy the data")
                stop_request = _follow(place, run, bars)
            stages.end("train")
    except Detached as left:
        if str(left):
            bars.note(str(left))
        return {"detached": True, "stopped": False, **run.left()}
    stages.end("end the nodes")
    ended = run.collect(bars, stopped=stop_request is not None)
    launched: dict[str, Any] = {"began": stages.began.timestamp(), "seconds": stages.seconds}
    if ended.launch:
        launched |= {"stages": stages.found, "cost": stages.spent}
    launched |= {"predicted": predicted} if predicted else {}
    write_launch(config.output, continues=config.resume, where=place.name, **launched, **ended.launch)
    if ended.failure or ended.summary is None:
        for sentence in ended.told.get("refused", ()):  # which no summary tells
            bars.note(f"not fetched: {sentence}")
    if ended.failure:
        raise ended.failure
    if ended.summary is None:
        assert stop_request is not None
        bars.note(
            f"stopped before the first checkpoint, so there is nothing to resume; the logs are in {config.output}"
        )
        raise stop_request
    return {
        **ended.summary,
        **({"stopped_by": name_of(stop_request)} if stop_request and ended.summary["stopped"] else {}),
        **ended.told,
        **({"cost": stages.spent} if ended.launch else {}),
        **({"launch": {**launched, **ended.launch}} if predicted else {}),
    }


def _follow(place: Place, run: Run, bars: Bars) -> KeyboardInterrupt | None:
    """Follow a run to its end; returns the interrupt that asked it to stop, if there was one.

    Raises KeyboardInterrupt where the user interrupts again, and Abandoned where that is before AWS has answered.
    """
    stop_request: KeyboardInterrupt | None = None
    record = run.record(bars)
    while True:
        try:
            if stop_request:
                run.stop(bars)
            while True:
                try:
                    over = run.is_over(bars)
                except (DataError, ShoalError):
                    record.look()
                    raise
                record.look()  # also when it has ended: the last lines may have come since
                if over:
                    return stop_request
                time.sleep(place.pause)
        except KeyboardInterrupt as interrupt:
            if run.leaves(interrupt):
                raise
            if stop_request:
                raise (Abandoned(interrupt) if retrying.unanswered else interrupt) from None
            stop_request = interrupt
            mark_handled(stop_request)
            if run.survives:
                bars.note("stopping with a checkpoint; a training goes on without its command with --detach")
