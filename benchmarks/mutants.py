"""How many small mistakes the fast tests of a room notice: mutation testing, by a sample.

    python -m benchmarks mutants [--sample 200] [--seed 0] [--rooms ROOM ...] [--jobs 1] [--again RECORD]

A mutant is a file with one change: by an operator of cosmic-ray's, or a statement left out, which it has no operator
for. A place is drawn, and then one of the changes there; types are no places. Those tests of the room run that come to
its line, in a copy of the tree. A mutant is killed when one of them fails, or takes too long. `--again` tries those
that a record says survived by all tests of their room, and keeps the rest of it.

Each mutant has a process of its own, forked from one that has loaded libraries and nothing of Shoal. Do not let it
write bytecode: Python takes a file of the same size and second for the same.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from importlib import import_module
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from benchmarks.record import Log
from common.errors import ShoalError

ROOT = Path(__file__).parent.parent
ROOMS = {
    "bootstrap/removal": ["tests/bootstrap/removal"],
    "infra/handlers/guard": [f"tests/infra/test_guard{part}.py" for part in ("", "_parameters", "_rules")],
    "infra/cost.py": ["tests/infra/test_cost.py"],
    "experiments/forecast": ["tests/experiments/forecast"],
    "trainer/distributed": ["tests/trainer/distributed"],
    "trainer/embeddings": ["tests/trainer/embeddings"],
    "corpus/stream": ["tests/corpus/stream"],
}
"""By room the tests that mirror it."""
_PYTEST = ["-q", "-n0", "-p", "no:cacheprovider", "-m", "not slow and not soak and not lint"]
_LIBRARIES = ("boto3", "h5py", "hypothesis", "numba", "numpy", "pyarrow", "pytest", "torch")
_LEFT_OUT = "statement left out"
_STATEMENTS = ("expr_stmt", "atom_expr", "power", "raise_stmt", "return_stmt", "del_stmt", "yield_expr")
_SECONDS, _ROOM_SECONDS = 300.0, 1200.0
"""How long the tests of a mutant's line, and of its room, may take on a busy machine."""

Mutant = dict[str, Any]
"""`room`, `file`, `line`, `operator`, `occurrence`, `before` and `after`; when it has run, `outcome` and `seconds`. A
person writes `why` to the record of a survivor that is no mistake."""


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=200, help="mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (default: %(default)s)")
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=list(ROOMS), metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (default: %(default)s)")
    parser.add_argument("--again", type=Path, metavar="RECORD", help="try the survivors of this record again")
    options = parser.parse_args(arguments)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    again = json.loads(options.again.read_text())["mutants"] if options.again else []
    drawn = [each for each in again if each["outcome"] == "survived" and "why" not in each] or _drawn(options)
    found = [each for each in again if each not in drawn]
    log = Log("mutants")
    fork = multiprocessing.get_context("fork")
    with (
        TemporaryDirectory(prefix="shoal-mutants-") as copies,
        ProcessPoolExecutor(options.jobs, fork, initializer=_copy_tree, initargs=(copies,)) as pool,
    ):
        running: dict[Future[Any], str] = {}
        if again:
            running |= {pool.submit(_run, mutant): "" for mutant in drawn}
        else:
            running |= {pool.submit(_tests_by_line, room): room for room in sorted({each["room"] for each in drawn})}
        while running:
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                if room := running.pop(done):
                    those = [each for each in drawn if each["room"] == room]
                    running |= {pool.submit(_run, each, _tests_of(each, done.result())): "" for each in those}
                    continue
                found.append(done.result())
                log.say(f"{found[-1]['outcome']:8} {found[-1]['seconds']:6.1f} s  {_told(found[-1])}")
                log.keep({"mutants": sorted(found, key=_told)})
    rows = []
    for name in (*(room for room in ROOMS if any(each["room"] == room for each in found)), "all"):
        own = [each for each in found if name in ("all", each["room"])]
        noticed = [each["outcome"] != "survived" for each in own if "why" not in each]
        share = f"{sum(noticed) / max(1, len(noticed)):.1%}"
        rows.append([name, f"{len(own) - len(noticed)}", f"{len(noticed)}", f"{sum(noticed)}", share])
    log.table(["room", "no mistakes", "mistakes", "noticed", "share"], rows)


def _told(mutant: Mutant) -> str:
    what = f"{mutant['operator']}: {mutant['before']} -> {mutant['after']}"
    return f"{mutant['file']}:{mutant['line']} ({mutant['occurrence']}) {what}"


def _drawn(options: argparse.Namespace) -> list[Mutant]:
    """The sample: places of all rooms alike, and a change at each."""
    from cosmic_ray.mutating import mutate_code

    operators, places = _operators(), defaultdict[tuple[Any, ...], list[tuple[str, int]]](list)
    for room in options.rooms:
        path = ROOT / room
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            for name, occurrence, place in _changes(file.read_text(), operators):
                places[room, str(file.relative_to(ROOT)), place].append((name, occurrence))
    chance, found = random.Random(options.seed), list[Mutant]()  # noqa: S311
    for room, file, place in chance.sample(list(places), len(places)):
        name, occurrence = chance.choice(places[room, file, place])
        source = (ROOT / file).read_text()
        code = mutate_code(source, operators[name], occurrence)
        with suppress(SyntaxError):
            compile(code, file, "exec")
            old, new = (text.splitlines()[place[0] - 1].strip() for text in (source, code))
            told = {"operator": name, "occurrence": occurrence, "before": old, "after": new}
            found.append({"room": room, "file": file, "line": place[0], **told})
        if len(found) == options.sample:
            break
    return sorted(found, key=lambda each: (each["file"], each["line"]))


