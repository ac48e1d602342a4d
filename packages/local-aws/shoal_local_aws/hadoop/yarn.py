"""`python -m shoal_local_aws.hadoop.yarn application ...`: list and kill the YARN applications of a cluster.

As on YARN, an application continues even if the client that submitted it is killed. So an application is a separate
process, with a file that exists while it runs. `programs` returns the commands that start applications on the primary
node.
"""

import argparse
import os
import shlex
import sys
from pathlib import Path

from shoal_local_aws.processes import kill_marked

_PACKAGES = Path(__file__).resolve().parents[2]
LOGS = Path("var") / "log" / "hadoop-yarn" / "containers"
"""Folder for the logs of task attempts, which are in `JOB/ATTEMPT/`."""
_FOLDER = Path("mnt") / "yarn" / "applications"
VERSION = "3.4.1"
"""Version of Hadoop. EMR 7.10 has it ("Amazon EMR release 7.10.0", application versions)."""
MARK = "YARN_APPLICATION_ID"
"""Name of the environment variable with the id of the application to which a process belongs."""
_OWN_SESSION = "import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])"
"""Python code that replaces the command `setsid`, which macOS lacks."""


def programs() -> dict[str, str]:
    """Return the shell scripts that are the Hadoop commands of the primary node, by command name."""
    python = _python()
    return {
        "yarn": f'exec {python} shoal_local_aws.hadoop.yarn "$@"',
        "hadoop-streaming": _SUBMIT.format(
            folder=_FOLDER,
            mark=MARK,
            python=_python(),
            own_session=f"{shlex.quote(sys.executable)} -c '{_OWN_SESSION}'",
        ),
        "hadoop": _HADOOP.format(python=_python(), version=VERSION),
    }


def _python() -> str:
    return f"env PYTHONPATH={shlex.quote(str(_PACKAGES))} {shlex.quote(sys.executable)} -P -m"


# EMR kills all processes with the id of the step in their environment. So start the application without the id.
_SUBMIT = """\
id=application_$(date +%s000)_$$
folder="$NODE_ROOT/{folder}"
for word in "$@"; do
  case "$word" in mapreduce.job.name=*) name=${{word#*=}} ;; esac
done
mkdir -p "$folder"
printf '%s\\t%s\\tMAPREDUCE\\n' "$id" "${{name:-streamjob}}" >"$folder/$id"
{mark}=$id {own_session} env -u EMR_STEP_ID \\
  sh -c 'file=$1; shift; "$@"; code=$?; rm -f "$file"; exit $code' application \\
  "$folder/$id" {python} shoal_local_aws.hadoop.streaming "$@" &
wait $!"""

_HADOOP = """\
command=$1
[ $# -eq 0 ] || shift
case "$command" in
  version) echo "Hadoop {version}" ;;
  fs) exec {python} shoal_local_aws.hadoop.shell "$@" ;;
  jar) shift; exec hadoop-streaming "$@" ;;
  *) echo "The embedded Hadoop does not support the command $command." >&2; exit 1 ;;
esac"""


def applications(root: Path) -> list[Path]:
    """Return the files of the running applications on the node with this root folder."""
    return sorted((root / _FOLDER).glob("application_*"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="yarn", allow_abbrev=False)
    parser.add_argument("what", choices=["application"])
    verb = parser.add_mutually_exclusive_group(required=True)
    verb.add_argument("-list", action="store_true")
    verb.add_argument("-kill", nargs="+", default=[])
    parser.add_argument("-appStates")
    asked, root = parser.parse_args(), Path(os.environ["NODE_ROOT"])
    for file in applications(root):
        if asked.list:
            sys.stdout.write(file.read_text())
        elif file.name in asked.kill:
            kill_marked(MARK, file.name)
            file.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
