"""Training runs on deployments, for tests."""

from typing import Any

from bootstrap.aws.deployment import Deployment
from bootstrap.cli.learning.prediction import predict_run
from bootstrap.progress import Bars
from bootstrap.training.places.deployment import DeploymentPlace
from bootstrap.training.places.deployment_run import DeploymentRun
from bootstrap.training.places.launch import DEFAULT, LaunchOptions, NodeLaunch
from bootstrap.training.sources.dataset import DatasetSource
from bootstrap.training.sources.source import Prepared
from bootstrap.training.sources.stream import StreamSource
from bootstrap.training.train import train
from corpus.stream.stream_settings import StreamSettings
from trainer.config import TrainConfig


def train_on(
    deployment: Deployment,
    config: TrainConfig,
    learned: str | StreamSettings,
    bars: Bars,
    launch_options: LaunchOptions = DEFAULT,
) -> dict[str, Any]:
    """Train on a deployment's nodes, with a dataset at an address or with text."""
    source = DatasetSource(learned) if isinstance(learned, str) else StreamSource(learned, readers=learned.readers)
    return train(source, config, DeploymentPlace(deployment, launch_options), bars)


def predicted_on(deployment: Deployment, config: TrainConfig, prepared: Prepared, bars: Bars) -> dict[str, Any] | None:
    """Return the prediction for a training run on the deployment."""
    launch = NodeLaunch(deployment, f"{deployment.name}.20260102T030405-0a1b")
    return predict_run(DeploymentPlace(deployment), DeploymentRun(launch, prepared, config), bars)
