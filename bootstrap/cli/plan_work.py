"""The work that `shoal plan` predicts (--rows, --like): on topologies, on all of them, or on this machine."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from bootstrap.aws import cdk
from bootstrap.cli import like
from bootstrap.cli.output import show
from common.errors import UsageError

if TYPE_CHECKING:
    from bootstrap.preprocessing.extent import Extent
    from experiments.forecast.cluster import ClusterWork, Prediction
    from experiments.forecast.gpu_rates import GpuModel
    from experiments.forecast.machines import MachineSpeed
    from experiments.forecast.one_machine import Comparison
    from experiments.forecast.preprocessing import DatasetCosts
    from experiments.forecast.rates import Rates
    from infra.topology import Topology


_REGION = "us-east-1"
"""Whose machines are compared with topologies."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is to be predicted."""

    rows: tuple[int, int, int]
    """At least, in the middle, and at most."""
    raw_bytes: tuple[float, float, float] | None
    """None: the dataset is there already."""
    epochs: int
    global_batch: int | None
    spot: bool
    extent: "Extent | None" = None
    """What was found out of the reviews of --like."""
    rates: "Rates | None"
    model: "GpuModel"
    costs: "DatasetCosts"
    """Of the dataset."""
    upload_mbit: float | None = None

    def on(self, topology: "Topology") -> "Prediction":
        """What it takes on a topology. One without a cluster has the dataset of reviews that were looked at."""
        from experiments.forecast.cluster import predict_between

        works = self.works()
        if self.extent and not _makes_datasets(topology):
            works = [replace(work, raw_bytes=None) for work in works]
        return predict_between(topology, works, self._of_gpus)

    def works(self) -> "list[ClusterWork]":
        """At least, in the middle, and at most."""
        from experiments.forecast.cluster import GLOBAL_BATCH, ClusterWork

        return [
            ClusterWork(
                rows=rows,
                raw_bytes=raw_bytes,
                epochs=self.epochs,
                global_batch=self.global_batch or GLOBAL_BATCH,
                spot=self.spot,
                costs=self.costs,
                model=self.model,
                upload_mbit=self.upload_mbit,
                stored_bytes=self.extent.stored_bytes if self.extent else None,
            )
            for rows, raw_bytes in zip(self.rows, self.raw_bytes or (None, None, None), strict=True)
        ]

    @property
    def _of_gpus(self) -> "Rates | None":
        """The rates of a deployment's nodes."""
        return self.rates if self.rates and self.rates.nodes else None

    def _compare(self, topology: "Topology") -> "Comparison | None":
        from experiments.forecast.one_machine import compare

        own = self.rates if self.rates and not self.rates.nodes else None
        return compare(topology, self.works()[1], self._of_gpus, own)

    def compared(self, topology: "Topology") -> dict[str, Any]:
        """Whether one machine is enough, for a program."""
        found = self._compare(topology)
        return {"one_machine": found.content()} if found else {}

    def notes(self, found: "Prediction") -> Iterator[str]:
        """What a person should know of the prediction for a topology."""
        from experiments.forecast.cluster import UPLOAD

        topology = found.topology
        if self.extent and not _makes_datasets(topology):
            yield f"{topology.name} has no cluster to preprocess with, so the dataset is taken to be there already."
        minutes = topology.guard.idle_minutes
        if any(each.name == UPLOAD and each.seconds.high > 60 * minutes for each in found.stages):
            yield (
                f"The upload may take longer than the {minutes} minutes after which an idle cluster ends: copy the "
                "reviews to a bucket of yours before, such as by `aws s3 cp`, and name it in `inputs`."
            )
        if topology.readers:
            yield f"The readers of {topology.name} do not count: they start for a training on a stream alone."
        if compared := self._compare(topology):
            yield compared.sentence()
        if self.rates is None and topology.training:
            yield (
                "To predict the training by rates of these GPUs, type: shoal calibrate --deployment NAME --output DIR, "
                "and then this command with --rates DIR."
            )

    def lines(self) -> Iterator[str]:
        """What was found out of the reviews, for a person."""
        if self.extent:
            yield from like.lines(self.extent)

    def content(self) -> dict[str, Any]:
        """The same for a program."""
        return {"like": like.content(self.extent)} if self.extent else {}


def check_options(ctx: click.Context, topologies: Sequence[str]) -> None:
    """Raise UsageError for options that do not go together, before anything is looked at."""
    asked = ctx.params
    like.check_options(ctx)
    some = asked["rows"] is not None or bool(asked["like"])
    needed = "raw_bytes", "global_batch", "rates", "upload_mbit"
    if not some and (asked["spot"] or any(asked[name] for name in needed)):
        raise UsageError(
            "--raw-bytes, --global-batch, --rates, --upload-mbit and --spot go with the work to predict; give its "
            "--rows or --like"
        )
    if asked["local"] and (topologies or asked["every"] or not (some and asked["rates"])):
        raise UsageError("a training on this machine is predicted by --local --rows N --rates DIR, and no topology")
    if asked["every"] and (topologies or not some):
        raise UsageError("--all compares all topologies for --rows N or --like; give one of these, and no topology")
    if not asked["every"] and (asked["measure"] or asked["max_price"] is not None or asked["max_hours"] is not None):
        raise UsageError("--measure, --max-price and --max-hours go with --all")
    if some and not (topologies or asked["every"] or asked["local"]):
        raise UsageError("--rows and --like go with topologies; name them, or compare all by --all")


