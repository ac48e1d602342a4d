"""The CDK app: `cdk deploy -c topology=NAME_OR_FILE [-c deployment=NAME] [-c owner=NAME] [-c generation=N]
[-c zones=ID,ID...] [-c permissions_boundary=ARN] [-c retired=yes]`.

An idle EMR cluster terminates itself, but CloudFormation does not notice. To start a new cluster, deploy with a new
generation (default: 1). Pass the same generation in later deployments, because every change of it replaces the cluster.
`shoal deploy` passes the generation automatically. `retired=yes` shows the template of a topology with instance types
that AWS no longer starts.

By default, the network is in the first zones that offer all instance types by the price list. `shoal deploy` asks the
account, and passes the ids of the zones (such as use1-az1). Pass the same zones in later deployments.

This is the only module that reads the CDK's context and the environment. `cdk destroy` also runs it. So raise errors
here only if the stack can neither be built nor destroyed. Report problems that only prevent a deployment as annotations
of the stack.
"""

import os
import re
import signal
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

if __name__ == "__main__":
    # Ctrl-C interrupts both the CDK command, which prints a message, and this process, which must exit silently.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    # If the home folder is read-only, unpack the CDK's library into a different folder of this user.
    if not os.environ.get("JSII_RUNTIME_PACKAGE_CACHE_ROOT"):
        from common.errors import DataError
        from common.private_folders import make_users_folder

        cache = Path.home() / ".cache" / "aws" / "jsii"
        try:
            cache.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=cache).close()
        except OSError:
            try:
                cache = make_users_folder(
                    "jsii", "set JSII_RUNTIME_PACKAGE_CACHE_ROOT to a folder in which you can write"
                )
            except (DataError, OSError) as error:
                sys.exit(f"Shoal cannot unpack the CDK's library: {error}")
            os.environ["JSII_RUNTIME_PACKAGE_CACHE_ROOT"] = os.fspath(cache)

import yaml
from aws_cdk import App

from infra import caller, policies, topology
from infra.stack import ShoalStack
from infra.topology_error import TopologyError

ROOT = Path(__file__).resolve().parent
TOPOLOGIES = ROOT / "topologies"


def flags() -> dict[str, Any]:
    """Return the CDK's feature flags (infra/feature_flags.yaml) and the qualifier of its roles and bucket."""
    found = yaml.safe_load((ROOT / "infra" / "feature_flags.yaml").read_text("utf-8"))
    own = {"@aws-cdk/core:bootstrapQualifier": policies.QUALIFIER}
    return {**own, **found["chosen"], **found["recommended"], **dict.fromkeys(found["before"], False)}


def build(app: App) -> ShoalStack:
    """Add the stack of the topology in the context. Raises TopologyError if the context or the topology is invalid."""
    name = app.node.try_get_context("topology")
    if not name:
        raise TopologyError(
            f"No topology is given; add `-c topology=NAME` with one of {', '.join(topology.names_in(TOPOLOGIES))}, or "
            "`-c topology=FILE.yaml` with your own file."
        )
    spec = topology.load(str(name), TOPOLOGIES)
    if boundary := app.node.try_get_context("permissions_boundary"):
        spec = _limited(spec, str(boundary))
    deployment = topology.check_deployment(str(app.node.try_get_context("deployment") or spec.name))
    owner = app.node.try_get_context("owner")
    if (retired := app.node.try_get_context("retired")) not in (None, "yes"):
        raise TopologyError(f"'{retired}' is not a value of `retired`; write `-c retired=yes`, or omit it.")
    return ShoalStack(
        app,
        spec=spec,
        deployment=deployment,
        owner=caller.owner_of(spec, str(owner) if owner else None),
        generation=_generation(app.node.try_get_context("generation")),
        zones=_zones(app.node.try_get_context("zones")),
        root=ROOT,
        emulated=caller.is_local(os.environ.get("AWS_ENDPOINT_URL")),
        retired=bool(retired),
    )


def _generation(given: object) -> int:
    text = "1" if given is None else str(given)
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise TopologyError(f"'{text}' is not a generation; write a whole number from 1, such as `-c generation=2`.")
    return int(text)


def _zones(given: object) -> list[str]:
    """Return the ids of zones in the context."""
    zones = str(given).split(",") if given else []
    if wrong := [zone for zone in zones if not re.fullmatch(r"[a-z0-9]+-az\d", zone)]:
        raise TopologyError(f"'{wrong[0]}' is not the ID of a zone; write IDs such as `-c zones=use1-az1,use1-az2`.")
    return zones


def _limited(spec: topology.Topology, policy: str) -> topology.Topology:
    """Return the topology with `policy` as its permissions boundary, unless the topology already has a boundary."""
    if not re.fullmatch(topology.POLICY_ARN, policy):
        raise TopologyError(
            f"'{policy}' is not the ARN of a policy; write one such as "
            "`-c permissions_boundary=arn:aws:iam::111122223333:policy/ShoalBoundary`."
        )
    return spec if spec.permissions_boundary else spec.model_copy(update={"permissions_boundary": policy})


def main() -> None:
    """Synthesise the template, or exit with an error message."""
    # The CDK's validation takes longer than the synthesis. It is unnecessary, because lint validates the templates of
    # all shipped topologies, and a user's topology is checked when it is read.
    app = App(analytics_reporting=False, builtin_cloud_formation_validation=False, context=flags())
    try:
        build(app)
    except TopologyError as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
