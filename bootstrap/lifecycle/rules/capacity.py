"""The rule on whether this user may start GPU nodes."""

import re
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.lifecycle.rules import PreflightContext
from infra import catalog

_DENIED = re.compile(r"not authorized to perform: ([a-z0-9-]+:\w+)")
"""The denied action: EC2 refuses a request also because of what it needs of another service."""


def may_not_start(context: PreflightContext) -> Iterator[str]:
    """Each type of a node group of which EC2 reports for a dry run that this user cannot start its nodes."""
    for group, kind in ((each, kind) for each in context.topology.training for kind in each.types):
        if catalog.find(kind).retired:
            continue
        image = group.image or f"resolve:ssm:{catalog.image_of(kind).parameter}"
        request: dict[str, Any] = {
            "DryRun": True,
            "ImageId": image,
            "InstanceType": kind,
            "MinCount": 1,
            "MaxCount": 1,
        }
        if group.market != "on-demand":
            request["InstanceMarketOptions"] = {"MarketType": group.market}
        if group.reservation:
            target = {"CapacityReservationTarget": {"CapacityReservationId": group.reservation}}
            request["CapacityReservationSpecification"] = target
        if context.topology.network.subnet:
            request["SubnetId"] = context.topology.network.subnet
        try:
            context.account.client("ec2").run_instances(**request)
        except ClientError as error:
            code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
            if code == "DryRunOperation":
                continue
            denied = _DENIED.search(message)
            if code == "UnauthorizedOperation" and (denied is None or denied[1] == "ec2:RunInstances"):
                yield (
                    f"{kind} ({group.name}): your credentials may not start it (ec2:RunInstances); "
                    "ask your account's administrator for that permission."
                )
            elif code.startswith(("InvalidAMI", "InvalidParameterValue", "Unsupported")):
                yield f"{kind} ({group.name}): EC2 would not start it from {image}: {message}"
            else:
                raise
