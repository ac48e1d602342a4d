"""Trains: starts a run at a backend, follows it, copies its results, and reports them."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common.errors import ShoalError, TrainingError
from common.files import indented_json, read_tail, write_whole
from common.options import flag
from common.progress import reporter
from shoal.aws.retry import Abandoned
from shoal.config_file import CONFIG, read_config, write_config
from shoal.interrupt import Detached, name_of
from shoal.runs.backend import Backend
from shoal.runs.files import Copied
from shoal.runs.follow import follow
from shoal.runs.outlook import Stages
from shoal.runs.run import NO_LIMITS, Limits, Run
from shoal.runs.sources.source import DataSource
from shoal.runs.state import RunState, StopReason
from trainer.command_line import option_values
from trainer.config import TrainConfig, options_for
from trainer.output.run_files import (
    LAUNCH,
    MODEL,
    finished_summary,
    has_model,
    read_json,
    require_free_output,
    was_stopped,
)
from trainer.rank_processes import failure_in
from trainer.registry import COMMANDS, MODELS

_OF_ONE_COMMAND = ("resume", "force", "json")
"""Options that are left out of the file that repeats the run."""


def train(
    source: DataSource,
    config: TrainConfig,
    backend: Backend,
    *,
    detach: bool = False,
    given: Mapping[str, Sequence[str]] | None = None,
    predict: Callable[[Run, Backend], dict[str, Any] | None] = lambda *_: None,
    limits: Limits = NO_LIMITS,
) -> dict[str, Any]:
    """Train at a backend, and write the results to `config.output`. Return the content of summary.json with added
    fields.

    A run on nodes adds these fields:

    - `nodes` and `readers`: the instances that trained, and the instances that read text.
    - `run`: the address of the run's folder.
    - `cost`: the cost of the run in dollars, or None if a price is unknown.
    - `refused`: one message for each object that was not fetched.
    - `inputs` and `read`: the addresses from which the nodes read text, and the readers' counts of lines.
    - `launch`: the actual durations, and the prediction as `predicted`.

    Ctrl-C and SIGTERM stop the run with a checkpoint. This is not an error: `stopped` is then true, and `stopped_by` is
    the name of the signal. If `config.resume` is true, a stopped run continues. A finished run is not changed, and
    `finished_before` is then true.

    Args:
        source: The training data.
        config: The configuration of the run.
        backend: The backend that executes the run.
        detach: Whether to return as soon as the run continues without this command.
        given: The words of the command's other options. Together with the configuration, they are written to the file
        that repeats the run.
        predict: Function that returns the predicted time and cost of the prepared run, as fields of launch.json.
        limits: The limits of the run's nodes.

    Raises:
        DataError: The source is invalid.
        TrainingError: The trainer failed. The message is the trainer's message.
        ShoalError: The backend refuses the run, or the run failed without a message.
        KeyboardInterrupt: The run was stopped before its first checkpoint.
    """
    if finished := _finished_before(config, backend):
        return finished
    run = backend.prepare(source, config, limits)
    predicted = predict(run, backend)
    _write_options(config, run, given or backend.options)
    return carry_out(run, backend, detach=detach, predicted=predicted)


def attach(name: str, backend: Backend, output: Path) -> dict[str, Any]:
    """Follow a run that an earlier command started, and copy its results to `output`. Returns the same dictionary as
    `train`.

    An interrupt ends only this command, not the run. Raises TrainingError if the results would replace a finished
    model, and TrainingError or ShoalError if the run's options are unknown.
    """
    run = backend.requested_run(name, output)
    _ = run.config  # raises an error for unknown options
    require_free_output(output, force=False)
    return carry_out(run, backend, attached=True)


def _finished_before(config: TrainConfig, backend: Backend) -> dict[str, Any] | None:
    """Return the summary of the run to resume, with `finished_before` true, if this run has finished; otherwise None.

    A run that outlives its command is resumed in its store, whatever the output folder contains. Raises TrainingError
    if the run would replace the results in the output folder.
    """
    if not config.resume:
        require_free_output(config.output, force=config.force)
    elif not backend.outlives_command:
        finished = finished_summary(config.output)
        return finished and {**finished, "finished_before": True}
    elif has_model(config.output) and not was_stopped(config.output):
        raise TrainingError(
            f"the resumed run would replace the finished model {config.output / MODEL}; choose another --output"
        )
    return None


def carry_out(
    run: Run,
    backend: Backend,
    *,
    attached: bool = False,
    detach: bool = False,
    predicted: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Start a run unless `attached`, follow it, and copy its results. Returns and raises the same as `train`.

    If the command detaches from the run, the dictionary contains only `detached`, `stopped`, the run and its backend.
    """
    stages = Stages(datetime.now(UTC))
    with backend:
        try:
            if not attached:
                run = backend.start(run)
            state, stop_request = follow(run, backend, attached=attached, detach=detach, on_state=stages.see)
        except Detached as left:
            if str(left):
                reporter().note(str(left))
            where = {name: words[0] for name, words in backend.options.items() if words}
            return {"detached": True, "stopped": False, "run": run.name, **where}
        except Abandoned:
            for sentence in backend.when_abandoned:
                reporter().note(sentence)
            raise
        except BaseException:
            if not attached:
                _give_up(run, backend)
            raise
        backend.stop(run.name)  # after an error, the next command copies the results
        state = backend.state(run.name)
        stages.end("end the nodes", state.dollars)
        copied = backend.files(run.name).copy(run.output)
    return _result(run, backend, state, copied, stop_request, stages, predicted)


