"""The CloudFormation type of auto scaling groups, over the groups that `nodes` emulates."""

from typing import Any

from shoal_local_aws.nodes import scaling
from shoal_local_aws.nodes.groups import AutoScalingGroups
from shoal_local_aws.seams import autoscaling, cloudformation
from shoal_local_aws.service import Record


def install(groups: AutoScalingGroups) -> None:
    """Replace the handlers of the type."""
    create, remove = cloudformation.create_group.now, cloudformation.delete_group.now

    def created(logical: str, properties: Record, stack: str) -> Any:
        form = _ministack_properties(properties)
        scaling.check_template(form.get("LaunchTemplate") or {})
        name, attributes = create(logical, form, stack)
        scaling.complete_record(autoscaling.groups[name], _policy(properties))
        groups.reconcile(autoscaling.groups[name])
        return name, attributes

    def changed(name: str, old: Record, new: Record, stack: str, logical: str | None = None) -> Any:
        form = _ministack_properties(new)
        scaling.check_template(form.get("LaunchTemplate") or {})
        kept = autoscaling.groups.get(name, {}).get("DesiredCapacity")
        name, attributes = cloudformation.update_group(name, _ministack_properties(old), form, stack, logical)
        group = autoscaling.groups[name]
        if kept is not None and "DesiredCapacity" not in new:  # keep a capacity that was set outside of CloudFormation
            group["DesiredCapacity"] = min(max(kept, group["MinSize"]), group["MaxSize"])
        scaling.complete_record(group, _policy(new))
        groups.reconcile(group)
        return name, attributes

    def removed(name: str, properties: Record) -> None:
        groups.end_instances(name)
        remove(name, properties)

    cloudformation.create_group.put(created)
    cloudformation.delete_group.put(removed)
    handlers = cloudformation.handlers_of("AWS::AutoScaling::AutoScalingGroup")
    handlers.update(create=created, update=changed, delete=removed)


def _policy(properties: Record) -> Record:
    return dict(properties.get("MixedInstancesPolicy") or {})


def _ministack_properties(properties: Record) -> Record:
    """A group's properties in the form that ministack takes.

    The launch template of a mixed-instances policy becomes the plain one, and the stack's tags propagate to instances.
    """
    plain = {"LaunchTemplate": template} if (template := scaling.template_of_policy(_policy(properties))) else {}
    tags = [{"PropagateAtLaunch": True, **tag} for tag in properties.get("Tags") or []]
    return {**properties, **plain, "Tags": tags}
