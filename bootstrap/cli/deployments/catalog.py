"""`shoal catalog`: lists the instance types that a topology can use, and their prices."""

from bootstrap.cli.command import command, option
from bootstrap.cli.output import Result, Table
from common.errors import UsageError

_TYPES = Table(
    "types",
    {
        "type": "{name}",
        "vCPU": "{vcpu}",
        "GiB": "{memory:g}",
        "GPU": "{gpu.count} x {gpu.name}, {gpu.memory:g} GiB",
        "capability": "{gpu.capability}",
        "Gbit/s": "{network:g}",
        "with EFA": "{efa.network:g}",
        "zones": lambda each: " ".join(zone.rpartition("-")[2] for zone in each["zones"]),
        "$/h": "{hourly:g}",
        "EMR $/h": "{emr_hourly:g}",
        "retired": "since {retired.since}; use {retired.successor}",
    },
)


@command(
    help="List the instance types that a topology can use: hardware, availability zones, on-demand price, EMR's "
    "surcharge, and replacements of retired types.",
    epilog="Example: shoal catalog --gpu",
)
@option("--region", default="us-east-1", metavar="R", help="region of the prices (default: us-east-1)")
@option("--gpu", is_flag=True, help="list only instance types with GPUs")
def run(region: str, gpu: bool) -> Result:
    from infra import catalog
    from infra.parts import known_region

    try:
        known_region(region)
    except ValueError as error:
        raise UsageError(str(error)) from None
    prices = catalog.prices(region)
    hint = "" if prices.instances else f"; `make prices REGION={region}` fetches current prices, with AWS credentials"
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
            for each in catalog.catalog().types.values()
            if each.gpu is not None or not gpu
        ],
    }
    return Result(content, [_TYPES, f"prices of {prices.region}, {prices.date} ({prices.source}{hint})"])
