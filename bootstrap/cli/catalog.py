"""`shoal catalog`: the instance types that a topology may name, and what they cost."""

from typing import TYPE_CHECKING

from bootstrap.cli.command import command, option
from bootstrap.cli.output import json_option, say, show, table
from common.errors import UsageError

if TYPE_CHECKING:
    from infra.catalog import InstanceType, PriceList

_COLUMNS = ("type", "vCPU", "GiB", "GPU", "capability", "Gbit/s", "with EFA", "zones", "$/h", "EMR $/h")
_RETIRED = ("retired", "since", "take instead")


@command(
    short_help="list instance types and their prices",
    help="List the instance types that a topology may name: hardware, the zones that offer it, price on demand, what "
    "EMR adds, and what to take instead of a type that AWS has retired.",
    epilog="Example: shoal catalog --gpu",
)
@option("--region", default="us-east-1", metavar="R", help="the region of the prices (default: us-east-1)")
@option("--gpu", is_flag=True, help="only types with a GPU, for training")
@option("--emr", is_flag=True, help="only types for preprocessing")
@json_option
def run(region: str, gpu: bool, emr: bool, as_json: bool) -> int:
    from infra import catalog
    from infra.parts import known_region

    if gpu and emr:
        raise UsageError("--gpu and --emr contradict each other; give one of them")
    try:
        known_region(region)
    except ValueError as error:
        raise UsageError(str(error)) from None
    prices = catalog.prices(region)
    types = [
        each
        for each in catalog.catalog().types.values()
        if not (gpu and each.gpu is None) and not (emr and not each.runs_emr)
    ]
    content = {
        "region": prices.region,
        "date": prices.date,
        "source": prices.source,
        "types": [
            {
                **each.model_dump(),
                "zones": prices.zones.get(each.name, ()),
                "hourly": prices.instances.get(each.name),
                "emr_hourly": prices.emr.get(each.name),
            }
            for each in types
        ],
    }
    parts = [table([_row(each, prices) for each in types], _COLUMNS)]
    if gone := [(each.name, each.retired.since, each.retired.successor) for each in types if each.retired]:
        parts.append(table(gone, _RETIRED))
    show(content, "\n\n".join(parts), as_json=as_json)
    say(f"prices of {prices.region}, {prices.date} ({prices.source})")
    return 0


def _row(found: "InstanceType", prices: "PriceList") -> tuple[str, ...]:
    gpu = found.gpu
    return (
        found.name,
        str(found.vcpu),
        f"{found.memory:g}",
        f"{gpu.count} x {gpu.name}, {gpu.memory:g} GiB" if gpu else "",
        gpu.capability if gpu else "",
        f"{found.network:g}",
        f"{found.efa.network:g}" if found.efa else "",
        " ".join(zone.rpartition("-")[2] for zone in prices.zones.get(found.name, ())),
        _price(prices.instances.get(found.name)),
        _price(prices.emr.get(found.name)),
    )


def _price(dollars: float | None) -> str:
    return "" if dollars is None else f"{dollars:g}"
