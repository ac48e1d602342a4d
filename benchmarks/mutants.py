"""How many small mistakes the fast tests notice: mutation testing, by a sample of the whole product.

    python -m benchmarks mutants [--sample 200] [--seed 0] [--rooms ROOM ...] [--jobs 1] [--again RECORD]

A mutant is a file with one change: by an operator of cosmic-ray's, or a statement left out, which it has no operator
for. A file is drawn by its length, a place in it, and one of the changes there; types are no places. The fast tests
that come to its line run against it in a copy of the tree. A mutant is killed when one fails, or takes too long.
`--again` tries those that a record says survived in the tree as it is now, and keeps the rest of the record; a mutant
whose code has gone is left out.

Each mutant has a process of its own, forked from one that has loaded libraries and nothing of Shoal. Do not let it
write bytecode: Python takes a file of the same size and second for the same.
"""

import argparse
import ast
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
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import suppress
from importlib import import_module
from itertools import chain
from operator import eq
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from benchmarks.record import Log
from common.errors import ShoalError

ROOT = Path(__file__).parent.parent
ROOMS = (
    *("bootstrap", "common", "corpus", "experiments", "infra", "jobs"),
    *("shoal", "shoal_balance", "shoal_local_aws", "trainer"),
)
_PYTEST = ["-q", "-p", "no:cacheprovider", "-m", "not slow and not soak and not lint"]
_LIBRARIES = ("boto3", "h5py", "hypothesis", "numba", "numpy", "pyarrow", "pytest", "torch")
_LEFT_OUT = "statement left out"
_STATEMENTS = ("expr_stmt", "atom_expr", "power", "raise_stmt", "return_stmt", "del_stmt", "yield_expr")
_SECONDS, _MOST_TESTS = 900.0, 300
"""How long the tests of a mutant may take on a busy machine, and how many are tried."""

