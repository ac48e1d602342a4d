"""What ranks on two hosts send each other, and what it costs them, over a link of some speed.

    python -m benchmarks embeddings link [TEXT...] [--megabits 1000] [--runs 3]    (as root, on Linux with iproute2)

Two ranks, each in a network namespace, and one alone, learn from the same text. In `sync` each rank sends the other the
gradients of the words that its own rows touch; in `average` how far its words have moved in K steps; in `async` each
rank keeps half of the words, and the other pulls and pushes those that it needs for K steps (a parameter server).
Bytes are those that a rank sends for a step of its own, as the trainer counts them. Words a second are those of
learning alone. Beside them stand the bytes and words a second that `shoal plan` predicts by the runs of one rank, and
by the link; `wrong` stands where it took the slower of one rank and two ranks for the faster one.
"""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.embeddings.texts import Text, add_options, write_texts
from benchmarks.fasttext import shoal
from benchmarks.link import linked, run_on_hosts
from benchmarks.record import Log
from bootstrap.training.sources.local_readers import FOLDER
from experiments.forecast.communication import Links
from experiments.forecast.words import alone, step_bytes, task_of_runs, words_per_second
from trainer.output.run_files import SUMMARY

_MODES = ("average:20", "average:50", "async:20", "async:50")
WAYS: Mapping[str, tuple[str, ...]] = {"sync": (), **{mode: (f"--mode={mode}", "--trust-network") for mode in _MODES}}
_ALONE = "one rank"
_SIZES, _ROWS = (50, 200), (3, 23, 64)
"""Rows: two of experiments/embeddings-50.yaml, and more."""
_MEGABYTES = 12


class _Measured(NamedTuple):
    words_per_second: float
    bytes_a_step: float
    """That a rank sends for a step of its own."""


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks embeddings link", description=__doc__.partition("\n")[0]
    )
    add_options(parser)
    parser.set_defaults(megabytes=_MEGABYTES)
    parser.add_argument("--megabits", type=int, default=1000, help="speed of the link a second (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each way, in turns (default: %(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=_SIZES, help="of the vectors (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=_ROWS, help="of a rank's step (default: %(default)s)")
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=tuple(WAYS), help="(default: all)")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        parser.error("only root can make network namespaces; run this as root")
    log = Log("embeddings-link")
    found: dict[str, dict[str, list[_Measured]]] = {}
    with TemporaryDirectory() as name, linked(options.megabits) as hosts:
        folder = Path(name)
        (text, *_) = write_texts(options, folder).values()
        stream = _read(text, folder)
        for run in range(options.runs):
            for size in options.sizes:
                for rows in options.rows:
                    runs = found.setdefault(f"{size}, {rows}", {})
                    for way in (_ALONE, *options.ways):
                        asked = [f"--embedding={size}", f"--rank-batch={rows}", f"--seed={run}", *WAYS.get(way, ())]
                        output = folder / way / f"{size}" / f"{rows}"
                        measured = _measured(hosts[:1] if way == _ALONE else hosts, stream, output, asked)
                        runs.setdefault(way, []).append(measured)
                        log.say(f"{size}, {rows}, {way}: {measured}")
        predicted = {name: _predicted(folder, name, options) for name in found}
    _tabulate(log, options, found, predicted)
    log.keep({"options": vars(options), "words": text.words, "runs": found, "predicted": predicted})


def _read(text: Text, folder: Path) -> Path:
    """The text as the trainer reads it."""
    shoal.train(folder / "first", f"--input={text.path}", "--tokeniser=spaces", "--epochs=1", verb="embed")
    return (folder / "first" / FOLDER).rename(folder / FOLDER)


def _predicted(folder: Path, setting: str, options: argparse.Namespace) -> dict[str, _Measured]:
    """What `shoal plan` says by the runs of one rank with vectors of this size."""
    size, rows = setting.split(", ")
    links = Links(nodes=2, ranks=2, gbits=options.megabits / 1000)
    found = {}
    for way in options.ways:
        task, rate = task_of_runs([folder / _ALONE / size], way, int(rows))
        found[way] = _Measured(words_per_second(task, rate, links), step_bytes(task, links.ranks))
        found[_ALONE] = _Measured(alone(task, rate), 0.0)
    return found


def _measured(hosts: Sequence[str], stream: Path, output: Path, asked: Sequence[str]) -> _Measured:
    output.parent.mkdir(parents=True, exist_ok=True)
    run_on_hosts(
        hosts,
        [
            *("-m", "trainer", "--model=skipgram", f"--data={stream}", f"--output={output}", "--epochs=2"),
            *("--threads=1", "--force", *asked),
        ],
    )
    summary = json.loads((output / SUMMARY).read_text())
    speed = summary["rows_seen"] * summary["words_a_row"] / summary["times"]["training"]
    return _Measured(speed, summary["bytes_a_step"])


def _tabulate(
    log: Log,
    options: argparse.Namespace,
    found: Mapping[str, Mapping[str, Sequence[_Measured]]],
    predicted: Mapping[str, Mapping[str, _Measured]],
) -> None:
    rows = []
    for setting, ways in found.items():
        for way, runs in ways.items():
            ratios = [run.words_per_second / one.words_per_second for run, one in zip(runs, ways[_ALONE], strict=True)]
            said = predicted[setting][way]
            ratio = said.words_per_second / predicted[setting][_ALONE].words_per_second
            rows.append(
                [
                    setting,
                    way,
                    f"{median(run.bytes_a_step for run in runs) / 1e3:,.1f}",
                    f"{said.bytes_a_step / 1e3:,.1f}",
                    f"{median(run.words_per_second for run in runs):,.0f}",
                    f"{said.words_per_second:,.0f}",
                    f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
                    "" if way == _ALONE else f"{ratio:.2f}{'' if (median(ratios) > 1) == (ratio > 1) else ': wrong'}",
                ]
            )
    heads = ("kB a step", "predicted", "words a second", "predicted", "to one rank", "predicted")
    log.table([f"{options.megabits} Mbit/s: size, rows of a rank's step", "way", *heads], rows)
