"""Auto scaling groups for tests, and commands on their nodes."""

import base64
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from shoal_local_aws.processes import marked_processes
from tests.local_aws.waiting import until

IMAGE = "ami-0a1b2c3d4e5f60718"


class Group:
    """Auto scaling group with its own launch template.

    `data` is added to the template, and nodes run `user_data`, which creates the file `ready`. With `spot` (an
    InstancesDistribution) and `types` it has a mixed-instances policy. `more` are arguments of CreateAutoScalingGroup.
    """

    def __init__(self, aws, client, name, *, data=None, user_data="", spot=None, types=(), **more):
        self.name, self._nodes, self._boots = name, aws.folder / "nodes", bool(user_data)
        self.asg, self.ec2 = client("autoscaling"), client("ec2")
        script = {"UserData": base64.b64encode(user_data.encode()).decode()} if user_data else {}
        whole = {"ImageId": IMAGE, "InstanceType": "g5.xlarge", **script, **(data or {})}
        self.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=whole)
        template = {"LaunchTemplateName": name, "Version": "$Latest"}
        source = {"LaunchTemplate": template}
        if spot is not None:
            named = {"LaunchTemplateSpecification": template, "Overrides": [{"InstanceType": each} for each in types]}
            source = {"MixedInstancesPolicy": {"LaunchTemplate": named, "InstancesDistribution": spot}}
        place = {} if "VPCZoneIdentifier" in more else {"AvailabilityZones": ["us-east-1a"]}
        self.asg.create_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, MaxSize=3, **place, **source, **more)

    def scale(self, count):
        self.asg.set_desired_capacity(AutoScalingGroupName=self.name, DesiredCapacity=count)

    def update(self, **values):
        self.asg.update_auto_scaling_group(AutoScalingGroupName=self.name, **values)

    def described(self):
        found = self.asg.describe_auto_scaling_groups(AutoScalingGroupNames=[self.name])["AutoScalingGroups"]
        return dict(found[0])

    def serving(self, count):
        """Wait until `count` instances are in service and have run their user data. Return the ids of the instances."""

        def ready():
            states = {each["InstanceId"]: each["LifecycleState"] for each in self.described()["Instances"]}
            run = all(not self._boots or (self.root(each) / "ready").exists() for each in states)
            return [*states, "all"] if list(states.values()) == ["InService"] * count and run else None

        return list(until(ready))[:-1]

    def instance(self, identifier):
        return dict(self.ec2.describe_instances(InstanceIds=[identifier])["Reservations"][0]["Instances"][0])

    def root(self, identifier):
        return self._nodes / identifier

    def run(self, identifier, script):
        """Run a script on a node, in the environment of a running process of the node."""
        root = self.root(identifier)
        for process in marked_processes("NODE_ROOT", str(root)):
            with suppress(OSError):  # the process may have ended
                variables = Path(f"/proc/{process}/environ").read_bytes().decode().rstrip("\0").split("\0")
                cores = ",".join(map(str, os.sched_getaffinity(process)))
                break
        command = ["taskset", "--cpu-list", cores, "bash", "-c", script]
        environment = dict(variable.split("=", 1) for variable in variables)
        return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
