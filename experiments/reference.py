"""The reference's measurements, and its tables computed from them.

The reference is a students' project: "Large-Scale Distributed Sentiment Analysis with RNN", which trained an LSTM for
10 epochs on 21.3 million reviews, on clusters of GPUs that AWS has since retired. Seconds, minutes and accuracies are
as it published them; speed-ups, shares and prices are computed here, beside those that it published.

Do not take its prices for exact: it rounds hours to hundredths before it multiplies, and its fifth row prices one of
the two machines that ran.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from infra import catalog

EPOCHS = 10
ROWS = 21_300_000
"""Distinct reviews, of which it trained on nine tenths."""
TRAINED_ROWS = int(0.9 * ROWS)
RAW_GB = 92.45
VCPUS_OF_A_NODE = 4
"""Of an m4.xlarge, on which it preprocessed."""
_REGION, _DAY = "us-east-1", datetime.date(2019, 5, 1)


@dataclass(frozen=True, kw_only=True)
class Training:
    """A row of its table of prices: 10 epochs on a cluster."""

    name: str
    nodes: Mapping[str, int]
    """Number of nodes by instance type."""
    gpus: Mapping[str, int]
    """Number of GPUs that trained, by the instance type of a single one: g3.4xlarge (M60) or p2.xlarge (K80)."""
    seconds: int
    published: str
    """Its price in dollars, as published."""
    priced: Mapping[str, int] | None = None
    """The nodes that it priced, where these are not those that ran."""
    topology: str
    options: str = ""
    """Of `shoal train`, besides --preset reference."""


_M60, _K80, _FOUR_M60 = "g3.4xlarge", "p2.xlarge", "g3.16xlarge"
_OFF, _DYNAMIC = "--balance off", "--balance epoch:1"

TRAININGS = (
    Training(
        name="Single g3.4xlarge", nodes={_M60: 1}, gpus={_M60: 1}, seconds=35_920, published="11.38",
        topology="reference-1g3",
    ),
    Training(
        name="Single p2.xlarge", nodes={_K80: 1}, gpus={_K80: 1}, seconds=63_923, published="15.98",
        topology="reference-1p2",
    ),
    Training(
        name="Single g3.16xlarge", nodes={_FOUR_M60: 1}, gpus={_M60: 4}, seconds=13_156, published="16.64",
        topology="reference-1g3x16",
    ),
    Training(
        name="Two g3.4xlarge", nodes={_M60: 2}, gpus={_M60: 2}, seconds=24_316, published="15.39",
        topology="reference-2g3", options=_OFF,
    ),
    Training(
        name="Two g3.16xlarge with 2 GPU only", nodes={_FOUR_M60: 2}, gpus={_M60: 4}, seconds=15_820,
        published="20.02", priced={_FOUR_M60: 1}, topology="reference-2g3x16-2gpu", options=_OFF,
    ),
    Training(
        name="Four g3.4xlarge", nodes={_M60: 4}, gpus={_M60: 4}, seconds=13_973, published="17.69",
        topology="reference-4g3", options=_OFF,
    ),
    Training(
        name="Two g3.16xlarge", nodes={_FOUR_M60: 2}, gpus={_M60: 8}, seconds=9_531, published="24.17",
        topology="reference-2g3x16", options=_OFF,
    ),
    Training(
        name="Three g3.4xlarge + one p2.xlarge", nodes={_M60: 3, _K80: 1}, gpus={_M60: 3, _K80: 1}, seconds=24_256,
        published="29.12", topology="reference-3g3-1p2", options=_OFF,
    ),
    Training(
        name="Three g3.4xlarge + one p2.xlarge + dynamic", nodes={_M60: 3, _K80: 1}, gpus={_M60: 3, _K80: 1},
        seconds=23_007, published="27.60", topology="reference-3g3-1p2", options=_DYNAMIC,
    ),
    Training(
        name="One g3.4xlarge + one p2.xlarge", nodes={_M60: 1, _K80: 1}, gpus={_M60: 1, _K80: 1}, seconds=39_382,
        published="22.32", topology="reference-1g3-1p2", options=_OFF,
    ),
    Training(
        name="One g3.4xlarge + one p2.xlarge + dynamic", nodes={_M60: 1, _K80: 1}, gpus={_M60: 1, _K80: 1},
        seconds=37_503, published="21.26", topology="reference-1g3-1p2", options=_DYNAMIC,
    ),
)  # fmt: skip
"""In its order."""

PREPROCESSING: Mapping[tuple[float, int], int | None] = {
    (0.25, 2): 99, (0.25, 4): 28, (0.25, 8): 14,
    (0.5, 2): None, (0.5, 4): 51, (0.5, 8): 30,
    (1.0, 2): None, (1.0, 4): None, (1.0, 8): 55,
}  # fmt: skip
"""Minutes by share of the raw data and m4.xlarge nodes; None: it failed."""

BASELINE = (
    (3840, 0.8141, 0.85), (3542, 0.8348, 0.86), (3572, 0.8359, 0.86), (3570, 0.8373, 0.86), (3605, 0.8436, 0.86),
    (3534, 0.8429, 0.86), (3564, 0.8422, 0.86), (3564, 0.8476, 0.86), (3544, 0.8443, 0.86), (3573, 0.8496, 0.86),
)  # fmt: skip
"""Seconds, accuracy and F1 on the test rows, by epoch, on one M60."""

DISTRIBUTIONS = ((1, 4, "21.9", "2.73"), (2, 2, "26.4", "2.27"), (4, 1, "23.3", "2.57"))
"""Four M60 on so many nodes, so many each: minutes an epoch, and the speed-up, as published."""


def rounded_price(training: Training) -> Decimal:
    """Its price in its own rounding: hours to hundredths, times the price of what it priced, to the cent."""
    hours = _cents(Decimal(training.seconds) / 3600)
    return _cents(hours * sum(Decimal(str(rate)) for rate in _rates(training.priced or training.nodes)))


def exact_price(training: Training) -> float:
    """Dollars of all nodes that ran, for the seconds that they ran."""
    return training.seconds / 3600 * sum(_rates(training.nodes))


def speed_up(training: Training) -> float:
    """How many times as fast as one M60 it was."""
    return _alone(_M60) / training.seconds


def share_of_ideal(training: Training) -> float:
    """Its rate over the sum of its GPUs' own rates, those of each kind alone."""
    return 1 / training.seconds / sum(count / _alone(gpu) for gpu, count in training.gpus.items())


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    share: float
    nodes: int
    minutes: int | None
    """None: it failed."""
    speed_up: float | None
    """To the smallest number of nodes that did as much."""
    times_the_nodes: float
    """So many times the nodes of that number."""
    mb_a_second: float | None

    @property
    def mb_a_vcpu_second(self) -> float | None:
        """Megabytes of raw input a second and vCPU."""
        return self.mb_a_second and self.mb_a_second / (self.nodes * VCPUS_OF_A_NODE)


def preprocessing() -> list[Preprocessing]:
    """Its preprocessing by share and nodes, with the speed-up and the throughput."""
    found = []
    for (share, nodes), minutes in PREPROCESSING.items():
        fewest, longest = next(
            (count, spent) for (part, count), spent in PREPROCESSING.items() if part == share and spent is not None
        )
        found.append(
            Preprocessing(
                share=share,
                nodes=nodes,
                minutes=minutes,
                speed_up=None if minutes is None else longest / minutes,
                times_the_nodes=nodes / fewest,
                mb_a_second=None if minutes is None else share * RAW_GB * 1000 / (60 * minutes),
            )
        )
    return found


def _alone(gpu: str) -> int:
    """Seconds of one GPU of this kind."""
    return next(each.seconds for each in TRAININGS if each.gpus == {gpu: 1})


def _rates(nodes: Mapping[str, int]) -> Sequence[float]:
    """Dollars an hour of each group of nodes, by the price list of its time."""
    prices = catalog.prices(_REGION, on=_DAY)
    return [count * prices.hourly(name) for name, count in nodes.items()]


def _cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
