"""The number of cores, for whoever starts a thread or a process for each of them."""

import os


def cores() -> int:
    """The number of cores that this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
