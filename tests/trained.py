"""Training runs on deployments, for tests."""

from typing import Any

from corpus.stream.stream_settings import StreamSettings
from shoal.aws.deployment import Deployment
from shoal.backends.nodes import NodesBackend
from shoal.cli.prediction import predict_run
from shoal.runs.run import NO_LIMITS, Limits, Run
from shoal.runs.sources.dataset import DatasetSource
from shoal.runs.sources.source import Prepared
from shoal.runs.sources.stream import StreamSource
from shoal.runs.train import train
from trainer.config import TrainConfig


def train_on(
    deployment: Deployment, config: TrainConfig, learned: str | StreamSettings, limits: Limits = NO_LIMITS
) -> dict[str, Any]:
    """Train on a deployment's nodes, with a dataset at an address or with text."""
    source = DatasetSource(learned) if isinstance(learned, str) else StreamSource(learned, readers=learned.readers)
    return train(source, config, NodesBackend(deployment), limits=limits)


def predicted_on(deployment: Deployment, config: TrainConfig, prepared: Prepared) -> dict[str, Any] | None:
    """Return the prediction for a training run on the deployment."""
    return predict_run(Run.of_config(config, prepared), NodesBackend(deployment))
