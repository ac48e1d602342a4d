"""Training runs on deployments, for tests."""

from typing import Any

from corpus.stream.stream_settings import StreamSettings
from shoal.aws.deployment import Deployment
from shoal.backends.deployment import DeploymentPlace
from shoal.backends.deployment_run import DeploymentRun
from shoal.backends.launch import NodeLaunch
from shoal.backends.train import train
from shoal.cli.prediction import predict_run
from shoal.runs.run import DEFAULT, LaunchOptions
from shoal.runs.sources.dataset import DatasetSource
from shoal.runs.sources.source import Prepared
from shoal.runs.sources.stream import StreamSource
from trainer.config import TrainConfig


def train_on(
    deployment: Deployment,
    config: TrainConfig,
    learned: str | StreamSettings,
    launch_options: LaunchOptions = DEFAULT,
) -> dict[str, Any]:
    """Train on a deployment's nodes, with a dataset at an address or with text."""
    source = DatasetSource(learned) if isinstance(learned, str) else StreamSource(learned, readers=learned.readers)
    return train(source, config, DeploymentPlace(deployment, launch_options))


def predicted_on(deployment: Deployment, config: TrainConfig, prepared: Prepared) -> dict[str, Any] | None:
    """Return the prediction for a training run on the deployment."""
    launch = NodeLaunch(deployment, f"{deployment.name}.20260102T030405-0a1b")
    return predict_run(DeploymentPlace(deployment), DeploymentRun(launch, prepared, config))
