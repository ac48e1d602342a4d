"""Writes small scripts that emulate commands of Amazon Linux, for the PATH of emulated machines.

The scripts act like the real commands, but in the folder that stands for the machine's root folder. They refuse options
that are not emulated. Keep the real exit codes, because boot scripts depend on them (`mount` fails with 32).

A mount is a link to a folder, so it needs no root. An EFS file system is a folder of the emulator. An NFS export is a
folder of the exporting machine and, as on AWS, is lost with the machine. A real client would then hang, but an emulated
client finds no folder.
"""

import shlex
import sys
from pathlib import Path

from shoal_local_aws.nodes import metadata


def write_program(path: Path, body: str) -> None:
    """Write an executable shell script."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def write_commands(folder: Path, *, file_systems: Path, hosts: Path) -> None:
    """Write all commands to a folder. `file_systems` has one folder for each EFS file system. `hosts` has, for the
    address of each running machine, a link to the machine's root folder."""
    folder.mkdir(parents=True, exist_ok=True)
    hosts.mkdir(parents=True, exist_ok=True)
    python = shlex.quote(sys.executable)
    programs = {
        "aws": f'exec {python} -P -m awscli "$@"',
        "python3.11": f'exec {python} "$@"',
        "sudo": 'while [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"',
        "ec2-metadata": _METADATA,
        **dict.fromkeys(("halt", "poweroff", "reboot", "shutdown"), _NO_POWER),
        "mount": _MOUNT.format(
            python=python,
            file_systems=shlex.quote(str(file_systems)),
            hosts=shlex.quote(str(hosts)),
            mounts=metadata.MOUNTS,
        ),
        "umount": _UMOUNT,
        "findmnt": _FINDMNT,
        "exportfs": _EXPORTFS,
        "systemctl": _SYSTEMCTL.format(python=python),
        "systemd-run": _SYSTEMD_RUN,
    }
    for name, body in programs.items():
        write_program(folder / name, body)


# Without this script a node would run this computer's own command, which is also on its PATH.
_NO_POWER = """\
echo "${0##*/}: an instance of the embedded AWS cannot shut itself down; terminate it with EC2's API" >&2
exit 1"""

# Print `name: value` like the command of Amazon Linux. The values are in the environment of the instance.
_METADATA = """\
case "$1" in
  -i|--instance-id) name=instance-id value=$EC2_INSTANCE_ID ;;
  -o|--local-ipv4) name=local-ipv4 value=$EC2_LOCAL_IPV4 ;;
  *) echo "ec2-metadata: the embedded AWS does not support option $1" >&2; exit 1 ;;
esac
if [ -z "$value" ]; then echo "ec2-metadata: this machine is not an EC2 instance" >&2; exit 1; fi
echo "$name: $value\""""

# `mount -t efs [-o OPTIONS] FSID:/ DIR` needs a mount target, like a real mount. `mount -t nfs4 [-o OPTIONS]
# ADDRESS:PATH DIR` needs a machine at ADDRESS that serves NFS and exports PATH, or a folder above it, to this machine.
# Until `umount`, the previous content of DIR is hidden.
_MOUNT = """\
kind=$2
if [ "$1" != -t ]; then echo "mount: the embedded AWS supports only -t efs and -t nfs4" >&2; exit 1; fi
shift 2
if [ "$1" = -o ]; then shift 2; fi
source=$1 target=$2
refuse() {{ echo "mount.$kind: $1" >&2; exit 32; }}
case $kind in
efs)
    id=${{source%:/}}
    {python} -c '
import os, sys, urllib.request
place = "{mounts}" + os.environ["EC2_INSTANCE_ID"] + "/" + sys.argv[1]
with urllib.request.urlopen(os.environ["AWS_ENDPOINT_URL"] + place) as answer:
    refusal = answer.read().decode()
    sys.exit(f"mount: {{refusal}}" if refusal else None)
' "$id" || exit 32
    served={file_systems}"/$id"
    mkdir -p "$served"
    ;;
nfs4)
    server=${{source%%:*}} path=${{source#*:}} root={hosts}"/${{source%%:*}}"
    [ -d "$root/" ] || refuse "No route to host for $source on $target"
    root=$(readlink -f "$root")
    [ -e "$root/run/nfs-server" ] || refuse "Connection refused for $source on $target"
    allowed=
    while read -r client exported; do
        case $path/ in "${{exported%/}}"/*) ;; *) continue ;; esac
        case $client in "*" | "$EC2_LOCAL_IPV4") allowed=yes ;; esac
    done <"$root/run/exports"
    [ -n "$allowed" ] || refuse "access denied by server while mounting $source"
    served=$root$path
    [ -d "$served" ] || refuse "mounting $source failed, reason given by server: No such file or directory"
    ;;
*) refuse "the embedded AWS supports only -t efs and -t nfs4" ;;
esac
mkdir -p "$(dirname "$target")"
if [ -d "$target" ] && [ ! -L "$target" ]; then mv "$target" "$target.below"; fi
ln -sfn "$served" "$target\""""

