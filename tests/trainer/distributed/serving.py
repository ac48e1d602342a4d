"""A program for ranks that keep two tables together: each pulls rows, and pushes whole numbers to them, many times.

Each rank leaves RANK.json in the folder that its first argument names: what it pushed to each row, all rows as they are
at the end, and the staleness of the pushes to it. With `lost` as its second argument rank 1 is killed half-way, and the
other one, which pushes until then, leaves the error that it gets. With `waits` rank 0 leaves the port of the store in
`port` before the first push, and all wait for a file `go`.
"""

import json
import os
import signal
import sys
import time
from itertools import count
from pathlib import Path

import torch

from trainer.distributed import collectives, parameter_server
from trainer.distributed.parameter_server import ParameterServer
from trainer.distributed.ranks import join_process_group
from trainer.rank_errors import LostError

FOLDER, IS_LOST = Path(sys.argv[1]), sys.argv[2:] == ["lost"]
ROWS, COLUMNS, PUSHES = (11, 6), 3, 40

with join_process_group(1) as ranks:
    chance = torch.Generator().manual_seed(ranks.rank)
    tables = [torch.arange(rows * COLUMNS, dtype=torch.float32).reshape(rows, COLUMNS) for rows in ROWS]
    pushed = [torch.zeros(rows, COLUMNS) for rows in ROWS]
    try:
        secret = parameter_server.common_secret(ranks, trusts_network=False)
        with parameter_server.joined(ranks, secret) as connections, collectives.convert_errors("at step 7"):
            server = ParameterServer(tables, connections)
            ranks.gather(None)
            if sys.argv[2:] == ["waits"]:
                if ranks.is_first:
                    (FOLDER / "port").write_text(os.environ["MASTER_PORT"])
                while not (FOLDER / "go").exists():
                    time.sleep(0.05)
            for push in count() if IS_LOST else range(PUSHES):
                if IS_LOST and ranks.rank == 1 and push == PUSHES // 2:
                    os.kill(os.getpid(), signal.SIGKILL)
                rows = [torch.randperm(len(each), generator=chance)[: 1 + push % 5] for each in tables]
                versions = server.pull(rows)
                ways = [torch.randint(-3, 4, (len(each), COLUMNS), generator=chance).float() for each in rows]
                server.push(rows, ways, versions)
                for total, ids, way in zip(pushed, rows, ways, strict=True):
                    total.index_add_(0, ids, way)
            ranks.gather(None)
            server.gather()
            told = {
                "pushed": [each.tolist() for each in pushed],
                "tables": [each.tolist() for each in tables],
                **vars(server.staleness),
            }
            (FOLDER / f"{ranks.rank}.json").write_text(json.dumps(told))
    except LostError as error:
        (FOLDER / "error").write_text(str(error))
        os._exit(1)