def _operators() -> dict[str, Any]:
    """Those of cosmic-ray's that need no arguments, and one that leaves out a statement of a function."""
    import parso
    from cosmic_ray import plugins
    from cosmic_ray.operators.operator import Operator

    class LeaveOut(Operator):
        def mutation_positions(self, node: Any) -> Iterator[Any]:
            if (
                node.type in _STATEMENTS
                and node.parent.type == "simple_stmt"
                and parso.tree.search_ancestor(node, "funcdef")
            ):
                yield node.start_pos, node.end_pos

        def mutate(self, node: Any, _index: int) -> Any:
            return parso.python.tree.Keyword("pass", node.start_pos, node.get_first_leaf().prefix)

        @classmethod
        def examples(cls) -> Sequence[Any]:
            return ()

    named = {name.partition("/")[2]: plugins.get_operator(name) for name in plugins.operator_names()}
    return {name: each() for name, each in named.items() if not each.arguments()} | {_LEFT_OUT: LeaveOut()}


def _changes(source: str, operators: dict[str, Any]) -> Iterator[tuple[str, int, Any]]:
    """Operator, occurrence and place (start, column, ...) of each change of a file."""
    from cosmic_ray.ast import ast_nodes, get_ast

    nodes = list(ast_nodes(get_ast(source)))
    for name, operator in operators.items():
        found = ((node, place) for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (node, (start, end)) in enumerate(found):
            if not _is_type(node):
                yield name, occurrence, (*start, *end)


def _is_type(node: Any) -> bool:
    """Whether it stands in an annotation, joins types, or tells how arguments are given."""
    if node.parent is not None and node.parent.type in ("parameters", "lambdef"):
        return True
    if getattr(node, "value", "") == "|" and "None" in node.parent.get_code():
        return True
    while node.parent is not None:
        above = node.parent
        place = next(number for number, each in enumerate(above.children) if each is node)
        before = above.children[place - 1] if place else None
        if (above.type == "annassign" and place == 1) or (above.type == "tfpdef" and place == 2):
            return True
        if above.type == "funcdef" and getattr(before, "value", "") == "->":
            return True
        node = above
    return False


def _copy_tree(copies: str) -> None:
    """Make this process's copy of the tree, and load the libraries."""
    copy = Path(mkdtemp(dir=copies))
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    for name in ("node_modules", "build"):
        (copy / name).symlink_to(ROOT / name)
    os.environ["PYTHONPATH"] = str(copy)
    os.chdir(copy)
    for library in _LIBRARIES:
        import_module(library)


def _test(arguments: Sequence[str]) -> None:
    """Run pytest in this process, a fresh one, on the copy; its exit status is pytest's."""
    import pytest

    os.setsid()
    with Path(os.devnull).open("w") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
    ours = {path.stem for path in ROOT.glob("*") if (path / "__init__.py").exists()} | {"tests", "app"}
    for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
        del sys.modules[name]
    sys.path[:0] = [str(Path.cwd())]
    status = int(pytest.main([*_PYTEST, *arguments]))
    os._exit(status)


def _status(arguments: Sequence[str], seconds: float) -> int | None:
    """The exit status of pytest; None where it took longer."""
    process = multiprocessing.get_context("fork").Process(target=_test, args=(arguments,))
    process.start()
    process.join(seconds)
    status = process.exitcode
    with suppress(ProcessLookupError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    return status


def _tests_by_line(room: str) -> dict[str, dict[int, list[str]]]:
    """By file and line of a room the tests that come to it. Raises ShoalError for a room whose tests fail as they
    are."""
    from coverage import CoverageData

    with TemporaryDirectory() as folder:
        os.environ["COVERAGE_FILE"] = f"{folder}/coverage"
        if _status([f"--cov={Path(room).parts[0]}", "--cov-context=test", "--cov-report=", *ROOMS[room]], 3600.0) != 0:
            raise ShoalError(f"the tests of {room} fail as they are")
        data = CoverageData(f"{folder}/coverage")
        data.read()
        files = {
            str(Path(file).relative_to(Path.cwd())): data.contexts_by_lineno(file) for file in data.measured_files()
        }
    return {
        file: {line: sorted({name.partition("|")[0] for name in names} - {""}) for line, names in found.items()}
        for file, found in files.items()
    }


def _tests_of(mutant: Mutant, found: dict[str, dict[int, list[str]]]) -> list[str]:
    """The tests for a mutant: those that come to its line, or else to its file, or else all of its room."""
    lines = found.get(mutant["file"], {})
    if own := lines.get(mutant["line"]):
        return own
    return sorted(set(chain.from_iterable(lines.values()))) or ROOMS[mutant["room"]]


def _run(mutant: Mutant, tests: Sequence[str] = ()) -> Mutant:
    """Try a mutant by some tests, or by all of its room, in this process's copy."""
    from cosmic_ray.mutating import mutate_code

    path, began = Path(mutant["file"]), time.monotonic()
    kept, source = path.stat(), path.read_text()
    path.write_text(mutate_code(source, _operators()[mutant["operator"]], mutant["occurrence"]))
    try:
        status = _status(["-x", *(tests or ROOMS[mutant["room"]])], _SECONDS if tests else _ROOM_SECONDS)
    finally:
        path.write_text(source)
        os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    outcome = "too slow" if status is None else "survived" if status in (0, 5) else "killed"
    return {**mutant, "outcome": outcome, "seconds": round(time.monotonic() - began, 1)}