def read_work(ctx: click.Context) -> Work | None:
    """The work to predict; None where none is named. Raises DataError for reviews that cannot be used, and
    ExperimentError for --rates that cannot."""
    asked = ctx.params
    if asked["rows"] is None and not asked["like"]:
        return None
    from experiments.forecast.gpu_rates import LstmClassifier
    from experiments.forecast.preprocessing import WHOLE_TEXTS
    from experiments.forecast.rates import read_rates

    rates = read_rates(asked["rates"]) if asked["rates"] else None
    extent = like.read_extent(ctx) if asked["like"] else None
    if extent:
        low, middle, high = (max(1, round(rows)) for rows in extent.rows)
        sizes: tuple[float, float, float] | None = extent.raw_bytes
    else:
        low = middle = high = asked["rows"]
        sizes = None if asked["raw_bytes"] is None else (asked["raw_bytes"],) * 3
    return Work(
        rows=(low, middle, high),
        raw_bytes=sizes,
        epochs=asked["epochs"],
        global_batch=asked["global_batch"],
        spot=asked["spot"],
        extent=extent,
        rates=rates,
        upload_mbit=asked["upload_mbit"],
        model=_lstm_on(extent) if extent else LstmClassifier(),
        costs=_costs_of(extent) if extent else WHOLE_TEXTS,
    )


def _lstm_on(extent: "Extent") -> "GpuModel":
    """The reference's LSTM on reviews that were looked at, of which it reads the beginnings."""
    from experiments.forecast.gpu_rates import LstmClassifier, reference_operations
    from trainer.config import TrainConfig

    return LstmClassifier(reference_operations(min(extent.words, TrainConfig.row_length)))


def _costs_of(extent: "Extent") -> "DatasetCosts":
    """Of a dataset whose rows are as long as the reviews that were looked at."""
    from experiments.forecast.preprocessing import WHOLE_TEXTS, WORD_BYTES

    row_bytes = WORD_BYTES * extent.words
    merged = row_bytes * extent.rows.middle / extent.raw_bytes.middle
    return replace(WHOLE_TEXTS, row_bytes=row_bytes, merged=merged)


def _makes_datasets(topology: "Topology") -> bool:
    return topology.preprocesses_on_node or topology.preprocessing is not None


def show_here(work: Work, *, as_json: bool) -> int:
    """Print what a training takes on this machine."""
    from bootstrap.cli import predicted
    from experiments.forecast.training import predict_training
    from trainer.options.presets import GLOBAL_BATCH

    assert work.rates is not None
    here = replace(work, global_batch=work.global_batch or GLOBAL_BATCH)
    times = [predict_training(each.training, work.rates) for each in here.works()]
    text = "\n".join([*work.lines(), *predicted.lines_here(times, work.rates)])
    show({**predicted.content_here(times, work.rates), **work.content()}, text, as_json=as_json)
    return 0


def show_choice(work: Work, limits: Mapping[str, float | None], *, measure: bool, as_json: bool) -> int:
    """Print which topologies fit, the cheapest first; `limits`: `most_dollars` and `most_hours`. `measure`: whether to
    measure this machine before. Raises UsageError for --rates of nodes."""
    from bootstrap.cli import predicted
    from bootstrap.lifecycle.plan import retired
    from experiments.forecast.choosing import fitting, pareto_front
    from experiments.forecast.machines import best, plans
    from infra import topology

    if work.rates and work.rates.nodes:
        raise UsageError("with --all, --rates are those of this machine; give the output of `shoal calibrate --local`")
    here = _measured() if measure else None
    able = []
    for name in topology.names(cdk.TOPOLOGIES):
        chosen = topology.load(name, cdk.TOPOLOGIES)
        if chosen.training and not retired(chosen) and (work.raw_bytes is None or _makes_datasets(chosen)):
            able.append(work.on(chosen))
    found = fitting(able, **limits)
    front = pareto_front(found)
    machines = plans(work.works()[1], _REGION, here=here, rates=work.rates)
    alone = best(fitting(machines, **limits))
    text = [*work.lines(), *(predicted.machine_lines(alone, found, here) if alone else [])]
    text += predicted.choice_lines(found, len(able)) if found else [_nothing_fits(able)]
    listed = [{**predicted.content(each), "best": any(each is one for one in front)} for each in found]
    said = {"machines": [each.content() for each in alone], **({"this_machine": asdict(here)} if here else {})}
    show({"topologies": listed, **said, **work.content()}, "\n".join(text), as_json=as_json)
    return int(not (found or alone))


def _measured() -> "MachineSpeed":
    from bootstrap.cli.machine_speed import machine_speed
    from bootstrap.progress import Bars

    with Bars(unit="row") as bars:
        return machine_speed(bars)


def _nothing_fits(able: "Sequence[Prediction]") -> str:
    if not able:
        return "No topology that AWS can start has both a cluster and GPUs; leave out --raw-bytes, or write one."
    cheapest = min(able, key=lambda each: each.dollars.middle)
    fastest = min(able, key=lambda each: each.seconds.middle)
    return (
        f"No topology fits. The cheapest is {cheapest.topology.name} (${cheapest.dollars.middle:,.2f}), the fastest "
        f"{fastest.topology.name} ({fastest.seconds.middle / 3600:,.1f} hours); raise a limit, or train fewer --epochs."
    )
