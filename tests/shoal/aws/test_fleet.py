"""Groups are scaled to zero despite any interrupt."""

import os
import signal

from shoal.aws import fleet
from shoal.aws.deployment import Deployment
from shoal.aws.fleet import GpuGroup


class Interrupting:
    """Session that receives Ctrl-C while it creates a client."""

    def __init__(self):
        self.at_zero = []

    def client(self, _service):
        signal.raise_signal(signal.SIGINT)
        return self

    def set_desired_capacity(self, *, AutoScalingGroupName, DesiredCapacity):  # noqa: N803
        assert DesiredCapacity == 0
        self.at_zero.append(AutoScalingGroupName)


def test_an_interrupt_at_the_start_or_during_a_call_leaves_no_group_scaled_up():
    session = Interrupting()
    group = GpuGroup(name="a", scaling_group="Shoal-a", size=1, desired=1, gpus=1, spot=False, stays=False)
    deployment = Deployment(name="mine", topology="x", session=session, outputs={})
    fleet.scale_to_zero(deployment, [group], unless=lambda: bool(os.kill(os.getpid(), signal.SIGINT)))
    assert session.at_zero == ["Shoal-a"]
