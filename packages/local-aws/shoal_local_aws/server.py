"""Main program of the emulator's process: ministack with the extensions of this package.

The extensions are installed before the first request. They replace only entries in ministack's tables, and functions
that ministack looks up at each call.
"""

import os
import sys
import threading
from pathlib import Path

from shoal_local_aws import origin_check
from shoal_local_aws.cloudformation import dependencies, registry, resources, stacks
from shoal_local_aws.emr import api, metrics
from shoal_local_aws.faults import quotas, requests, zones
from shoal_local_aws.faults.file import Faults
from shoal_local_aws.nodes import filters, guardduty, metadata, run_command, scaling, vpc
from shoal_local_aws.nodes.machine import Machines
from shoal_local_aws.permissions import checks, identities
from shoal_local_aws.permissions.credentials import USER_FILE
from shoal_local_aws.sagemaker import api as sagemaker
from shoal_local_aws.seams import routing
from shoal_local_aws.services import alarms, functions, storage
from shoal_local_aws.watchdog import end_with


def main() -> None:
    folder = Path(sys.argv.pop(1))
    os.environ.pop("PYTHONPATH", None)  # Lambda functions must import their own code, not this package
    machines = Machines(folder)
    identities.add_user(folder / USER_FILE)
    identities.add_managed_policies()
    checks.install(folder)
    faults = Faults(folder)
    requests.install(faults)
    quotas.install(faults)
    zones.install(faults)
    storage.install(machines)
    vpc.install()
    guardduty.install(faults)
    filters.install()
    functions.install()
    alarms.install()
    scaling.install(machines, faults)
    api.install(machines, faults)
    metrics.install()
    sagemaker.install(machines, faults)
    dependencies.install(faults)
    registry.install()
    resources.install(faults)
    stacks.install()
    metadata.install(faults)
    run_command.install()
    origin_check.install()
    routing.main()


if __name__ == "__main__":
    threading.Thread(target=end_with, args=[int(sys.argv.pop()), sys.argv[1]], daemon=True).start()
    main()