Mutant = dict[str, Any]
"""`file`, `line`, `operator`, `occurrence`, `before` and `after`; when it has run, `outcome` and `seconds`. A
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
    found = [each for each in again if each["outcome"] != "survived" or "why" in each]
    drawn = [now for each in again if each not in found and (now := _now(each))] if again else _drawn(options)
    log = Log("mutants")
    fork = multiprocessing.get_context("fork")
    with (
        TemporaryDirectory(prefix="shoal-mutants-") as copies,
        ProcessPoolExecutor(options.jobs, fork, initializer=_copy_tree, initargs=(copies,)) as pool,
    ):
        tests = _tests_by_line(options.jobs)
        running = {pool.submit(_run, mutant, _tests_of(mutant, tests)) for mutant in drawn}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                found.append(each.result())
                log.say(f"{found[-1]['outcome']:8} {found[-1]['seconds']:6.1f} s  {_line(found[-1])}")
                log.keep({"mutants": sorted(found, key=_line)})
    rows = []
    for name in (*ROOMS, "all"):
        own = [each for each in found if name in ("all", each["file"].partition("/")[0])]
        noticed = [each["outcome"] != "survived" for each in own if "why" not in each]
        share = f"{sum(noticed) / max(1, len(noticed)):.1%}"
        rows.append([name, f"{len(own) - len(noticed)}", f"{len(noticed)}", f"{sum(noticed)}", share])
    log.table(["room", "no mistakes", "mistakes", "noticed", "share"], rows)


def _line(mutant: Mutant) -> str:
    what = f"{mutant['operator']}: {mutant['before']} -> {mutant['after']}"
    return f"{mutant['file']}:{mutant['line']} ({mutant['occurrence']}) {what}"


def _folder(room: str) -> Path:
    """The folder of a room: at the root, or in a package of its own."""
    return next(ROOT.glob(f"packages/*/{room}"), ROOT / room)


def _drawn(options: argparse.Namespace) -> list[Mutant]:
    """The sample: files by their length, a place of each, and a change there."""
    from cosmic_ray.mutating import mutate_code

    operators, chance, found = _operators(), random.Random(options.seed), list[Mutant]()  # noqa: S311
    sources = {path: path.read_text() for room in options.rooms for path in sorted(_folder(room).rglob("*.py"))}
    lengths = [source.count("\n") for source in sources.values()]
    seen = set()
    while len(found) < options.sample:
        (path,) = chance.choices(list(sources), lengths)
        file, source = str(path.relative_to(ROOT)), sources[path]
        places = defaultdict[Any, list[tuple[str, int]]](list)
        for name, occurrence, place in _changes(source, operators):
            places[place].append((name, occurrence))
        if not places or (file, place := chance.choice(list(places))) in seen:
            continue
        seen.add((file, place))
        name, occurrence = chance.choice(places[place])
        code = mutate_code(source, operators[name], occurrence)
        with suppress(SyntaxError):
            compile(code, file, "exec")
            old, new = (text.splitlines()[place[0] - 1].strip() for text in (source, code))
            change = {"operator": name, "occurrence": occurrence, "before": old, "after": new}
            found.append({"file": file, "line": place[0], **change})
    return sorted(found, key=lambda each: (each["file"], each["line"]))


def _now(mutant: Mutant) -> Mutant | None:
    """A mutant of an earlier tree in this one; None where its code has gone."""
    from cosmic_ray.mutating import mutate_code

    path, operators = ROOT / mutant["file"], _operators()
    source, change = path.read_text() if path.exists() else "", (mutant["before"], mutant["after"])
    for name, occurrence, place in _changes(source, operators):
        if name == mutant["operator"] and source.splitlines()[place[0] - 1].strip() == change[0]:
            code = mutate_code(source, operators[name], occurrence)
            if code.splitlines()[place[0] - 1].strip() == change[1]:
                return {**mutant, "line": place[0], "occurrence": occurrence}
    return None


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
    for name in ("node_modules", "build", ".venv"):
        (copy / name).symlink_to(ROOT / name)
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (copy, *copy.glob("packages/*"))))
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
    ours = {path.parent.name for place in (".", "packages/*") for path in ROOT.glob(f"{place}/*/__init__.py")}
    ours |= {"tests", "app"}
    for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
        del sys.modules[name]
    sys.path[:0] = [str(Path.cwd())]
    status = int(pytest.main([*_PYTEST, "-n0", *arguments]))
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


def _tests_by_line(jobs: int) -> dict[str, dict[int, list[str]]]:
    """The tests by the file and line of the product that they come to, as pytest is given them: functions, and whole
    files where a fixture comes to the line. Raises ShoalError where they fail as they are."""
    from coverage import CoverageData

    with TemporaryDirectory() as folder:
        os.environ["COVERAGE_FILE"] = f"{folder}/coverage"
        rooms = [f"--cov={room}" for room in ROOMS]
        command = [sys.executable, "-m", "pytest", *_PYTEST, f"-n{jobs}", "--cov-context=test", "--cov-report=", *rooms]
        if (run := subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)).returncode:
            failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            raise ShoalError("\n".join(["the fast tests fail as they are:", *failed]))
        data = CoverageData(f"{folder}/coverage")
        data.read()
        del os.environ["COVERAGE_FILE"]
        return {
            str(Path(file).relative_to(ROOT)): {
                line: sorted({_as_given(name) for name in names if name})
                for line, names in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }


def _as_given(context: str) -> str:
    """`tests/a.py::test_b[c]|run` as pytest is given it: the function, or the file for `|setup`."""
    test, _, phase = context.partition("|")
    return test.partition("[")[0] if phase == "run" else test.partition("::")[0]


def _tests_of(mutant: Mutant, found: dict[str, dict[int, list[str]]]) -> list[str]:
    """The tests that come to a mutant's statement, or else (a module runs it, or processes of their own) to its file,
    or else those of the mirrored folder; the nearest first, and no more than pytest takes `_SECONDS` for."""
    file, lines = Path(mutant["file"]), found.get(mutant["file"], {})
    own = {test for line in _statement(mutant) for test in lines.get(line, ())}
    tests = own or set(chain.from_iterable(lines.values()))
    mirrored = ROOT / "tests" / file.parent
    if file.parts[0] == "packages":
        mirrored = ROOT.joinpath(*file.parts[:2], "tests", *file.parts[3:-1])
    tests |= {str(path.relative_to(ROOT)) for path in mirrored.glob("test_*.py") if file.stem in path.stem or not tests}

    def nearness(test: str) -> tuple[bool, int, str]:
        parts = Path(test.partition("::")[0]).parts[1:]
        return file.stem not in parts[-1], -sum(map(eq, parts, file.parts)), test

    return sorted(tests, key=nearness)[:_MOST_TESTS]


def _statement(mutant: Mutant) -> range:
    """The lines of the innermost statement around a mutant's line; of one with a body, the lines before it."""
    found = range(mutant["line"], mutant["line"] + 1)
    for node in ast.walk(ast.parse((ROOT / mutant["file"]).read_text())):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            lines = range(node.lineno, body[0].lineno if body else (node.end_lineno or node.lineno) + 1)
            found = lines if mutant["line"] in lines else found
    return found


def _run(mutant: Mutant, tests: Sequence[str]) -> Mutant:
    """Try a mutant by these test files, in this process's copy."""
    from cosmic_ray.mutating import mutate_code

    path, began = Path(mutant["file"]), time.monotonic()
    kept, source = path.stat(), path.read_text()
    path.write_text(mutate_code(source, _operators()[mutant["operator"]], mutant["occurrence"]))
    try:
        status = _status(["-x", *tests], _SECONDS) if tests else 0
    finally:
        path.write_text(source)
        os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    outcome = "too slow" if status is None else "survived" if status in (0, 5) else "killed"
    return {**mutant, "outcome": outcome, "seconds": round(time.monotonic() - began, 1)}
