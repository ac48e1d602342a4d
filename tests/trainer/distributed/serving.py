"""A program for ranks that keep two tables together: each pulls rows, and pushes whole numbers to them, many times.

Each rank leaves RANK.json in the folder that its first argument names: what it pushed to each row, all rows as they are
at the end, and the staleness of the pushes to it.
"""

import json
import sys
from pathlib import Path

import torch

from trainer.distributed import parameter_server
from trainer.distributed.parameter_server import ParameterServer
from trainer.distributed.ranks import join_process_group

FOLDER = Path(sys.argv[1])
ROWS, COLUMNS, PUSHES = (11, 6), 3, 40

with join_process_group(1) as ranks:
    chance = torch.Generator().manual_seed(ranks.rank)
    tables = [torch.arange(rows * COLUMNS, dtype=torch.float32).reshape(rows, COLUMNS) for rows in ROWS]
    pushed = [torch.zeros(rows, COLUMNS) for rows in ROWS]
    secret = parameter_server.common_secret(ranks, trusts_network=False)
    with parameter_server.joined(ranks, secret) as connections:
        server = ParameterServer(tables, connections)
        ranks.gather(None)
        for push in range(PUSHES):
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