def _give_up(run: Run, backend: Backend) -> None:
    """End the run after an error, because no command waits for its results any longer.

    Raises Abandoned if the user does not wait for the end.
    """
    try:
        backend.stop(run.name, at_once=True)
    except Abandoned:
        raise
    except (BotoCoreError, ClientError, ShoalError, KeyboardInterrupt) as error:
        for line in error.args if isinstance(error, ShoalError) else ():
            reporter().note(line)
        if "deployment" in backend.options:
            reporter().note(f"the run {run.name} may continue; to stop it: shoal stop {backend.name}")


def _result(
    run: Run,
    backend: Backend,
    state: RunState,
    copied: Copied,
    stop_request: KeyboardInterrupt | None,
    stages: Stages,
    predicted: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Write launch.json, and return the summary of an ended run with its added fields.

    Raises the error of a failed run, and `stop_request` if the run was stopped before its first checkpoint.
    """
    summary = copied.summary
    if summary is not None and summary["stopped"] and stop_request is None and state.find_stop_reason:
        reporter().note(f"the run stopped, because {_why_stopped(run, state, summary, state.find_stop_reason())}")
    failure = _failure(run, backend, state, copied, stopped=stop_request is not None)
    machines = state.machines
    launched: dict[str, Any] = {"began": stages.began.timestamp(), "seconds": stages.seconds}
    if machines is not None:
        launched |= {"stages": stages.finished, "cost": stages.spent}
    launched |= {"predicted": predicted} if predicted else {}
    _write_launch(run.output, {"where": backend.name, **launched, **(machines or {})}, continues=run.resumes)
    if failure or summary is None:
        for sentence in copied.refused:  # a summary would report these sentences
            reporter().note(f"not fetched: {sentence}")
    if failure:
        raise failure
    if summary is None:
        assert stop_request is not None
        reporter().note(
            f"stopped before the first checkpoint, so Shoal cannot resume the run; the logs are in {run.output}"
        )
        raise stop_request
    return {
        **summary,
        **({"stopped_by": name_of(stop_request)} if stop_request and summary["stopped"] else {}),
        **(machines or {}),
        **state.details,
        **({"inputs": list(run.data.inputs)} if machines is not None and run.data.inputs else {}),
        **({"run": copied.source, "refused": copied.refused} if run.name else {}),
        **({"cost": stages.spent} if machines is not None else {}),
        **({"launch": {**launched, **(machines or {})}} if predicted else {}),
    }


def _why_stopped(run: Run, state: RunState, summary: Mapping[str, Any], reason: StopReason) -> str:
    """Return why a run stopped without a request of its command, and what finishing the run would cost."""
    done, rows = summary["rows_seen"], summary.get("rows", 0) * (run.config.optimisation.epochs or 0)
    more = ""
    if state.dollars and rows > done > 0:
        more = f"; finishing it would cost about ${state.dollars * (rows - done) / done:.2f} more"
    return f"{reason.why}{more}{reason.hint}"


def _failure(run: Run, backend: Backend, state: RunState, copied: Copied, *, stopped: bool) -> Exception | None:
    """Return the error of a run that failed, or that stopped without a checkpoint although no command requested it;
    otherwise None.

    In a message from a log of nodes, the name of the source replaces the path of the data.
    """
    if state.error:
        return ShoalError(state.error) if backend.outlives_command else TrainingError(state.error)
    summary = copied.summary
    if summary is None and not stopped and run.name and (state.outcome == "stopped" or not state.logs):
        general = f"run {run.name} was stopped before its first checkpoint; start it again"
        return ShoalError((state.find_stop_reason and state.find_stop_reason().without_checkpoint) or general)
    has_finished = summary is not None and not summary["stopped"] and (bool(run.name) or state.outcome == "finished")
    if stopped or state.outcome == "stopped" or has_finished or not state.logs:
        return None
    logs = [run.output / name for name in state.logs]
    text = "\n".join(read_tail(path) for path in logs if path in copied.files)
    where = f"the logs are in {run.output}" if run.name else f"the log is {logs[0]}"
    failed = failure_in(text, where)
    if not run.name:
        return failed
    # the names of files are those of bootstrap/node/machine.py
    files = r"datasets/(datasets-[0-9a-f]{32}-dataset\.h5|texts-[0-9a-f]{12}\.h5)"
    on_nodes = rf"\S*/({files}|streams/{re.escape(run.name)}(/[\w-]+)*)"
    return type(failed)(re.sub(on_nodes, run.data.label, str(failed)))


def _write_launch(folder: Path, content: dict[str, Any], *, continues: bool) -> None:
    """Write launch.json: facts about a launch that only its command knows.

    `content` has the name of the backend (`where`), the time at which the launch `began` (seconds since 1970), the
    `seconds` of the whole launch, and its `predicted` time and cost. For nodes, it also has the nodes, the `stages`
    (name, seconds, dollars) and the cost. If `continues` is true, the file keeps the content of earlier launches under
    `earlier`.
    """
    if continues and (before := read_json(folder / LAUNCH)):
        earlier = before.pop("earlier", [])
        content["earlier"] = [*(earlier if isinstance(earlier, list) else ()), before]
    with suppress(OSError):  # do not fail, because a report shows missing values as unknown
        write_whole(folder / LAUNCH, indented_json(content))


def _write_options(config: TrainConfig, run: Run, given: Mapping[str, Sequence[str]]) -> None:
    """Write the file with which the user can repeat the run. A resumed run keeps the options of its first start.

    Raises TrainingError if the output folder is not writable.
    """
    if run.data.local_path is not None and not {"input", "data"} & {*given}:
        given = {"data": (str(run.data.local_path),), **given}
    words = repeating_options(config, given)
    try:
        if config.resume:
            words = stored_options(config.output) | words
        config.output.mkdir(parents=True, exist_ok=True)
        write_config(config.output / CONFIG, COMMANDS[MODELS[config.model].learns], words)
    except OSError as error:
        raise TrainingError(f"cannot write to {config.output}: {error.strerror}; choose another --output") from error


def repeating_options(config: TrainConfig, given: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the options with which the user can repeat a run: the words of each option's value, by name."""
    learns = MODELS[config.model].learns
    own = {each.name for each in options_for(learns)} - {"data"}
    words = {flag(name)[2:]: each for name, each in option_values(config).items() if name in own}
    return {name: each for name, each in {**words, **given}.items() if name not in _OF_ONE_COMMAND}


def stored_options(output: Path) -> dict[str, Sequence[str]]:
    """Return the options in the file that repeats the run in a folder. Without the file, return no options."""
    if not (output / CONFIG).exists():
        return {}
    entries = read_config(output / CONFIG)[1].items()
    given = {name: () if each.switch else each.words for name, each in entries if each.switch is not False}
    return {name: words for name, words in given.items() if name not in _OF_ONE_COMMAND}
