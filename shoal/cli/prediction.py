"""Predicts the duration and cost of a run on nodes before it starts."""

from dataclasses import asdict
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common.errors import DataError, ExperimentError, ShoalError
from common.progress import reporter
from experiments.estimate import total
from experiments.forecast import Work, node_stages, run_work
from infra.topology_error import TopologyError
from shoal.runs.backend import Backend
from shoal.runs.run import Run
from trainer.embeddings.vectors import vectors_size


def predict_run(run: Run, backend: Backend) -> dict[str, Any] | None:
    """Predict the duration and cost of a run, print them as a note, and return them as fields of launch.json.

    The fields are `seconds`, `dollars` (None if a price is unknown), `stages` (seconds by name) and `source`. Returns
    None if the run starts no nodes, or if a prediction is impossible. In the latter case a note gives the reason.
    """
    try:
        if (hardware := backend.hardware(run)) is None:
            return None
        nodes, hourly = list(hardware.nodes), hardware.hourly
        try:
            stages = node_stages(nodes, _work(run, sum(node.gpus for node in nodes)), shared=hardware.shares_files)
        except ExperimentError as error:
            paid = f"; its nodes cost ${hourly:,.2f} per hour" if hourly else ""
            raise ExperimentError(f"{error}{paid}") from error
    except (BotoCoreError, ClientError, DataError, ExperimentError, ShoalError, TopologyError) as error:
        reporter().note(f"not predicted: {error}")
        return None
    seconds = total(stage.seconds for stage in stages)
    dollars = None if hourly is None else seconds * hourly / 3600
    reporter().note(f"predicted, on AWS: {seconds.time()}" + (f", {dollars.dollars()}" if dollars else ""))
    return {
        "seconds": asdict(seconds),
        "dollars": dollars and asdict(dollars),
        "stages": {stage.name: stage.seconds.middle for stage in stages},
        "source": stages[-1].basis,
    }


def _work(run: Run, ranks: int) -> Work:
    config = run.config
    if run.resumes:
        raise ExperimentError("Shoal does not predict the remaining time of a resumed run")
    values = config.values()
    vectors = values.get("embeddings")
    embedding = vectors_size(vectors) if vectors and values["embedding"] is None else None
    return run_work(config, run.data.size(), ranks=ranks, embedding=embedding)
