"""One of the ranks that share a GPU: `python -m benchmarks.gpu.pair_rank JSON`, started by pair.py."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from benchmarks.gpu import stand_ins

_HELD_OUT = 100


def main() -> None:
    """Train as asked; the first rank prints what is to be checked."""
    asked = json.loads(sys.argv[1])
    stand_ins.install()
    with stand_ins.shared_gpu():
        told = _trained(asked["options"], **asked["sizes"])
    if told:
        sys.stdout.write(json.dumps(told) + "\n")


def _trained(
    options: dict[str, Any], *, rows: int, words: int, global_batch: int, epochs: int, text_batch: int, more: Any
) -> dict[str, Any] | None:
    from benchmarks.gpu.rows import make_data, make_rows
    from benchmarks.gpu.training import use_data
    from benchmarks.gpu.words import make_text
    from trainer import start
    from trainer.config import configured
    from trainer.distributed import drift
    from trainer.distributed.ranks import join_process_group
    from trainer.embeddings.task import Embedding

    given = {**options, **more, "epochs": epochs, "global_batch": global_batch}
    apart: list[float | None] = []
    synchronise = drift.synchronise

    def noted(*what: Any) -> float | None:
        apart.append(synchronise(*what))
        return apart[-1]

    if "slow" in given:
        given["slow"] = {int(rank): factor for rank, factor in given["slow"].items()}
    with join_process_group(1) as ranks, TemporaryDirectory() as own:
        folder = ranks.broadcast(own)
        if given["model"] == "skipgram":
            patched: Any = mock.patch.object(Embedding, "load", return_value=make_text(rows, words))
        else:
            given["global_batch"] = text_batch
            made = make_rows(rows + 2 * _HELD_OUT, ranks.device)
            patched = use_data(make_data(made, validation=_HELD_OUT, test=_HELD_OUT))
        comparing = mock.patch.object(drift, "synchronise", noted)
        with patched, comparing:
            summary = start.train(configured({"data": Path("made"), "output": Path(folder), **given}), ranks)
        ranks.gather(None)  # the first one's folder is in use until then
    names = ("loss", "rows_seen", "rows_of_ranks", "split", "bytes_a_step", "samples_per_second", "steps")
    told = {name: summary.get(name) for name in names}
    kept = {**told, "staleness": summary.get("staleness"), "apart": max((each or 0.0 for each in apart), default=0.0)}
    return {**kept, "device": ranks.device_name} if ranks.is_first else None


if __name__ == "__main__":
    main()
