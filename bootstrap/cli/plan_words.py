"""What learning word embeddings takes (`shoal plan --words`): in each mode, on a topology or on this machine.

Several ranks may well be slower than one, so what one of them would do alone stands first, and after the table from
when all of them beat it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from bootstrap.cli.command import MOST_RANKS, Callback, option
from bootstrap.cli.output import show, table
from common.display import plural
from common.errors import TrainingError, UsageError

if TYPE_CHECKING:
    from experiments.forecast.communication import Links
    from experiments.forecast.estimate import Estimate
    from experiments.forecast.words import WordRate, WordTask
    from infra.topology import Topology

_GROUP = "Word embeddings"
_SIZE, _VOCABULARY, _ROWS, _EPOCHS = 100, 50_000, 64, 5
_OTHERS = ("rows", "raw_bytes", "like", "global_batch", "spot", "every", "max_price", "max_hours")
_OWN = ("embedding", "vocabulary", "rank_batch", "mode", "ranks")


def word_options(function: Callback) -> Callback:
    """Declare the options."""
    options = (
        option(
            "--words",
            group=_GROUP,
            type=click.IntRange(min=1),
            metavar="N",
            help="running words of a text to learn word embeddings from by skip-gram, in place of --rows",
        ),
        option(
            "--embedding", group=_GROUP, type=click.IntRange(1, 4096), help=f"numbers in a vector (default: {_SIZE})"
        ),
        option(
            "--vocabulary",
            group=_GROUP,
            type=click.IntRange(min=1, max=1 << 24),
            metavar="N",
            help=f"words with a vector (default: {_VOCABULARY:,})",
        ),
        option(
            "--rank-batch",
            group=_GROUP,
            type=click.IntRange(min=1),
            metavar="ROWS",
            help=f"rows of 128 words in a step of a GPU or rank (default: {_ROWS}, or those of --rates)",
        ),
        option(
            "--mode",
            group=_GROUP,
            several=True,
            metavar="MODE",
            help="sync, average:K or async:K, as shoal train takes them (default: sync, average:20 and async:20)",
        ),
        option(
            "--ranks",
            group=_GROUP,
            type=click.IntRange(1, MOST_RANKS),
            metavar="N",
            help="with --local: ranks that learn together (default: the cores)",
        ),
    )
    for each in reversed(options):
        each(function)
    return function


@dataclass(frozen=True, kw_only=True)
class WordWork:
    """What is to be predicted."""

    words: int
    epochs: int
    tasks: "tuple[WordTask, ...]"
    """One for each mode."""
    rate: "WordRate | None"
    """As measured; None: by the catalogue."""

    def lines(self, topology: "Topology") -> Iterator[str]:
        """What it takes on a topology, for a person."""
        from infra import cost

        links, rate = _links(topology), self._rate_on(topology)
        yield from self._table(links, rate, _hourly(topology))
        if unknown := cost.unknown(topology):
            yield f"The dollars are without {', '.join(unknown)}, whose prices are not known."

    def content(self, topology: "Topology") -> dict[str, Any]:
        """The same for a program."""
        return self._content(_links(topology), self._rate_on(topology), _hourly(topology))

    def show_here(self, ranks: int | None, *, as_json: bool) -> int:
        """Print what it takes on this machine."""
        from common.cores import cores
        from experiments.forecast.communication import Links

        assert self.rate is not None
        links = Links(nodes=1, ranks=ranks or cores(), gbits=math.inf)
        text = "\n".join(self._table(links, self.rate, 0.0))
        show(self._content(links, self.rate, 0.0), text, as_json=as_json)
        return 0

    def _rate_on(self, topology: "Topology") -> "WordRate":
        from common.errors import ExperimentError
        from experiments.forecast.nodes import nodes_of
        from experiments.forecast.words import rate_by_catalogue, rate_together
        from infra import catalog

        gpus = [(catalog.find(node.instance_type).gpu, node.gpus) for node in nodes_of(topology)]
        if self.rate is None:
            size = self.tasks[0].size
            return rate_together([rate_by_catalogue(gpu, size) for gpu, count in gpus if gpu for _ in range(count)])
        measured = {gpu.name for node in self.rate.nodes if (gpu := catalog.find(node.instance_type).gpu)}
        if measured != {gpu.name for gpu, _ in gpus if gpu}:
            raise ExperimentError(
                f"--rates has runs on {', '.join(sorted(measured)) or 'this machine'}, and {topology.name} has other "
                "GPUs; give a training of one rank on such a GPU, or leave --rates out"
            )
        return self.rate

    def _found(self, links: "Links", rate: "WordRate") -> "Iterator[tuple[str, Estimate, float, Estimate]]":
        """The way, words a second, bytes of a step, and seconds: of one rank first."""
        from experiments.forecast.communication import Links
        from experiments.forecast.estimate import Estimate
        from experiments.forecast.words import step_bytes, words_per_second

        alone = Links(nodes=1, ranks=1, gbits=links.gbits)
        ways = [("one alone", self.tasks[0], alone)]
        ways += [(task.mode, task, links) for task in self.tasks] if links.ranks > 1 else []
        for name, task, by in ways:
            speed = words_per_second(task, rate, by)
            taken = Estimate.about(self.words * self.epochs / speed, rate.off)
            sent = step_bytes(task, links.ranks) if by is links else 0.0
            yield name, Estimate.about(speed, rate.off), sent, taken

    def _table(self, links: "Links", rate: "WordRate", hourly: float) -> Iterator[str]:
        from experiments.forecast.nodes import NODES_START

        task = self.tasks[0]
        yield (
            f"Vectors of {task.size} numbers for {task.vocabulary:,} words, learnt {plural(self.epochs, 'time')} from "
            f"a text of {self.words:,} words, by {plural(links.ranks, 'rank')} with {plural(task.rows, 'row')} a step:"
        )
        rows = []
        for name, speed, sent, seconds in self._found(links, rate):
            dollars = [f"{seconds.plus(NODES_START).times(hourly / 3600).middle:,.2f}"] if hourly else []
            rows.append((name, f"{speed.middle:,.0f}", f"{sent / 1e6:,.2f}", f"{seconds.middle / 3600:,.2f}", *dollars))
        heads = ("ranks", "words a second", "MB a step and rank", "hours", *(["dollars"] if hourly else []))
        yield table(rows, heads, right=tuple(range(1, len(heads))), ruled=True)
        yield ""
        if links.ranks > 1:
            yield f"From when {links.ranks} ranks are faster than one, if one thing changes:"
            yield from (f"  {task.mode}: {_when(task, rate, links)}" for task in self.tasks)
            yield ""
        yield from (line for note in self._notes(links) for line in (f"Note: {note}", ""))
        yield f"Within a factor of {1 + rate.off:g}. By {rate.source}."

    def _content(self, links: "Links", rate: "WordRate", hourly: float) -> dict[str, Any]:
        from experiments.forecast.words import when_faster

        return {
            "ranks": links.ranks,
            "source": rate.source,
            "hourly": hourly,
            "ways": [
                {"way": name, "words_per_second": speed._asdict(), "bytes_a_step": sent, "seconds": seconds._asdict()}
                for name, speed, sent, seconds in self._found(links, rate)
            ],
            "beats_one_from": {task.mode: vars(when_faster(task, rate, links)) for task in self.tasks}
            if links.ranks > 1
            else {},
            "notes": self._notes(links),
        }

    def _notes(self, links: "Links") -> list[str]:
        """On the quality of what is learnt in these modes."""
        from trainer.options.optimisation_options import notes_of_mode

        return [note for task in self.tasks for note in notes_of_mode(task.mode, ranks=links.ranks)]


def check_options(asked: dict[str, Any], typed: Sequence[str], topologies: Sequence[str]) -> None:
    """Raise UsageError for options that do not go together."""
    if asked["words"] is None:
        if needless := [name for name in _OWN if name in typed]:
            raise UsageError(f"--{needless[0].replace('_', '-')} goes with --words, the text to learn vectors from")
        return
    if needless := [name for name in _OTHERS if name in typed]:
        name = {"every": "all"}.get(needless[0], needless[0]).replace("_", "-")
        raise UsageError(f"--{name} goes with a dataset of reviews, and --words with word embeddings; give one of them")
    if asked["local"] == bool(topologies):
        raise UsageError("--words goes with topologies, or with --local and --rates")
    if asked["local"] and not asked["rates"]:
        raise UsageError(
            "--local --words needs --rates, outputs of `shoal embed --local --nodes 1`: one, or some "
            "that differ in --rank-batch"
        )
    if asked["rates"] and (measured := [name for name in ("embedding", "vocabulary") if name in typed]):
        raise UsageError(f"--{measured[0]} is that of the trainings of --rates; leave it out")
    if asked["ranks"] is not None and not asked["local"]:
        raise UsageError("--ranks goes with --local; a topology has as many as it has GPUs")


def read_work(asked: dict[str, Any], typed: Sequence[str]) -> WordWork | None:
    """What is to be predicted; None without --words. Raises UsageError, and ExperimentError for --rates that cannot be
    used."""
    if asked["words"] is None:
        return None
    from experiments.forecast.words import MODES, WordTask, task_of_runs
    from trainer.options.optimisation_options import OptimisationOptions

    modes = asked["mode"] or MODES
    for mode in modes:
        try:
            OptimisationOptions(mode=mode, optimiser="sgd")
        except TrainingError as error:
            raise UsageError(str(error)) from None
    rate = None
    task = WordTask(
        size=asked["embedding"] or _SIZE,
        vocabulary=asked["vocabulary"] or _VOCABULARY,
        rows=asked["rank_batch"] or _ROWS,
        mode=modes[0],
    )
    if asked["rates"]:
        task, rate = task_of_runs(asked["rates"], modes[0], asked["rank_batch"])
    return WordWork(
        words=asked["words"],
        epochs=asked["epochs"] if "epochs" in typed else _EPOCHS,
        tasks=tuple(replace(task, mode=mode) for mode in modes),
        rate=rate,
    )


def _links(topology: "Topology") -> "Links":
    from experiments.forecast.communication import Links
    from experiments.forecast.nodes import nodes_of, slowest_gbits

    nodes = nodes_of(topology)
    return Links(
        nodes=len(nodes),
        ranks=sum(node.gpus for node in nodes),
        gbits=slowest_gbits(nodes),
    )


def _hourly(topology: "Topology") -> float:
    """Dollars an hour of the nodes that train and read, and of what is always there."""
    from infra import cost

    return sum(row.hourly for row in cost.rows(topology) if row.since in ("always", "train"))


def _when(task: "WordTask", rate: "WordRate", links: "Links") -> str:
    from experiments.forecast.words import when_faster

    found = when_faster(task, rate, links)
    kind = task.mode.partition(":")[0]
    more_steps = f"{kind}:{found.local_steps}"
    parts = [
        f"{plural(found.rows, 'row')} a step and rank or more" if found.rows else "",
        f"{more_steps} or more{_worse(more_steps, links)}" if found.local_steps else "",
        f"vectors of {found.size} numbers or fewer" if found.size else "",
        f"links of {found.gbits:g} Gbit/s or more" if found.gbits and links.nodes > 1 else "",
    ]
    return ", or ".join(part for part in parts if part) or "never, by any one of these"


def _worse(mode: str, links: "Links") -> str:
    """That a mode, which is faster, learns less, if it does."""
    from trainer.options.optimisation_options import notes_of_mode

    return " (with worse word embeddings)" if notes_of_mode(mode, ranks=links.ranks) else ""
