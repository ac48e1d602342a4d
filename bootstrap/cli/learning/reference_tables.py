"""The reference's tables (`shoal report --reference`)."""

from dataclasses import asdict

from bootstrap.cli.output import Result, Table
from experiments import reference


def result() -> Result:
    content = {
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
    return Result(
        content,
        [
            "Training, 10 epochs. Dollars of the GPU instances: as published, computed in its rounding (hours to "
            "hundredths), and exactly; its fifth row prices one of the two machines that ran. Speed-up to one M60; "
            "share of the sum of the GPUs' own rates.",
            Table(
                "trainings",
                {
                    "cluster": "{name}",
                    "seconds": "{seconds:,}",
                    "published": "{published}",
                    "its rounding": "{rounded_price:.2f}",
                    "exact": "{exact_price:.2f}",
                    "speed-up": "{speed_up:.2f}",
                    "share of ideal": "{share_of_ideal:percent}",
                    "options": "{options}",
                },
            ),
            f"Preprocessing of {reference.RAW_GB} GB on m4.xlarge. Speed-up to the fewest nodes that did as much.",
            Table(
                "preprocessing",
                {
                    "data": "{share:.0%}",
                    "nodes": "{nodes}",
                    "minutes": lambda row: "failed" if row["minutes"] is None else str(row["minutes"]),
                    "speed-up": "{speed_up:.2f}",
                    "times the nodes": "{times_the_nodes:g}",
                    "MB/s": "{mb_a_second:.1f}",
                    "MB/s a vCPU": "{mb_a_vcpu_second:.3f}",
                },
            ),
            "Its baseline, by epoch, on one M60:",
            Table(
                "baseline",
                {"epoch": "{epoch}", "seconds": "{seconds:,}", "accuracy": "{accuracy:.2%}", "F1": "{f1:.2f}"},
            ),
            "Four M60 on one, two and four nodes, with the speed-up to one M60 as published:",
            Table(
                "distributions",
                {
                    "nodes": "{nodes}",
                    "GPUs a node": "{gpus_a_node}",
                    "minutes an epoch": "{minutes_an_epoch}",
                    "speed-up": "{speed_up}",
                },
            ),
        ],
    )
