"""What a topology costs an hour while all of it runs: plain arithmetic on the catalogue's prices.

Easy to get wrong: this is not what a deployment costs all the time. Node groups stand at zero until a training raises
them, and the cluster ends itself when idle; the endpoints are paid for from the first hour to the last.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from infra import catalog, sizing
from infra.topology import Topology

HOURS_A_MONTH = 730
"""By which AWS turns prices by the month into prices by the hour."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the bill: how many, at how many dollars an hour each (us-east-1, on demand)."""

    part: str
    item: str
    quantity: int
    unit_price: float

    @property
    def hourly(self) -> float:
        """Dollars an hour."""
        return self.quantity * self.unit_price


def rows(topology: Topology) -> list[Row]:
    """Every part that is paid for by the hour, all nodes running.

    What is paid for by use is not in it: requests and gigabytes of S3, of the shared folder, and of flow logs.
    """
    return [*_preprocessing(topology), *_training(topology), _endpoints()]


def hourly(topology: Topology) -> float:
    """The sum, in dollars an hour."""
    return sum(row.hourly for row in rows(topology))


def _preprocessing(topology: Topology) -> Iterator[Row]:
    if topology.preprocessing is None:
        return
    primary, core = topology.preprocessing.primary, topology.preprocessing.core
    nodes = 1 + core.count
    for role, instance_type, count in (("primary", primary.instance_type, 1), ("core", core.instance_type, core.count)):
        found = catalog.find(instance_type)
        yield Row(part="preprocessing", item=f"{role} {instance_type}", quantity=count, unit_price=found.price)
        yield Row(part="preprocessing", item=f"EMR on {instance_type}", quantity=count, unit_price=found.emr or 0.0)
    yield _volumes("preprocessing", nodes, sizing.EMR_ROOT_GIB + sizing.EMR_DATA_GIB)


def _training(topology: Topology) -> Iterator[Row]:
    if not topology.training:
        return
    for group in topology.training:
        price = catalog.find(group.instance_type).price
        item = f"{group.name} {group.instance_type}"
        yield Row(part="training", item=item, quantity=group.count, unit_price=price)
    yield _volumes("training", sum(group.count for group in topology.training), sizing.GPU_ROOT_GIB)


def _endpoints() -> Row:
    return Row(
        part="network",
        item="interface endpoint",
        quantity=len(sizing.INTERFACE_ENDPOINTS),
        unit_price=catalog.catalog().prices.interface_endpoint_hour,
    )


def _volumes(part: str, nodes: int, gib: int) -> Row:
    price = gib * catalog.catalog().prices.gp3_gib_month / HOURS_A_MONTH
    return Row(part=part, item=f"volumes of {gib} GiB", quantity=nodes, unit_price=price)