_UMOUNT = """\
while [ "${1#-}" != "$1" ]; do shift; done
if [ ! -L "$1" ]; then echo "umount: $1: not mounted." >&2; exit 32; fi
rm "$1"
if [ -d "$1.below" ]; then mv "$1.below" "$1"; else mkdir "$1"; fi"""

_FINDMNT = """\
if [ "$1" != --mountpoint ] && [ "$1" != -M ]; then
    echo "findmnt: the embedded AWS supports only --mountpoint" >&2
    exit 1
fi
[ -L "$2" ] && echo "$2 $(readlink "$2")\""""

# `exportfs -o OPTIONS CLIENT:DIR...`: each CLIENT is an address, or `*`.
_EXPORTFS = """\
if [ "$1" != -o ] || [ $# -lt 3 ]; then
    echo "exportfs: the embedded AWS supports only -o OPTIONS CLIENT:DIR" >&2
    exit 1
fi
shift 2
for export in "$@"; do
    client=${export%%:*} folder=${export#*:}
    case $client in */* | *[!0-9.*]*)
        echo "exportfs: the embedded AWS supports addresses and * as clients, not $client" >&2
        exit 1
        ;;
    esac
    if [ ! -d "$NODE_ROOT$folder" ]; then
        echo "exportfs: Failed to stat $folder: No such file or directory" >&2
        exit 1
    fi
    mkdir -p "$NODE_ROOT/run"
    echo "$client $folder" >>"$NODE_ROOT/run/exports"
done"""

_SYSTEMCTL = """\
while [ "${{1#-}}" != "$1" ]; do shift; done
verb=$1
shift
if [ "$verb" = daemon-reload ]; then exit 0; fi
now=
if [ "$1" = --now ]; then now=yes; shift; fi
name=${{1%.service}}
unit="$NODE_ROOT/etc/systemd/system/$name.service"
if [ "$name" != nfs-server ] && [ ! -e "$unit" ]; then echo "Failed to $verb $1: Unit $1 not found." >&2; exit 5; fi
mkdir -p "$NODE_ROOT/run"
if [ "$verb" = enable ]; then [ -n "$now" ] || exit 0; verb=start; fi
if [ "$verb" != start ]; then echo "systemctl: the embedded AWS does not support $verb" >&2; exit 1; fi
if [ "$name" != nfs-server ]; then exec {python} -m shoal_local_aws.nodes.service_manager start "$unit"; fi
touch "$NODE_ROOT/run/nfs-server" "$NODE_ROOT/run/exports\""""

# `systemd-run --scope [OPTIONS] -- PROGRAM...` with the version of Amazon Linux 2023
_SYSTEMD_RUN = """\
if [ "$1" = --version ]; then echo "systemd 252 (252.23-3.amzn2023)"; exit; fi
if [ "$1" != --scope ]; then echo "systemd-run: the embedded AWS supports only --scope" >&2; exit 1; fi
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    --property=OOMPolicy=*) echo "Unknown assignment: ${1#--property=}" >&2; exit 1 ;;
    esac
    shift
done
shift
exec "$@\""""
