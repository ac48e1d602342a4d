"""What a run tells while it goes on: lines of its record, sentences to its user, and a bar on a terminal."""

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from tqdm import tqdm

from corpus.display import plural
from trainer import checkpoint, faults
from trainer.config import TrainConfig
from trainer.errors import TrainingError
from trainer.exchange import Report
from trainer.files import CHECKPOINTS, RECORD, SUMMARY
from trainer.order import Order
from trainer.ranks import Ranks
from trainer.record import Record, Thinning, say
from trainer.task import Loaded
from trainer.throughput import Throughput


class Reporter:
    """Tells, on the first rank; on the others it is silent."""

    def __init__(self, config: TrainConfig, ranks: Ranks, *, rows: int, seen: int, fresh: bool) -> None:
        """`rows` of all epochs, of which so many were `seen`; `fresh`: in place of what a run left there before. Asked
        of all ranks; raises TrainingError on all where the output cannot be written."""
        self.first = ranks.first
        self.names = ranks.gather(faults.who(ranks.rank))
        """What each rank is called."""
        with ranks.agreement():
            self._record = _opened(config.output, fresh=fresh) if ranks.first else Record(None, fresh=fresh)
        self._thinning = Thinning(config.record_every)
        self._apart = False
        self._pieces = np.zeros(ranks.size, dtype=np.int64)
        self._bar = tqdm(
            total=rows,
            initial=seen,
            unit=" rows",
            unit_scale=True,
            disable=None if ranks.first else True,  # None: shown where stderr is a terminal
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
        self._record.__exit__(kind, error, trace)

    def start(
        self,
        config: TrainConfig,
        ranks: Ranks,
        data: Loaded,
        order: Order,
        *,
        precision: str,
        epochs: int,
        done: int,
        rates: list[float],
        notes: Sequence[str],
    ) -> None:
        """The run begins, or goes on, after so many steps were `done`; `notes`: what else the user should know of that.
        All ranks call it at once."""
        self.write(
            "start",
            config=config.plain(),
            world_size=ranks.size,
            devices=ranks.gather(ranks.device_name),
            rows=dict(data.sizes),
            digest=data.digest,
            global_batch=order.global_batch,
            epochs=epochs,
            steps=epochs * order.steps,
            from_step=done,
            own_rates=rates,
            precision=precision,
        )
        losses = [lost for lost in ranks.gather(faults.lost_before()) if lost]
        if losses:
            self.write("note", text=f"{faults.first(losses).short}; going on from step {done}")
        for note in notes:
            self.note(note)
        if order.global_batch > order.rows:
            self.note(
                f"the global batch of {order.global_batch} rows is larger than the {order.rows} training rows, so that "
                "every step takes all of them"
            )

    def write(self, kind: str, **content: Any) -> None:
        """A line of the record."""
        self._record.write(kind, **content)

    def note(self, text: str) -> None:
        """Say what went wrong without ending the run, which the first rank knows."""
        if self.first:
            say(text)
            self._record.write("note", text=text)

    def came_apart(self, most: float | None) -> None:
        """After an epoch a weight of the ranks differed by so much, where any did, and was made equal."""
        if most is not None and not self._apart:
            self.note(
                f"the ranks' weights had come apart by up to {most:.1e}, as unlike processors round otherwise; all "
                "went on with rank 0's, as they do after each epoch"
            )
            self._apart = True

    def went_on(self, rows: int) -> None:
        """A step of so many rows was queued."""
        self._bar.update(rows)

    def trained(self) -> None:
        """The last step is done, or the run is to stop: the bar has nothing more to show."""
        self._bar.close()

    def checkpoint(self, steps: int, path: Path, seconds: float) -> None:
        """A checkpoint after so many steps was written."""
        self._record.write("checkpoint", step=steps, file=f"{CHECKPOINTS}/{path.name}", seconds=round(seconds, 3))

    def step(self, report: Report, throughput: Throughput, *, epoch: int, last: bool) -> None:
        """What is known of a step of an epoch (from 1)."""
        for rank in np.flatnonzero(report.pieces != self._pieces):
            pieces = f"pieces of {plural(int(report.pieces[rank]), 'row')}"
            self.note(f"{self.names[rank]}: its share does not fit into its memory; going on in {pieces}")
        self._pieces = report.pieces
        if self._thinning.takes(report.step, last=last, now=time.monotonic()):
            self._record.write(
                "step",
                epoch=epoch,
                step=report.step + 1,
                loss=report.loss,
                rows_per_second=throughput.rows_per_second,
                balanced=throughput.balanced,
                split=report.rows.tolist(),
                compute_seconds=report.seconds.tolist(),
            )
            self._bar.set_postfix_str(f"loss {report.loss:.3f}, {throughput.balanced:.0%} balanced")


def _opened(output: Path, *, fresh: bool) -> Record:
    try:
        (output / SUMMARY).unlink(missing_ok=True)
        if fresh:
            checkpoint.clear(output / CHECKPOINTS)
        return Record(output / RECORD, fresh=fresh and faults.lost_before() is None)
    except OSError as error:
        raise TrainingError(
            f"cannot write {error.filename}: {error.strerror}; remove it, or choose another --output"
        ) from error
