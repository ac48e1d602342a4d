"""The emulator's own process: ministack with this package's adapter in it.

The adapter is installed before the first request is served, and only replaces entries of ministack's tables and
functions that ministack looks up at each call.
"""

import os
import sys
from pathlib import Path

import ministack.app

from embedded import (
    cloudformation,
    deletion,
    dependencies,
    emr,
    filters,
    functions,
    instance_types,
    lifecycle,
    metrics,
    network,
    quotas,
    refusals,
    scaling,
    ssm,
    storage,
    visitors,
)
from embedded.errors import EmulatorError
from embedded.faults import Faults
from embedded.machine import Machines


def main() -> None:
    folder = Path(sys.argv.pop(1))
    os.environ.pop("PYTHONPATH", None)  # Lambda functions must find their own code, not this package
    try:
        machines = Machines(folder)
    except EmulatorError as error:
        sys.exit(str(error))
    faults = Faults(folder)
    refusals.install(faults)
    quotas.install(faults)
    instance_types.install(faults)
    storage.install(machines)
    network.install()
    filters.install()
    functions.install()
    scaling.install(machines, faults)
    ssm.install()
    emr.install(machines, faults)
    metrics.install()
    dependencies.install()
    cloudformation.install(faults)
    lifecycle.install()
    deletion.install()
    visitors.install()
    ministack.app.main()


if __name__ == "__main__":
    main()
