"""Existing deployment: the outputs and tags of its stack, and a session for its region.

Do not read the topology file here, because it might have changed since the deployment.
"""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from common import names
from common.errors import ShoalError
from corpus.reading.s3 import S3Path, place_of
from infra import addresses, topology
from shoal.aws import stacks
from shoal.aws.account import Account, ask_other_regions, read_tags, reason_of


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """Existing deployment. `outputs` maps the names of the stack's outputs to their values."""

    name: str
    topology: str
    session: boto3.Session
    outputs: dict[str, str]
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of the stack. CloudFormation adds them to all resources of the stack."""

    def output(self, name: str) -> str:
        """Return the value of an output of the stack. Raises ShoalError if the output is missing, because its resources
        are not in the topology."""
        try:
            return self.outputs[name]
        except KeyError:
            raise ShoalError(
                f"the deployment '{self.name}' has no stack output {name}, because its topology "
                f"'{self.topology}' leaves that resource out"
            ) from None

    @property
    def share(self) -> Literal["efs", "nfs"] | None:
        """File system of the folder that all GPU nodes share. None if each node has its own folder."""
        share_id = self.outputs.get(names.OUTPUT_SHARE_ID)
        return None if share_id is None else "nfs" if share_id == "nfs" else "efs"

    @property
    def max_dollars(self) -> float | None:
        """Maximum cost of a run's nodes in dollars, unless --max-dollars sets a different maximum. None if there is no
        limit.

        Raises ShoalError if the output is not a valid amount, because an unreadable limit must not be ignored.
        """
        text = self.outputs.get(names.OUTPUT_MAX_DOLLARS)
        if text is None:
            return None
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        if not 0 < amount < math.inf:
            raise ShoalError(
                f"the output {names.OUTPUT_MAX_DOLLARS} of the deployment '{self.name}' is {text!r}, "
                "which is not an amount of dollars; deploy again, or add --max-dollars"
            )
        return amount

    def limit_of(self, most: float) -> str:
        """Return the beginning of a message: the setting that limits a run to `most` dollars, and this amount."""
        named = f"max_dollars of the topology '{self.topology}'" if most == self.max_dollars else "--max-dollars"
        return f"{named} is {most:g}"

    def require_readable(self, address: str, *own: str, under: Sequence[str] = ("",)) -> S3Path:
        """Return the bucket and key of an address, after checking that the deployment's nodes can read it.

        Nodes can read some of the deployment's buckets and everything in the topology's `inputs`. `own` lists the stack
        outputs that name these buckets, and `under` lists the key prefixes in them that nodes are allowed to read. The
        EMR cluster can read the whole raw bucket and the whole data bucket. In the data bucket, GPU nodes can read only
        datasets and runs. GPU nodes can read texts only from `inputs`.

        Raises ShoalError if nodes cannot read the address; the message names the entry to add to `inputs`. Raises
        DataError if the address is invalid.
        """
        place = place_of(address)
        read = [S3Path(self.output(name), prefix) for name in own for prefix in under]
        named = self.outputs.get(names.OUTPUT_INPUTS, "").split()
        ours = any(place.bucket == each.bucket and place.key.startswith(each.key) for each in read)
        if not ours and not any(addresses.contains(each, address) for each in named):
            or_copied = f", or copy the data to {' or '.join(map(str, read))}" if read else ""
            raise ShoalError(
                f"the nodes of the deployment '{self.name}' cannot read {address}; add {addresses.narrowest(address)} "
                f"to `inputs` of its topology '{self.topology}' and deploy again{or_copied}"
            )
        return place


def find_deployment(name: str, account: Account | None = None) -> Deployment:
    """Return the deployment of this name. Raises ShoalError if the deployment does not exist or its stack is not in a
    complete state."""
    account = account or Account()
    stack = stacks.describe(account.client("cloudformation"), topology.stack_name(name))
    if stack is None:
        raise no_such_deployment(name, account)
    if stack["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"):
        raise ShoalError(
            f"the deployment '{name}' is in state {stack['StackStatus']}; wait until it is complete, or deploy again"
        )
    tags = read_tags(stack.get("Tags"))
    _owner, topology_name = stacks.owner_and_topology(stack) or ("", name)
    return Deployment(
        name=name, topology=topology_name, session=account.session, outputs=stacks.outputs(stack), tags=tags
    )


def list_stacks(account: Account) -> tuple[dict[str, list[Any]], str]:
    """Return by region the stacks of deployments, with those that were deleted in the last 90 days, and a text that
    names the regions that could not be checked. The account's region comes first."""
    elsewhere, unchecked = ask_other_regions(account, _stacks)
    return {account.region: _stacks(account.client("cloudformation")), **elsewhere}, unchecked


def _stacks(cloudformation: Any) -> list[Any]:
    return [
        each
        for page in cloudformation.get_paginator("list_stacks").paginate()
        for each in page["StackSummaries"]
        if each["StackName"].startswith(names.STACK_PREFIX) and names.DEPLOYMENT.fullmatch(name_of(each))
    ]


def name_of(stack: Mapping[str, Any]) -> str:
    """Return the name of a stack's deployment."""
    return str(stack["StackName"]).removeprefix(names.STACK_PREFIX)


def existing_names(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the deployments that are not deleted."""
    return sorted({name_of(each) for each in found if each["StackStatus"] != "DELETE_COMPLETE"})


def deleted_stacks(account: Account, deployment: str) -> list[Any]:
    """Return the stacks of a deployment that CloudFormation deleted in the last 90 days."""
    return [
        each
        for each in _stacks(account.client("cloudformation"))
        if each["StackStatus"] == "DELETE_COMPLETE" and name_of(each) == deployment
    ]


def no_such_deployment(deployment: str, account: Account) -> ShoalError:
    """Return an error for a missing deployment. Its message names the existing deployments in all regions."""
    missing = f"there is no deployment '{deployment}' in {account.region}"
    try:
        by_region, unchecked = list_stacks(account)
    except (BotoCoreError, ClientError) as error:
        return ShoalError(f"{missing}; Shoal cannot list the existing deployments ({reason_of(error)})")
    existing = [(name, region) for region, found in by_region.items() for name in existing_names(found)]
    was_deleted = any(name_of(each) == deployment for each in by_region[account.region])
    if elsewhere := next((region for name, region in existing if name == deployment), None):
        return ShoalError(f"{missing}, but {elsewhere} has one of this name: add --region {elsewhere}")
    similar = difflib.get_close_matches(deployment, [name for name, _region in existing], 1)
    listed = ", ".join(name if region == account.region else f"{name} ({region})" for name, region in existing)
    return ShoalError(
        missing
        + (
            f"; did you mean {similar[0]}? Existing"
            if similar
            else "; existing"
            if listed
            else "; no deployment exists"
        )
        + (f" deployments: {listed}" if listed else "")
        + (f"; Shoal could not check these regions: {unchecked}" if unchecked else "")
        + (f"; `shoal status {deployment}` says when and why it was deleted" if was_deleted else "")
        + f"; `shoal deploy TOPOLOGY --deployment {deployment}` creates one"
    )
