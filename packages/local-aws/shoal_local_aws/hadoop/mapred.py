"""`python -m shoal_local_aws.hadoop.mapred job -logs JOB ATTEMPT`: prints the log of a task of a job that has ended.

As Hadoop's CLI it says on standard output why it has none. The logs are there until the step of the job has ended.
"""

import argparse
import os
import platform
import sys
import time
from pathlib import Path

from shoal_local_aws.hadoop.yarn import LOGS, applications


def main() -> int:
    parser = argparse.ArgumentParser(prog="mapred", allow_abbrev=False)
    parser.add_argument("what", choices=["job"])
    parser.add_argument("-logs", nargs=2, required=True, metavar=("JOB", "ATTEMPT"))
    job, attempt = parser.parse_args().logs
    root = Path(os.environ["NODE_ROOT"])
    log = root / LOGS / job / attempt / "stderr"
    if job.replace("job_", "application_", 1) in {each.name for each in applications(root)}:
        print("Cannot get log path for a in-progress job")  # noqa: T201
        return 255
    if not log.is_file():
        print(f"Unable to get log information for task: {attempt}")  # noqa: T201
        return 255
    name, end = f"Container: {attempt} on {platform.node()}", "End of LogType:stderr"
    changed = time.strftime("%a %b %d %H:%M:%S +0000 %Y", time.gmtime(log.stat().st_mtime))
    head = [name, "LogAggregationType: AGGREGATED", "=" * len(name), "LogType:stderr", f"LogLastModifiedTime:{changed}"]
    head += [f"LogLength:{log.stat().st_size}", "LogContents:", ""]
    tail = ["", end, "*" * (len(end) + 50), "", ""]
    sys.stdout.buffer.write("\n".join(head).encode() + log.read_bytes() + "\n".join(tail).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
