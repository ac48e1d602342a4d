"""The CDK app: `cdk deploy -c topology=NAME_OR_FILE [-c deployment=NAME] [-c owner=NAME] [-c generation=N]`.

The EMR cluster ends itself when it has been idle for long enough, and CloudFormation does not see that: with another
generation than before (1 unless told) the next `cdk deploy` starts a new one. Keep giving it: going back is another
one, too. `shoal deploy` does so by itself.

The only place that reads context and environment. Easy to get wrong: `cdk destroy` runs it too. What only a deployment
must be refused for is an annotation of the stack; errors here are for what nobody could build or destroy.
"""

import os
import re
import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    # A terminal's Ctrl-C reaches this process beside the CDK, which says what there is to say: here it only ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from aws_cdk import App

from infra import caller, topology
from infra.errors import TopologyError
from infra.stack import ShoalStack

ROOT = Path(__file__).resolve().parent
TOPOLOGIES = ROOT / "topologies"
FLAGS = {
    "@aws-cdk/aws-iam:minimizePolicies": True,
    "@aws-cdk/core:checkSecretUsage": True,
    "@aws-cdk/core:target-partitions": ["aws"],
}
"""Of the CDK's features. They are here and not in cdk.json, which an installed Shoal does not have."""


def build(app: App) -> ShoalStack:
    """Add the stack that the context asks for; a TopologyError when it asks for none that exists."""
    name = app.node.try_get_context("topology")
    if not name:
        raise TopologyError(
            f"No topology is chosen; add `-c topology=NAME` with one of {', '.join(topology.names(TOPOLOGIES))}, or "
            "`-c topology=FILE.yaml` with one of your own."
        )
    spec = topology.load(str(name), TOPOLOGIES)
    deployment = topology.check_deployment(str(app.node.try_get_context("deployment") or spec.name))
    owner = app.node.try_get_context("owner")
    return ShoalStack(
        app,
        spec=spec,
        deployment=deployment,
        owner=caller.owner_of(spec, str(owner) if owner else None),
        generation=_generation(app.node.try_get_context("generation")),
        root=ROOT,
        emulated=caller.emulated(os.environ.get("AWS_ENDPOINT_URL")),
    )


def _generation(given: object) -> int:
    text = "1" if given is None else str(given)
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise TopologyError(f"'{text}' is not a generation; count up from 1, such as `-c generation=2`.")
    return int(text)


def main() -> None:
    """Synthesise, or say in one sentence why not."""
    # The CDK's own look at the template takes longer than making it. Lint takes it, of every topology there is; what a
    # topology of one's own may say is checked where it is read.
    app = App(analytics_reporting=False, builtin_cloud_formation_validation=False, context=FLAGS)
    try:
        build(app)
    except TopologyError as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
