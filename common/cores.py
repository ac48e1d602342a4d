"""The number of usable cores, to size pools of threads and processes."""

import os


def cores() -> int:
    """Return the number of cores that this process is allowed to use. The machine might have more."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
