"""Executes a prepared run at any place, until its results are collected or the command detaches from the run."""

import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common.errors import DataError, ShoalError
from common.files import indented_json, write_whole
from common.progress import reporter
from shoal.aws.retry import Abandoned, retrying
from shoal.backends.place import Place, Run
from shoal.interrupt import Detached, name_of
from shoal.runs.outlook import Stages
from trainer.output.run_files import LAUNCH, read_json


def execute(place: Place, run: Run, predicted: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Start a run, or follow a run that was already started, and collect its results.

    Returns the same dictionary, and raises the same errors, as `train` (train.py).

    If the command detaches from the run, the dictionary contains only `detached`, `stopped` and the fields of
    `run.detached_fields()`.
    """
    stages, config = Stages(datetime.now(UTC), run.spent), run.config
    try:
        with run.resources():
            stages.end("start the nodes")
            with run.started():
                run.wait_for_data()
                stages.end("copy the data")
                stop_request = _follow(place, run)
            stages.end("train")
    except Detached as left:
        if str(left):
            reporter().note(str(left))
        return {"detached": True, "stopped": False, **run.detached_fields()}
    stages.end("end the nodes")
    ended = run.collect(stopped=stop_request is not None)
    launched: dict[str, Any] = {"began": stages.began.timestamp(), "seconds": stages.seconds}
    if ended.launch:
        launched |= {"stages": stages.finished, "cost": stages.spent}
    launched |= {"predicted": predicted} if predicted else {}
    _write_launch(config.output, {"where": place.name, **launched, **ended.launch}, continues=config.resume)
    if ended.failure or ended.summary is None:
        for sentence in ended.details.get("refused", ()):  # a summary would report these sentences
            reporter().note(f"not fetched: {sentence}")
    if ended.failure:
        raise ended.failure
    if ended.summary is None:
        assert stop_request is not None
        reporter().note(
            f"stopped before the first checkpoint, so Shoal cannot resume the run; the logs are in {config.output}"
        )
        raise stop_request
    return {
        **ended.summary,
        **({"stopped_by": name_of(stop_request)} if stop_request and ended.summary["stopped"] else {}),
        **ended.details,
        **({"cost": stages.spent} if ended.launch else {}),
        **({"launch": {**launched, **ended.launch}} if predicted else {}),
    }


def _follow(place: Place, run: Run) -> KeyboardInterrupt | None:
    """Follow a run until it is over. Returns the interrupt with which the user requested a stop, or None.

    Raises KeyboardInterrupt if the user interrupts a second time. Raises Abandoned instead if AWS has not answered the
    stop request by then.
    """
    stop_request: KeyboardInterrupt | None = None
    record = run.record()
    while True:
        try:
            if stop_request:
                run.stop()
            while True:
                try:
                    over = run.is_over()
                except (DataError, ShoalError):
                    record.update()
                    raise
                record.update()  # also after the end of the run, because the record can have new lines
                if over:
                    return stop_request
                time.sleep(place.pause)
        except KeyboardInterrupt as interrupt:
            if run.detaches_on(interrupt):
                raise
            if stop_request:
                raise (Abandoned(interrupt) if retrying.unanswered else interrupt) from None
            stop_request = interrupt
            if run.can_detach:
                reporter().note(
                    "stopping the run with a checkpoint; a run started with --detach continues without its command"
                )


def _write_launch(folder: Path, content: dict[str, Any], *, continues: bool) -> None:
    """Write launch.json: facts about a launch that only its command knows.

    `content` has the name of the place (`where`), the time at which the launch `began` (seconds since 1970), the
    `seconds` of the whole launch, and its `predicted` time and cost. For nodes, it also has the nodes, the `stages`
    (name, seconds, dollars) and the cost. If `continues` is true, the file keeps the content of earlier launches under
    `earlier`.
    """
    if continues and (before := read_json(folder / LAUNCH)):
        earlier = before.pop("earlier", [])
        content["earlier"] = [*(earlier if isinstance(earlier, list) else ()), before]
    with suppress(OSError):  # do not fail, because a report shows missing values as unknown
        write_whole(folder / LAUNCH, indented_json(content))
