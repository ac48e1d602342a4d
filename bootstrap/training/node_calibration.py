"""Calibration on a deployment's GPU nodes, which are started once for all of its runs.

Nothing of it may be left in the data bucket: the next training would take its data for the deployment's newest dataset,
or go on with its run.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bootstrap.aws import objects
from bootstrap.aws.deployment import Deployment
from bootstrap.nodes.fleet import GpuNode
from bootstrap.nodes.scale_up import scaled_up
from bootstrap.progress import Bars
from bootstrap.training.calibration import brief_datasets, train_briefly
from bootstrap.training.node_data import newest_dataset
from bootstrap.training.node_prediction import dollars_of, nodes_of
from bootstrap.training.remote import Started, new_name, require_no_other_training, train_on_deployment
from corpus.dataset import open_dataset
from corpus.layout import DATASET_NAME
from corpus.reading.s3 import Place, head_if_there
from experiments.forecast.estimate import Estimate
from experiments.forecast.nodes import NODES_START
from experiments.forecast.rates import Node
from infra import topology
from trainer.config import TrainConfig

_BATCHES = (256, 1024, 4096)
"""Global batches of the runs: of a smaller step a GPU shows nothing but the fixed part."""
_RUN = Estimate(30.0, 60.0, 180.0)
"""Seconds of a run, with its data's way to the nodes and its results' way back; not measured."""


@dataclass(frozen=True, kw_only=True)
class CalibrationPrice:
    """What a calibration is expected to take."""

    nodes: list[Node]
    seconds: Estimate
    dollars: Estimate | None
    """For the nodes, on demand; None where a price is not known."""


def calibration_price(deployment: Deployment) -> CalibrationPrice:
    """What a calibration on this deployment takes. Raises ShoalError where it has no GPU nodes."""
    nodes = nodes_of(deployment)
    seconds = NODES_START.plus(_RUN.times(len(_BATCHES)))
    return CalibrationPrice(nodes=nodes, seconds=seconds, dollars=dollars_of(seconds, deployment, nodes))


def calibrate_on_deployment(deployment: Deployment, config: TrainConfig, *, data: str | None, bars: Bars) -> list[Path]:
    """Train briefly on a deployment's nodes, with the model of `config`, as `calibrate_locally` does here.

    `data` is a file or an address of S3; None: the deployment's newest dataset, or random words where it has none.
    Raises what `calibrate_locally` raises, and ShoalError when another training uses the nodes.
    """
    require_no_other_training(deployment)
    source = data or newest_dataset(deployment, bars)
    with (
        brief_datasets(source and str(source), _BATCHES, model=config.model) as datasets,
        scaled_up(deployment, bars) as nodes,
    ):
        return train_briefly(config, datasets, partial(_train, deployment, nodes, bars=bars), bars)


def _train(deployment: Deployment, nodes: list[GpuNode], config: TrainConfig, *, bars: Bars) -> dict[str, Any]:
    """A run on nodes that are started, of which nothing is left in the data bucket."""
    s3, bucket = deployment.session.client("s3"), deployment.output(topology.OUTPUT_DATA_BUCKET)
    name = new_name(deployment)
    with open_dataset(config.data) as dataset:
        uploaded = Place(bucket, f"{topology.DATASETS_PREFIX}{dataset.digest}/{DATASET_NAME}")
    of_the_user = head_if_there(s3, uploaded) is not None
    try:
        return train_on_deployment(
            deployment,
            config,
            dataset=str(config.data),
            output=config.output,
            bars=bars,
            started=Started(nodes=nodes, name=name),
        )
    finally:
        objects.remove(s3, Place(bucket, f"{topology.RUNS_PREFIX}{name}/"))
        objects.remove(s3, Place(bucket, f"{topology.FETCHED_PREFIX}{name}."))
        if not of_the_user:
            objects.remove(s3, uploaded)
