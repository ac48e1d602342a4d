"""`shoal catalog`: the instance types that a topology may name, and what they cost."""

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
        "retired": "since {retired.since}; take {retired.successor}",
    },
)


@command(
    help="List the instance types that a topology may name: hardware, the zones that offer it, price on demand, what "
    "EMR adds, and what to take instead of a type that AWS has retired.",
    epilog="Example: shoal catalog --gpu",
)
@option("--region", default="us-east-1", metavar="R", help="the region of the prices (default: us-east-1)")
@option("--gpu", is_flag=True, help="only types with a GPU, for training")
@option("--emr", is_flag=True, help="only types for preprocessing")
def run(region: str, gpu: bool, emr: bool) -> Result:
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
    return Result(content, [_TYPES, f"prices of {prices.region}, {prices.date} ({prices.source})"])
