"""Writes the commands of Amazon Linux that emulated machines have on their PATH, as small scripts.

They act as the real ones, but in the folder that stands for a machine's root, and refuse options that are not emulated.
Keep the real exit codes, because boot scripts depend on them (`mount` fails with 32).
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
    """Write all commands into a folder.

    Args:
        file_systems: holds the folders that stand for EFS file systems.
        hosts: holds, by address, links to the roots of the machines that run.
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


# Without it a node would find this computer's own command on its PATH.
_NO_POWER = """\
echo "${0##*/}: an instance of the embedded AWS cannot switch itself off; terminate it by EC2's interface" >&2
exit 1"""

# Prints `name: value` as the command of Amazon Linux does. The values are in the instance's environment.
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
if [ -z "$value" ]; then echo "ec2-metadata: this machine is no EC2 instance" >&2; exit 1; fi
echo "${label:+$name: }$value\""""
