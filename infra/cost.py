"""Computes the hourly cost of a topology from the price list of its region.

The sum of all rows is the hourly cost while everything runs. Not everything runs all the time. Node groups have no
nodes until a training run starts them, and the guard terminates an idle cluster. The field `since` of a row says when
the item costs money.

An unknown price counts as 0, so a sum is a lower bound. If `unknown` returns items, tell the user that their prices are
missing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from infra import catalog, sizing
from infra.catalog import PriceList
from infra.parts import default_name
from infra.topology import Topology
from infra.topology_error import TopologyError

Since = Literal["always", "deploy", "train"]
_IN_ADVANCE = " (a Capacity Block, paid in advance; maximum price)"
JOBS = "jobs"
"""Value of `Row.part` for SageMaker training jobs."""
READING = "reading"
"""Value of `Row.part` for readers. Readers run only while a run trains on a text stream."""
EMR_GIB = sizing.EMR_ROOT_GIB + sizing.EMR_DATA_GIB


@dataclass(frozen=True, kw_only=True)
class Row:
    """Row of the cost table: `quantity` items, each at `unit_price` dollars per hour."""

    part: str
    item: str
    quantity: int
    unit_price: float | None
    """Dollars per hour, or None if the price is unknown."""
    since: Since
    """When the item costs money. always: while the stack exists; deploy: from the deployment until the guard terminates
    the idle item; train: during a training run."""
    cheapest: float | None = None
    """Price of the cheapest type, if the item can have several instance types. `unit_price` is then the price of the
    most expensive type."""
    at_most: bool = False
    """Whether the item is spot instances. Then `unit_price` is the on-demand price, which is the upper limit of the
    spot price."""
    instance: bool = False
    """Whether the item is EC2 instances, and not a surcharge, a volume or a service."""

    @property
    def hourly(self) -> float:
        """Dollars per hour for all units of the row. 0 if the price is unknown."""
        return self.quantity * (self.unit_price or 0.0)


@dataclass(frozen=True, kw_only=True)
class ByUse:
    """Item that is charged by use, not by the hour."""

    item: str
    price: float | None
    """Dollars per unit, or None if the price is unknown."""
    unit: str


def rows(topology: Topology) -> list[Row]:
    """Return one row for each item that is charged by the hour, if all nodes run."""
    prices = catalog.prices(topology.region)
    return [
        *_preprocessing(topology, prices),
        *_training(topology, prices),
        *_managed(topology, prices),
        *_network(topology, prices),
    ]


def unknown(topology: Topology) -> list[str]:
    """Return the distinct names of items that are charged by the hour and have no known price."""
    return list(dict.fromkeys(row.item for row in rows(topology) if row.unit_price is None))


def known(price: Callable[..., float], *of: object) -> float | None:
    """Return `price(*of)`, or None if the price list lacks this price."""
    try:
        return price(*of)
    except TopologyError:
        return None


def hourly(topology: Topology) -> float:
    """Return the cost of the topology in dollars per hour while everything runs."""
    return sum(row.hourly for row in rows(topology))


def hourly_fixed(topology: Topology) -> float:
    """Return the dollars per hour of the items that cost money as long as the stack exists."""
    return sum(row.hourly for row in rows(topology) if row.since == "always")


def hourly_of_run(topology: Topology) -> float:
    """Return the dollars per hour of the nodes or SageMaker jobs that train. Raises TopologyError if a price is
    missing."""
    prices, managed = catalog.prices(topology.region), topology.managed
    if managed and not topology.training:
        return managed.count * prices.managed_hourly(managed.ec2_type)
    return sum(group.count * max(training_node(name, prices) for name in group.types) for group in topology.trainers)


def by_use(topology: Topology) -> list[ByUse]:
    """Return the items that are charged by use, with their prices."""
    prices = catalog.prices(topology.region).other
    items = [ByUse(item="S3 storage", price=prices.s3_gib_month, unit="GiB a month")]
    if topology.share == "efs":
        items += [
            ByUse(item="EFS storage", price=prices.efs_gib_month, unit="GiB a month"),
            ByUse(item="EFS reads", price=prices.efs_read_gib, unit="GiB"),
            ByUse(item="EFS writes", price=prices.efs_write_gib, unit="GiB"),
        ]
    if topology.network.egress == "nat":
        items.append(ByUse(item="NAT gateway traffic", price=prices.nat_gib, unit="GiB"))
    return items


def training_node(instance_type: str, prices: PriceList) -> float:
    """Return the on-demand price, in dollars per hour, of a training node or a reader with its volume.

    Raises TopologyError if a price is missing.
    """
    return prices.hourly(instance_type) + prices.volume_hourly(sizing.GPU_ROOT_GIB)


def emr_node(instance_type: str, prices: PriceList) -> float:
    """Return the on-demand price, in dollars per hour, of an EMR node with its volumes.

    Raises TopologyError if a price is missing.
    """
    return prices.hourly(instance_type) + prices.emr_hourly(instance_type) + prices.volume_hourly(EMR_GIB)


def _preprocessing(topology: Topology, prices: PriceList) -> Iterator[Row]:
    cluster = topology.preprocessing
    if cluster is None:
        return
    for role, name, count, market in cluster.groups:
        yield Row(
            part="preprocessing",
            item=f"{role} {name}",
            quantity=count,
            unit_price=known(prices.hourly, name),
            since="deploy",
            at_most=market == "spot",
            instance=True,
        )
        yield Row(
            part="preprocessing",
            item=f"EMR on {name}",
            quantity=count,
            unit_price=known(prices.emr_hourly, name),
            since="deploy",
        )
    nodes = sum(count for _, _, count, _ in cluster.groups)
    yield _volumes("preprocessing", nodes, EMR_GIB, prices, since="deploy")


def _training(topology: Topology, prices: PriceList) -> Iterator[Row]:
    for group in topology.training:
        since: Since = group.start
        part = READING if group.role == "read" else "training"
        own_name = "" if group.name == default_name(group.instance_type) else f"{group.name} "
        each = [price for name in group.types if (price := known(prices.hourly, name)) is not None]
        yield Row(
            part=part,
            item=f"{own_name}{' or '.join(group.types)}{_IN_ADVANCE if group.market == 'capacity-block' else ''}",
            quantity=group.count,
            unit_price=max(each) if len(each) == len(group.types) else None,
            cheapest=min(each) if len(each) > 1 else None,
            since=since,
            at_most=group.market == "spot",
            instance=True,
        )
        yield _volumes(part, group.count, sizing.GPU_ROOT_GIB, prices, since=since)


def _managed(topology: Topology, prices: PriceList) -> Iterator[Row]:
    if (spec := topology.managed) is not None:
        yield Row(
            part=JOBS,
            item=f"{spec.instance_type} of SageMaker",
            quantity=spec.count,
            unit_price=known(prices.managed_hourly, spec.ec2_type),
            since="train",
            at_most=spec.market == "spot",
            instance=True,
        )


def _network(topology: Topology, prices: PriceList) -> Iterator[Row]:
    if topology.network.vpc is not None or not topology.has_nodes:
        return
    parts = []
    if topology.network.shell:
        parts = [("interface endpoint", len(sizing.INTERFACE_ENDPOINTS), prices.other.interface_endpoint_hour)]
    if topology.network.egress == "nat":
        parts = [
            ("NAT gateway", 1, prices.other.nat_gateway_hour),
            ("public address of the NAT gateway", 1, prices.other.public_ipv4_hour),
        ]
    for item, quantity, price in parts:
        yield Row(part="network", item=item, quantity=quantity, unit_price=price, since="always")


def _volumes(part: str, nodes: int, gib: int, prices: PriceList, *, since: Since) -> Row:
    price = known(prices.volume_hourly, gib)
    return Row(part=part, item=f"volumes of {gib} GiB", quantity=nodes, unit_price=price, since=since)
