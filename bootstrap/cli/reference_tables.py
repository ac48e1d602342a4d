"""The reference's tables (`shoal report --reference`), for a person and for a program."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from bootstrap.cli.output import percent, table
from experiments import reference


def lines() -> Iterator[str]:
    yield "Training, 10 epochs. Dollars of the GPU instances: as published, computed in its rounding (hours to"
    yield "hundredths), and exactly. Speed-up to one M60; share of the sum of the GPUs' own rates."
    yield ""
    yield table(
        [
            (
                each.name,
                f"{each.seconds:,}",
                f"{each.seconds / 3600:.2f}",
                each.published,
                str(reference.rounded_price(each)),
                f"{reference.exact_price(each):.2f}",
                f"{reference.speed_up(each):.2f}",
                percent(reference.share_of_ideal(each)),
            )
            for each in reference.TRAININGS
        ],
        ("cluster", "seconds", "hours", "published", "its rounding", "exact", "speed-up", "share of ideal"),
        right=range(1, 8),
        ruled=True,
    )
    yield ""
    yield "Its fifth row prices one of the two machines that ran. Mixed GPUs reach, without and with its balancer:"
    for alone, balanced in zip(_mixed("off"), _mixed("epoch:1"), strict=True):
        yield (
            f"  {alone.name}: {percent(reference.share_of_ideal(alone))} and "
            f"{percent(reference.share_of_ideal(balanced))} of their own rates, which would take "
            f"{reference.least_seconds(balanced):,.0f} seconds"
        )
    yield ""
    yield f"Preprocessing of {reference.RAW_GB} GB on m4.xlarge. Speed-up to the fewest nodes that did as much."
    yield ""
    yield table(
        [
            (
                f"{each.share:.0%}",
                str(each.nodes),
                "failed" if each.minutes is None else str(each.minutes),
                _number(each.speed_up, ".2f"),
                f"{each.times_the_nodes:g}",
                _number(each.mb_a_second, ".1f"),
                _number(each.mb_a_vcpu_second, ".3f"),
            )
            for each in reference.preprocessing()
        ],
        ("data", "nodes", "minutes", "speed-up", "times the nodes", "MB/s", "MB/s a vCPU"),
        right=range(1, 7),
        ruled=True,
    )
    yield ""
    yield "Its baseline, by epoch, on one M60:"
    yield ""
    yield table(
        [
            (str(epoch), f"{seconds:,}", f"{accuracy:.2%}", f"{f1:.2f}")
            for epoch, (seconds, accuracy, f1) in enumerate(reference.BASELINE, 1)
        ],
        ("epoch", "seconds", "accuracy", "F1"),
        right=range(4),
        ruled=True,
    )
    yield ""
    yield "Four M60 on one, two and four nodes, with the speed-up to one M60 as published:"
    yield ""
    yield table(
        [tuple(map(str, row)) for row in reference.DISTRIBUTIONS],
        ("nodes", "GPUs a node", "minutes an epoch", "speed-up"),
        right=range(4),
        ruled=True,
    )


def content() -> dict[str, Any]:
    return {
        "trainings": [
            {
                **asdict(each),
                "rounded_price": float(reference.rounded_price(each)),
                "exact_price": reference.exact_price(each),
                "speed_up": reference.speed_up(each),
                "share_of_ideal": reference.share_of_ideal(each),
            }
            for each in reference.TRAININGS
        ],
        "preprocessing": [
            {**asdict(each), "mb_a_vcpu_second": each.mb_a_vcpu_second} for each in reference.preprocessing()
        ],
        "baseline": [
            {"epoch": epoch, "seconds": seconds, "accuracy": accuracy, "f1": f1}
            for epoch, (seconds, accuracy, f1) in enumerate(reference.BASELINE, 1)
        ],
        "distributions": [
            {"nodes": nodes, "gpus_a_node": gpus, "minutes_an_epoch": float(minutes), "speed_up": float(speed_up)}
            for nodes, gpus, minutes, speed_up in reference.DISTRIBUTIONS
        ],
    }


def _mixed(how: str) -> list[reference.Training]:
    """Its trainings on mixed GPUs with this balancer, the smaller cluster first."""
    found = [each for each in reference.TRAININGS if len(each.gpus) > 1 and each.options == f"--balance {how}"]
    return sorted(found, key=lambda each: sum(each.gpus.values()))


def _number(value: float | None, form: str) -> str:
    return "" if value is None else f"{value:{form}}"
