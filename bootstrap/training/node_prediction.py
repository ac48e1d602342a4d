"""What a training on a deployment's nodes is predicted to take: by runs of such nodes, or else by the catalogue.

A training must never fail because nobody can tell what it will take: then there is no prediction, and a note says why.
"""

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws.deployment import Deployment
from bootstrap.errors import ShoalError
from bootstrap.nodes.scaling_group import scaling_groups
from bootstrap.progress import Bars
from bootstrap.training.node_launch import NodeData
from bootstrap.training.prediction import require_model, work_of
from corpus.errors import DataError
from corpus.stream.settings import StreamSettings
from corpus.text_request import TextRequest
from experiments.errors import ExperimentError
from experiments.forecast.estimate import Estimate, total
from experiments.forecast.gpu_rates import lstm_operations
from experiments.forecast.nodes import NODES_START, NodeStage, predict_nodes
from experiments.forecast.rates import Node, Rates
from infra import catalog, cost
from infra.errors import TopologyError
from trainer.config import TrainConfig
from trainer.registry import MODELS

_FIRST_WORDS = Estimate(5.0, 60.0, 600.0)
"""Seconds until readers have left the words of which a vocabulary is made; not measured."""
_NODES_END = Estimate(1.0, 3.0, 15.0)
"""Seconds until AWS has taken the requests to end the nodes; not measured."""


def predict_launch(
    deployment: Deployment, config: TrainConfig, data: NodeData, rates: Rates | None, bars: Bars
) -> dict[str, Any] | None:
    """What a training takes: `seconds`, `dollars` (None where a price is not known), `stages` with the same of each, as
    launch.json names them, and the `source`. It is noted, too. None, and a note that says why, where nobody can tell.
    """
    try:
        found = _predict(deployment, config, data, rates)
    except (BotoCoreError, ClientError, DataError, ExperimentError, ShoalError, TopologyError) as error:
        bars.note(f"not predicted: {error}")
        return None
    minutes = Estimate(**found["seconds"]).times(1 / 60)
    dollars = f", ${found['dollars']['middle']:,.2f}" if found["dollars"] else ""
    bars.note(f"predicted, on AWS: {minutes.middle:.1f} minutes ({minutes.low:.1f} to {minutes.high:.1f}){dollars}")
    return found


def nodes_of(deployment: Deployment, *, readers: bool = False) -> list[Node]:
    """A deployment's GPU nodes when all groups that train are scaled up, and with `readers` those that read. Raises
    ShoalError where it has none."""
    groups = scaling_groups(deployment, readers=readers)
    return [Node(each.instance_type, each.node_group.gpus) for each in groups for _ in range(each.node_group.size)]


def dollars_of(seconds: Estimate, deployment: Deployment, nodes: Sequence[Node]) -> Estimate | None:
    """What so many seconds of these nodes cost on demand, as `Spending` counts; None where a price is not known."""
    try:
        prices = catalog.prices(str(deployment.session.region_name))
        return seconds.times(sum(cost.training_node(node.instance_type, prices) for node in nodes) / 3600)
    except TopologyError:
        return None


def _predict(deployment: Deployment, config: TrainConfig, data: NodeData, rates: Rates | None) -> dict[str, Any]:
    if config.resume:
        raise ShoalError("the training goes on from where it was stopped")
    if isinstance(data, StreamSettings):
        return _predict_words(deployment, config, data)
    if isinstance(data, TextRequest):
        raise ShoalError("how many texts there are is known when the nodes have read them")
    if rates is not None:
        require_model(config, rates)
    elif not MODELS[config.model].has_known_rates:
        raise ShoalError(
            f"the catalogue has rates of the LSTM alone; for {config.model} give --rates, the output of `shoal "
            f"calibrate --deployment {deployment.name} --model {config.model}`"
        )
    assert config.embedding is not None  # only with --embeddings, which no deployment takes
    nodes = nodes_of(deployment)
    predicted = predict_nodes(
        nodes,
        work_of(config, str(data), sum(node.gpus for node in nodes)),
        shared=deployment.share is not None,
        operations=lstm_operations(embedding=config.embedding, hidden=config.hidden, layers=config.layers),
        rates=rates,
    )
    return _in_dollars(deployment, nodes, predicted)


def _predict_words(deployment: Deployment, config: TrainConfig, text: StreamSettings) -> dict[str, Any]:
    """A training on text that keeps coming, which is told when to stop."""
    nodes = nodes_of(deployment, readers=True)
    if config.minutes is None or not text.endless:
        hourly = dollars_of(Estimate(3600, 3600, 3600), deployment, nodes)
        priced = f"; its nodes cost ${hourly.middle:,.2f} an hour" if hourly else ""
        raise ShoalError(f"nobody has measured how long --model {config.model} takes there{priced}")
    asked = Estimate.exact(60 * config.minutes).plus(_FIRST_WORDS)
    stages = (
        NodeStage(name="start the nodes", seconds=NODES_START, basis="not measured"),
        NodeStage(name="copy the data", seconds=_NODES_END, basis="not measured"),
        NodeStage(name="train", seconds=asked, basis="--minutes, and the first words"),
    )
    return _in_dollars(deployment, nodes, stages)


def _in_dollars(deployment: Deployment, nodes: Sequence[Node], predicted: Sequence[NodeStage]) -> dict[str, Any]:
    """The prediction of these stages on these nodes, and of the end of the nodes after them."""
    stages = (*predicted, NodeStage(name="end the nodes", seconds=_NODES_END, basis="not measured"))

    def amounts(seconds: Estimate) -> dict[str, Any]:
        dollars = dollars_of(seconds, deployment, nodes)
        return {"seconds": seconds._asdict(), "dollars": dollars and dollars._asdict()}

    return {
        **amounts(total([stage.seconds for stage in stages])),
        "stages": [{"name": stage.name, **amounts(stage.seconds)} for stage in stages],
        "source": next(stage.basis for stage in stages if stage.name == "train"),
    }
