"""`shoal catalog`: the instance types that a topology may name, and what they cost."""

import datetime
from typing import TYPE_CHECKING

from bootstrap.cli.command import command, option
from bootstrap.cli.output import json_option, say, show, summary, table
from bootstrap.errors import UsageError
from corpus.display import plural

if TYPE_CHECKING:
    from bootstrap.lifecycle.catalog_refresh import PriceRefresh
    from infra.catalog import InstanceType, PriceList

_COLUMNS = ("type", "vCPU", "GiB", "GPU", "capability", "$/h", "EMR $/h")
_RETIRED = ("retired", "since", "take instead")


@command(
    short_help="list instance types and their prices",
    help="List the instance types that a topology may name: hardware, price on demand, what EMR adds, and what to take "
    "instead of a type that AWS has retired.",
    epilog="Example: shoal catalog --gpu",
)
@option("--region", default="us-east-1", metavar="R", help="the region of the prices (default: us-east-1)")
@option("--gpu", is_flag=True, help="only types with a GPU, for training")
@option("--emr", is_flag=True, help="only types for preprocessing")
@option(
    "--refresh",
    is_flag=True,
    help="ask AWS for today's prices and offerings, and add them to infra/prices/R.yaml (free; needs credentials)",
)
@option("--dry-run", is_flag=True, help="with --refresh: print what differs, write nothing")
@json_option
def run(region: str, gpu: bool, emr: bool, refresh: bool, dry_run: bool, as_json: bool) -> int:
    """Run `shoal catalog`."""
    from infra.parts import known_region

    if gpu and emr:
        raise UsageError("--gpu and --emr contradict each other; give one of them")
    if dry_run and not refresh:
        raise UsageError("--dry-run goes with --refresh; without it nothing is written anyway")
    try:
        known_region(region)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if refresh:
        _refresh(region, dry_run=dry_run, as_json=as_json)
    else:
        _list(region, gpu=gpu, emr=emr, as_json=as_json)
    return 0


def _list(region: str, *, gpu: bool, emr: bool, as_json: bool) -> None:
    from infra import catalog

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
            {**each.model_dump(), "hourly": prices.instances.get(each.name), "emr_hourly": prices.emr.get(each.name)}
            for each in types
        ],
    }
    parts = [table([_row(each, prices) for each in types], _COLUMNS)]
    if gone := [(each.name, each.retired.since, each.retired.successor) for each in types if each.retired]:
        parts.append(table(gone, _RETIRED))
    show(content, "\n\n".join(parts), as_json=as_json)
    say(f"prices of {prices.region}, {prices.date} ({prices.source})")


def _row(found: "InstanceType", prices: "PriceList") -> tuple[str, ...]:
    gpu = found.gpu
    return (
        found.name,
        str(found.vcpu),
        f"{found.memory:g}",
        f"{gpu.count} x {gpu.name}, {gpu.memory:g} GiB" if gpu else "",
        gpu.capability if gpu else "",
        _price(prices.instances.get(found.name)),
        _price(prices.emr.get(found.name)),
    )


def _refresh(region: str, *, dry_run: bool, as_json: bool) -> None:
    from bootstrap.aws.account import connect
    from bootstrap.lifecycle import catalog_refresh
    from infra.catalog import PRICES

    say(f"asking AWS for the prices of {region} ...")
    today = datetime.datetime.now(datetime.UTC).date()
    found = catalog_refresh.ask_aws(connect(), region, today=today, folder=PRICES)
    changes = found.changes
    path = catalog_refresh.append(found.today, folder=PRICES) if changes and not dry_run else None
    content = {
        "region": region,
        "date": today,
        "before": found.before.date if found.before else None,
        "changes": [{"item": each.item, "before": each.before, "after": each.after} for each in changes],
        "kept": list(found.kept),
        "written": path,
    }
    rows = [(each.item, f"{_price(each.before) or 'none'} -> {_price(each.after) or 'none'}") for each in changes]
    summary(content, rows, as_json=as_json)
    say(_outcome(found, len(changes)))
    for name in found.kept:
        say(f"AWS reported no price for {name}; the earlier price stays")
    if path:
        say(f"written to {path}")
    elif changes:
        say("nothing was written (--dry-run)")


def _outcome(found: "PriceRefresh", changes: int) -> str:
    if found.before is None:
        return f"the first list for {found.today.region}: {plural(changes, 'price')}"
    if not changes:
        return f"the list of {found.before.date} is still right; nothing was written"
    return f"{plural(changes, 'price')} differ{'s' if changes == 1 else ''} from the list of {found.before.date}"


def _price(dollars: float | None) -> str:
    return "" if dollars is None else f"{dollars:g}"
