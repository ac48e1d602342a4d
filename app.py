"""The CDK app: `cdk deploy -c topology=NAME [-c deployment=NAME] [-c owner=NAME] [-c generation=N]`.

The EMR cluster ends itself after an hour without work, and CloudFormation does not see that: with another generation
than before (1 unless told) the next `cdk deploy` starts a new one. Keep giving it: going back is another one, too.

The only place that reads context and environment. Easy to get wrong: `cdk destroy` runs it too. What only a deployment
must be refused for is an annotation of the stack; errors here are for what nobody could build or destroy.
"""

import getpass
import ipaddress
import os
import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

from aws_cdk import App

from infra import topology
from infra.errors import TopologyError
from infra.stack import ShoalStack

ROOT = Path(__file__).resolve().parent
TOPOLOGIES = ROOT / "topologies"


def build(app: App) -> ShoalStack:
    """Add the stack that the context asks for; a TopologyError when it asks for none that exists."""
    name = app.node.try_get_context("topology")
    if not name:
        raise TopologyError(
            f"No topology is chosen; add `-c topology=NAME` with one of {', '.join(topology.names(TOPOLOGIES))}."
        )
    wanted = topology.load(str(name), TOPOLOGIES)
    deployment = topology.check_deployment(str(app.node.try_get_context("deployment") or wanted.name))
    owner = str(app.node.try_get_context("owner") or wanted.owner or _user())
    return ShoalStack(
        app,
        wanted=wanted,
        deployment=deployment,
        owner=topology.owner_tag(owner),
        generation=_generation(app.node.try_get_context("generation")),
        root=ROOT,
        emulated=_on_this_machine(os.environ.get("AWS_ENDPOINT_URL", "")),
    )


def _generation(given: object) -> int:
    text = "1" if given is None else str(given)
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise TopologyError(f"'{text}' is not a generation; count up from 1, such as `-c generation=2`.")
    return int(text)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return ""


def _on_this_machine(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def main() -> None:
    """Synthesise, or say in one sentence why not."""
    app = App(analytics_reporting=False)
    try:
        build(app)
    except TopologyError as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
