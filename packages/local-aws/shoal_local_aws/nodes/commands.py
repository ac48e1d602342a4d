"""Writes small scripts that emulate commands of Amazon Linux, for the PATH of emulated machines.

The scripts act like the real commands, but in the folder that stands for the machine's root folder. They refuse options
that are not emulated. Keep the real exit codes, because boot scripts depend on them (`mount` fails with 32).
"""

import shlex
import sys
from pathlib import Path

from shoal_local_aws.nodes import mounts


def write_program(path: Path, body: str) -> None:
    """Write an executable shell script."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def write_commands(folder: Path, *, file_systems: Path, hosts: Path) -> None:
    """Write all commands to a folder.

    Args:
        folder: Folder for the commands.
        file_systems: Folder that contains one folder for each EFS file system.
        hosts: Folder that contains, for the address of each running machine, a link to the machine's root folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hosts.mkdir(parents=True, exist_ok=True)
    python = shlex.quote(sys.executable)
    programs = {
        "aws": f'exec {python} -P -m awscli "$@"',
        "python3.11": f'exec {python} "$@"',
        "sudo": 'while [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"',
        "ec2-metadata": _METADATA,
        **dict.fromkeys(("halt", "poweroff", "reboot", "shutdown"), _NO_POWER),
        **mounts.programs(file_systems=file_systems, hosts=hosts),
    }
    for name, body in programs.items():
        write_program(folder / name, body)


# Without this script a node would run this computer's own command, which is also on its PATH.
_NO_POWER = """\
echo "${0##*/}: an instance of the embedded AWS cannot shut itself down; terminate it with EC2's API" >&2
exit 1"""

# Print `name: value` like the command of Amazon Linux. The values are in the environment of the instance.
_METADATA = """\
label=yes
case "$1" in --quiet|-q) label=; shift;; esac
case "$1" in
  -i|--instance-id) name=instance-id value=$EC2_INSTANCE_ID ;;
  -t|--instance-type) name=instance-type value=$EC2_INSTANCE_TYPE ;;
  -o|--local-ipv4) name=local-ipv4 value=$EC2_LOCAL_IPV4 ;;
  -z|--availability-zone) name=placement value=$EC2_AVAILABILITY_ZONE ;;
  -R|--region) name=region value=$AWS_REGION ;;
  *) echo "ec2-metadata: the embedded AWS does not support option $1" >&2; exit 1 ;;
esac
if [ -z "$value" ]; then echo "ec2-metadata: this machine is not an EC2 instance" >&2; exit 1; fi
echo "${label:+$name: }$value\""""
