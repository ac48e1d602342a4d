"""`shoal ssh` becomes the program that opens the shell, and says what is in the way of that."""

import pytest
from shoal_local_aws.aws import EmbeddedAws

from bootstrap.aws import deployment as deployments
from bootstrap.cli.deployments import ssh
from bootstrap.cli.target import Target
from bootstrap.nodes import fleet
from common.errors import ShoalError
from tests.fleet import Fleet
from tests.waiting import until


def test_a_node_is_reached_by_systems_manager(aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    one, target = Fleet().add("one", "g5.xlarge", 1), Target("demo", "us-east-1", "ssh")
    monkeypatch.setattr(deployments, "find_deployment", lambda *_: one.deployment)
    with pytest.raises(ShoalError, match=r"^no GPU node of 'fleet-\d+' runs; they do while a training uses them$"):
        ssh._to_node(target, "1")
    one.scaling.set_desired_capacity(AutoScalingGroupName=f"{one.name}-one", DesiredCapacity=1)
    until(lambda: fleet.nodes(one.deployment))  # it is pending for a moment
    (node,) = fleet.nodes(one.deployment)
    with pytest.raises(ShoalError, match=r"^2 is none of the nodes of "):
        ssh._to_node(target, "2")
    monkeypatch.setattr(ssh.shutil, "which", lambda _: None)
    with pytest.raises(ShoalError, match=r"^a shell on AWS needs session-manager-plugin, .* must say `network: {shell"):
        ssh._to_node(target, node.instance_id)
    monkeypatch.setattr(ssh.shutil, "which", lambda name: name)
    started = ["aws", "ssm", "start-session", "--region", one.deployment.session.region_name, "--target"]
    assert ssh._to_node(target, "1") == [*started, node.instance_id]
    one.scaling.set_desired_capacity(AutoScalingGroupName=f"{one.name}-one", DesiredCapacity=0)
