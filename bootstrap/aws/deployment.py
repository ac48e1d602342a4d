"""A deployment as it exists: its stack with its outputs, and a session for its region.

Do not read the topology's file here, because it may have changed since the deployment.
"""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from shoal_guard.sweep.account import read_tags, reason_of
from shoal_guard.sweep.owner import ask_other_regions

from bootstrap.aws import stacks
from bootstrap.aws.account import Account
from common.errors import ShoalError
from corpus.reading.s3 import S3Path, place_of
from infra import addresses, parts, topology
from infra.caller import emulated


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """An existing stack, with its outputs by name."""

    name: str
    topology: str
    session: boto3.Session
    outputs: dict[str, str]
    tags: Mapping[str, str] = field(default_factory=dict)
    """Those of its stack, which all that belongs to it has."""

    def output(self, name: str) -> str:
        """An output of the stack. Raises ShoalError when the topology does not have that part."""
        try:
            return self.outputs[name]
        except KeyError:
            raise ShoalError(
                f"the deployment '{self.name}' has no {name}: its topology '{self.topology}' leaves that part out"
            ) from None

    @property
    def is_emulated(self) -> bool:
        """Whether this machine plays AWS, so that its times are not those of AWS's machines."""
        return emulated(self.session.client("s3").meta.endpoint_url)

    @property
    def share(self) -> Literal["efs", "nfs"] | None:
        """What serves the folder that all GPU nodes share; None where each node has its own."""
        held = self.outputs.get(topology.OUTPUT_SHARE_ID)
        return None if held is None else "nfs" if held == "nfs" else "efs"

    @property
    def max_dollars(self) -> float | None:
        """The most that the nodes of a run may cost unless its command says otherwise; None: no limit.

        Raises ShoalError for an output that is no amount, because a limit that cannot be read is not the lack of one.
        """
        text = self.outputs.get(topology.OUTPUT_MAX_DOLLARS)
        if text is None:
            return None
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        if not 0 < amount < math.inf:
            raise ShoalError(
                f"the output {topology.OUTPUT_MAX_DOLLARS} of the deployment '{self.name}' is {text!r}, "
                "which is no amount of dollars; deploy again, or give --max-dollars"
            )
        return amount

    def limit_of(self, most: float) -> str:
        """What limits a run to so many dollars, as the beginning of a sentence."""
        named = f"max_dollars of the topology '{self.topology}'" if most == self.max_dollars else "--max-dollars"
        return f"{named} is {most:g}"

    def readable(self, address: str, *own: str, under: Sequence[str] = ("",)) -> S3Path:
        """The place of an address that nodes may read: in one of their own buckets, or within the topology's `inputs`.

        `own` are the outputs that name those buckets, `under` the prefixes that the nodes read of them. The cluster
        reads all of the raw and the data bucket, GPU nodes only datasets and runs in the data bucket, and texts only
        within `inputs`, with which they get the libraries for that. Raises ShoalError, which says what to add to
        `inputs`, for any other address, and DataError for what is none.
        """
        place = place_of(address)
        read = [S3Path(self.output(name), prefix) for name in own for prefix in under]
        named = self.outputs.get(topology.OUTPUT_INPUTS, "").split()
        ours = any(place.bucket == each.bucket and place.key.startswith(each.key) for each in read)
        if not ours and not any(addresses.contains(each, address) for each in named):
            or_copied = f", or copy the data to {' or '.join(map(str, read))}" if read else ""
            raise ShoalError(
                f"the nodes of the deployment '{self.name}' may not read {address}; add {addresses.narrowest(address)} "
                f"to `inputs` in the file of its topology '{self.topology}' and deploy again{or_copied}"
            )
        return place


def find_deployment(name: str, account: Account | None = None) -> Deployment:
    """The deployment of this name, complete and ready for work.

    Raises ShoalError when there is none, or when it is not complete.
    """
    account = account or Account()
    stack = stacks.describe(account.client("cloudformation"), topology.stack_name(name))
    if stack is None:
        raise no_such_deployment(name, account)
    if stack["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"):
        raise ShoalError(
            f"the deployment '{name}' is in state {stack['StackStatus']}; wait until it is complete, or deploy again"
        )
    tags = read_tags(stack.get("Tags"))
    _owner, made_from = stacks.owner_and_topology(stack) or ("", name)
    return Deployment(name=name, topology=made_from, session=account.session, outputs=stacks.outputs(stack), tags=tags)


def list_deployments(account: Account) -> tuple[list[tuple[str, str]], str]:
    """The names and regions of the deployments that exist, those of the account's region first, and the regions that
    do not answer."""
    elsewhere, unchecked = ask_other_regions(account, _names)
    by_region = {account.region: _names(account.client("cloudformation")), **elsewhere}
    return [(name, region) for region, names in by_region.items() for name in names], unchecked


def _names(cloudformation: Any, *, deleted: bool = False) -> list[str]:
    """The names of the deployments in a region; with `deleted`, of those that CloudFormation deleted in 90 days."""
    pages = cloudformation.get_paginator("list_stacks").paginate()
    found = {
        each["StackName"].removeprefix(topology.STACK_PREFIX)
        for page in pages
        for each in page["StackSummaries"]
        if each["StackName"].startswith(topology.STACK_PREFIX) and (each["StackStatus"] == "DELETE_COMPLETE") == deleted
    }
    return sorted(name for name in found if parts.NAME.fullmatch(name))


def was_deleted(deployment: str, account: Account) -> bool:
    """Whether CloudFormation's record of 90 days has a stack of this deployment that was deleted."""
    return deployment in _names(account.client("cloudformation"), deleted=True)


def no_such_deployment(deployment: str, account: Account) -> ShoalError:
    """The error that there is no such deployment here, with those that exist, in other regions, too."""
    missing = f"there is no deployment '{deployment}' in {account.region}"
    try:
        found, unchecked = list_deployments(account)
    except (BotoCoreError, ClientError) as error:
        return ShoalError(f"{missing}; which ones exist cannot be read ({reason_of(error)})")
    if elsewhere := next((region for name, region in found if name == deployment), None):
        return ShoalError(f"{missing}, but one in {elsewhere}: add --region {elsewhere}")
    meant = difflib.get_close_matches(deployment, [name for name, _region in found], 1)
    listed = ", ".join(name if region == account.region else f"{name} ({region})" for name, region in found)
    return ShoalError(
        missing
        + (f"; did you mean {meant[0]}?" if meant else ";")
        + (f" These exist: {listed}" if listed else " none exists")
        + (f"; these regions cannot be checked: {unchecked}" if unchecked else "")
        + f"; `shoal deploy TOPOLOGY --deployment {deployment}` makes one"
    )
