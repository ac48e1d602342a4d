"""How many texts a second both programs label on one core, and what `shoal predict` takes for a large file.

    python -m benchmarks fasttext predict [--texts 50000] [--gb 0.1] [--runs 3]

The texts are generated, and both models have the default sizes and learn from the same texts. The C++ program labels
texts by `benchmarks/peers/fasttext_predict.py`. The start is the time of one text: Python, libraries and the model.
Time of this comparison is CPU time. The large file is labelled on all cores, and so are a quarter and a half of it, to
see whether the memory grows; for ten gigabytes (--gb 10) the disk needs twice as many.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.fasttext import program, shoal
from benchmarks.fasttext.files import BYTES_A_TEXT, write_csv, write_plain
from benchmarks.meter import Usage
from benchmarks.predict import one_core
from benchmarks.record import Log

_LEARNT, _TEST = 20_000, 1000
_SHARES = (0.25, 0.5, 1.0)
_SHOAL, _PROGRAM = "Shoal", "fastText"

Way = Callable[[Path], Usage]


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks fasttext predict", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--texts", type=int, default=50_000, help="texts on one core (default: %(default)s)")
    parser.add_argument("--gb", type=float, default=0.1, help="GB of the large file (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="where files go (default: the system's temporary folder)")
    options = parser.parse_args(arguments)
    log = Log("fasttext-predict")
    with TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        ways = _ways(folder)
        beside = _on_one_core(log, ways, folder, options)
        _tabulate(log, beside, options.texts)
        large = _large(log, ways[_SHOAL], folder, options)
    log.keep(
        {
            "options": {**vars(options), "folder": None},
            "one core": {
                way: {case: list(map(asdict, each)) for case, each in of.items()} for way, of in beside.items()
            },
            "large": {str(gigabytes): list(map(asdict, usages)) for gigabytes, usages in large.items()},
        }
    )


def _ways(folder: Path) -> dict[str, Way]:
    """Both programs, which write their answers to `answers` in the folder, with models that were trained there."""
    write_csv(folder / "train.csv", _LEARNT, seed=0)
    write_csv(folder / "test.csv", _TEST, seed=1)
    shoal.train(
        folder / "model",
        *("--model=fasttext", "--epochs=1", f"--cache={folder / 'cache'}"),
        *(f"--input={folder / 'train.csv'}", f"--test-input={folder / 'test.csv'}"),
    )
    examples = folder / "train.txt"
    with (folder / "train.csv").open() as lines, examples.open("w") as out:
        out.writelines(f"__label__{line[1]} {line[5:-2]}\n" for line in lines)
    program.train(examples, thread=1).model.save_model(str(folder / "model.bin"))
    answers = folder / "answers"
    label = partial(shoal.run, "bootstrap.cli.main", "predict", "--model", folder / "model", log=answers)
    peer = partial(shoal.run, "benchmarks.peers.fasttext_predict", folder / "model.bin", log=answers)
    return {_SHOAL: label, _PROGRAM: peer}


def _on_one_core(
    log: Log, ways: Mapping[str, Way], folder: Path, options: argparse.Namespace
) -> dict[str, dict[str, list[Usage]]]:
    """The usages of each way, for one text and for all."""
    files = {"one": folder / "one.txt", "all": folder / "all.txt"}
    write_plain(files["one"], 1, seed=2)
    write_plain(files["all"], options.texts, seed=2)
    found: dict[str, dict[str, list[Usage]]] = {way: {case: [] for case in files} for way in ways}
    with one_core():
        for run in range(options.runs):
            for case, file in files.items():
                for way, label in ways.items():
                    found[way][case].append(label(file))
            last = {way: {case: round(each[-1].cpu, 2) for case, each in of.items()} for way, of in found.items()}
            log.say(f"{run}: {last}")
    return found


def _tabulate(log: Log, found: Mapping[str, Mapping[str, Sequence[Usage]]], texts: int) -> None:
    rates = {
        way: [texts / (every.cpu - one.cpu) for every, one in zip(of["all"], of["one"], strict=True)]
        for way, of in found.items()
    }
    rows = []
    for way, of in found.items():
        start, cpu = (median(usage.cpu for usage in of[case]) for case in ("one", "all"))
        ratios = [own / other for own, other in zip(rates[_SHOAL], rates[way], strict=True)]
        spread = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        memory = median(usage.peak_process for usage in of["all"]) / 1e6
        rates_cells = (f"{texts / cpu:,.0f}", f"{start:.1f}", f"{median(rates[way]):,.0f}")
        rows.append([way, *rates_cells, spread, f"{memory:,.0f}"])
    headers = ("program", "texts / CPU s", "start, CPU s", "without the start", "Shoal's, divided by it", "peak MB")
    log.table(headers, rows)


def _large(log: Log, label: Way, folder: Path, options: argparse.Namespace) -> dict[float, list[Usage]]:
    """The usages by the size of the file, in GB."""
    found: dict[float, list[Usage]] = {}
    for share in _SHARES:
        gigabytes = share * options.gb
        write_plain(folder / "large.txt", max(1, int(gigabytes * 1e9 / BYTES_A_TEXT)), seed=3)
        found[gigabytes] = [label(folder / "large.txt") for _ in range(options.runs)]
        log.say(f"{gigabytes:g} GB: {found[gigabytes]}")
    rows = []
    for gigabytes, usages in found.items():
        wall, cpu = (median(getattr(usage, name) for usage in usages) for name in ("wall", "cpu"))
        spread = f"{wall:.1f} ({min(usage.wall for usage in usages):.1f} to {max(usage.wall for usage in usages):.1f})"
        memory = median(usage.peak_process for usage in usages) / 1e6
        cells = [f"{gigabytes:g}", spread, f"{cpu:.1f}", f"{1000 * gigabytes / wall:.3g}", f"{memory:,.0f}"]
        rows.append([*cells, str(len(usages))])
    log.table(["GB of text", "s", "CPU s", "MB/s", "peak MB of the process", "runs"], rows)
    return found
