"""`shoal ssh` executes the program that opens the shell, or reports what is missing."""

from common.errors import ShoalError
from shoal.aws import deployment as deployments
from shoal.aws import fleet
from shoal.cli.target import Target
from shoal.cli.verbs import ssh
from tests.fleet import Fleet
from tests.waiting import until


def test_ssh_reaches_a_node_by_systems_manager(aws, monkeypatch, messages) -> None:
    one, target = Fleet().add("one", "g5.xlarge", 1), Target("demo", "us-east-1", "ssh")
    messages.hide(one.deployment.name, "DEPLOYMENT")
    monkeypatch.setattr(deployments, "find_deployment", lambda *_: one.deployment)
    with messages.raises(ShoalError):
        ssh._to_node(target, "1")
    one.scaling.set_desired_capacity(AutoScalingGroupName=f"{one.name}-one", DesiredCapacity=1)
    until(lambda: fleet.nodes(one.deployment))  # the node is pending at first
    (node,) = fleet.nodes(one.deployment)
    messages.hide(node.instance_id, "NODE")
    with messages.raises(ShoalError):
        ssh._to_node(target, "2")
    monkeypatch.setattr(ssh.shutil, "which", lambda _: None)
    with messages.raises(ShoalError):
        ssh._to_node(target, node.instance_id)
    monkeypatch.setattr(ssh.shutil, "which", lambda name: name)
    started = ["aws", "ssm", "start-session", "--region", one.deployment.session.region_name, "--target"]
    assert ssh._to_node(target, "1") == [*started, node.instance_id]
    one.scaling.set_desired_capacity(AutoScalingGroupName=f"{one.name}-one", DesiredCapacity=0)
