"""Node groups like those of a stack, created directly on the embedded AWS, with any boot script and zones."""

import base64
import itertools
import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import boto3

from common import names
from shoal.aws import fleet, scale_up
from shoal.aws.deployment import Deployment
from shoal.aws.fleet import GpuNode

BUCKET = "fleet-data"
_names = (f"fleet-{number}" for number in itertools.count())


def report(bucket: str = BUCKET, **said: str) -> str:
    """Return a boot script that only reports these values, to a bucket or a shell variable with its name."""
    return f"printf '%s' '{json.dumps(said)}' | aws s3 cp - s3://{bucket}/nodes/$EC2_INSTANCE_ID.json"


def boot_agent(bucket: str = BUCKET) -> str:
    """Return a boot script that installs nothing: the agent runs from this checkout, with this data bucket.

    Nodes of a stack with EFS mount it.
    """
    root = Path(__file__).parents[1]
    path = shlex.quote(f"{root}:{root / 'packages' / 'balance'}")
    agent = "runpy.run_module('bootstrap.node', run_name='__main__')"
    starts = f"import runpy, sys; sys.executable = sys.argv[1]; {agent}"
    return f"""\
mkdir -p "$NODE_ROOT/usr/local/bin" "$NODE_ROOT/etc/systemd/system" "$NODE_ROOT/mnt/share"
cat >"$NODE_ROOT/usr/local/bin/node-python" <<'RUN'
#!/bin/bash
exec {shlex.quote(sys.executable)} "$@"
RUN
cat >"$NODE_ROOT/usr/local/bin/shoal-agent" <<RUN
#!/bin/bash
export PYTHONPATH={path} DEPLOYMENT=$DEPLOYMENT DATA_BUCKET={bucket} INSTANCE_ID=$EC2_INSTANCE_ID
export ADDRESS=$EC2_LOCAL_IPV4 RANKS=$RANKS
exec {shlex.quote(sys.executable)} -c {shlex.quote(starts)} "$NODE_ROOT/usr/local/bin/node-python"
RUN
chmod 755 "$NODE_ROOT"/usr/local/bin/*
cat >"$NODE_ROOT/etc/systemd/system/shoal-agent.service" <<UNIT
[Service]
ExecStart="$NODE_ROOT/usr/local/bin/shoal-agent"
StandardOutput=append:$NODE_ROOT/var/log/shoal-agent.log
Restart=always
UNIT
if [ "${{SHARE_KIND:-}}" = efs ]; then mount -t efs -o tls,iam "$SHARE_ID:/" "$NODE_ROOT/mnt/share"; fi
systemctl enable --now shoal-agent
{report(bucket, state="ready", log="")}"""


class Fleet:
    """Node groups like those of a stack, in subnets of the zones a, b and c."""

    def __init__(self, zones: str = "abc", *, tagged: bool = True, share: str | None = None) -> None:
        self.session = boto3.Session()
        self.scaling, self.ec2 = self.session.client("autoscaling"), self.session.client("ec2")
        self.name = next(_names)
        self._tags = [
            {"Key": names.TAG_DEPLOYMENT, "Value": self.name},
            {"Key": names.TAG_NODES, "Value": "true"},
        ]
        vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self._subnets = [self._subnet(vpc, number, zone, tagged) for number, zone in enumerate(zones)]
        self.deployment = Deployment(
            name=self.name,
            topology="demo",
            session=self.session,
            outputs={
                names.OUTPUT_RAW_BUCKET: BUCKET,
                names.OUTPUT_DATA_BUCKET: BUCKET,
                **({names.OUTPUT_SHARE_ID: share} if share else {}),
            },
        )

    def _subnet(self, vpc: str, number: int, zone: str, tagged: bool) -> str:
        made = self.ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=f"us-east-1{zone}")[
            "Subnet"
        ]["SubnetId"]
        if tagged:
            self.ec2.create_tags(Resources=[made], Tags=self._tags)
        return str(made)

    def add(
        self,
        name: str,
        kind: str,
        count: int,
        *others: str,
        market: str = "on-demand",
        start: str = "train",
        role: str = "train",
        boot: str = "",
    ) -> Self:
        """Add a group of nodes with a boot script, by default one that reports that they are ready.

        A spot group may have nodes of `others`, too.
        """
        ranks = "0" if role == "read" else "1"
        script = f"export DEPLOYMENT={self.name} RANKS={ranks}\n{boot or report(state='ready', log='')}"
        data = {
            "ImageId": "ami-0a1b2c3d4e5f60718",
            "InstanceType": kind,
            "IamInstanceProfile": {"Name": "nodes"},
            "UserData": base64.b64encode(script.encode()).decode(),
            "TagSpecifications": [{"ResourceType": each, "Tags": self._tags[:1]} for each in ("instance", "volume")],
        }
        made = self.ec2.create_launch_template(
            LaunchTemplateName=f"{self.name}-{name}",
            LaunchTemplateData=data,
            TagSpecifications=[{"ResourceType": "launch-template", "Tags": self._tags[:1]}],
        )
        template = {"LaunchTemplateId": made["LaunchTemplate"]["LaunchTemplateId"], "Version": "1"}
        spot = {"OnDemandPercentageAboveBaseCapacity": 0, "SpotAllocationStrategy": "price-capacity-optimized"}
        several = [{"InstanceType": name} for name in (kind, *others)] if others else []
        policy = {
            "LaunchTemplate": {"LaunchTemplateSpecification": template, "Overrides": several},
            "InstancesDistribution": spot,
        }
        source: dict[str, Any] = {"MixedInstancesPolicy": policy} if market == "spot" else {"LaunchTemplate": template}
        tags = {
            names.TAG_DEPLOYMENT: self.name,
            names.TAG_GROUP: name,
            names.TAG_GPUS: ranks,
            names.TAG_MARKET: market,
            names.TAG_START: start,
            names.TAG_ROLE: role,
        }
        self.scaling.create_auto_scaling_group(
            AutoScalingGroupName=f"{self.name}-{name}",
            MinSize=0,
            MaxSize=count,
            VPCZoneIdentifier=self._subnets[0],
            Tags=[{"Key": key, "Value": value, "PropagateAtLaunch": True} for key, value in tags.items()],
            **source,
        )
        return self

    def desired(self) -> dict[str, int]:
        groups = self.scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
        return {
            group["AutoScalingGroupName"].removeprefix(f"{self.name}-"): group["DesiredCapacity"]
            for group in groups
            if group["AutoScalingGroupName"].startswith(f"{self.name}-")
        }

    def scaled_up(self) -> list[GpuNode]:
        """Return the nodes, after they were scaled to zero again."""
        with self.running() as nodes:
            return nodes

    @contextmanager
    def running(self, *, readers: bool = False) -> Iterator[list[GpuNode]]:
        """Start the nodes for a block, and scale all groups to zero afterwards."""
        try:
            yield scale_up.scale_up(self.deployment, readers=readers)
        finally:
            fleet.scale_to_zero(self.deployment, fleet.groups(self.deployment, readers=True))
