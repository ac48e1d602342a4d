"""The folder that nodes share without EFS: the first node serves its own folder by NFS.

It exists as long as that node. Do not read from a mount whose server is gone, because the read hangs; an old mount is
removed first.
"""

import shlex
from collections.abc import Sequence

import boto3

from bootstrap.nodes.fleet import GpuNode
from bootstrap.nodes.run_command import NodeCommand

_FOLDER = "/mnt/share"

_HEAD = f"""\
set -euo pipefail
share="${{NODE_ROOT:-}}{_FOLDER}"
while findmnt --mountpoint "$share" >/dev/null; do umount --force --lazy "$share"; done
mkdir -p "$share"
"""


def serve(session: boto3.Session, nodes: Sequence[GpuNode]) -> None:
    """Mount the first node's folder on all nodes. Raises ShoalError when it cannot be served or mounted."""
    first, *others = nodes
    if not others:
        return
    NodeCommand(session, first.instance_id, _export([node.address for node in others])).wait()
    for command in [NodeCommand(session, node.instance_id, _mount(first.address)) for node in others]:
        command.wait()


def _export(clients: Sequence[str]) -> str:
    """Export to these addresses alone, with their root as root, because Shoal's commands run as root."""
    exports = shlex.join(f"{client}:{_FOLDER}" for client in clients)
    return f"{_HEAD}systemctl start nfs-server\nexportfs -o rw,no_root_squash {exports}\n"


def _mount(server: str) -> str:
    served = shlex.quote(f"{server}:{_FOLDER}")
    return f'{_HEAD}mount -t nfs4 -o hard,nconnect=8 {served} "$share"\n'
