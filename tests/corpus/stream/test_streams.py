"""Sources of a stream become parts or are refused, as `streams.yaml` and `growing.yaml` list."""

import json
import shutil
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.errors import DataError
from corpus.reading import s3
from corpus.stream import part_files
from corpus.stream.parts import Position
from corpus.stream.progress import read_status
from tests.corpus.reading.inputs.beginnings import content_of, written
from tests.corpus.stream.reading import begin, filled, interrupt, lines, parts, read, read_until

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("streams.yaml").read_text())


def left(stream: Path, name: str) -> Any:
    path = stream / "reader-0" / name
    return json.loads(path.read_text()) if path.exists() else None


def page(home: str, stream: Path, case: dict[str, Any], messages) -> dict[str, Any]:
    """Run a stream with sources below a folder or bucket, and return its results, or check the error's message."""
    sources = (each if "://" in each else f"{home}/{each}" for each in case["sources"])
    begin(stream, *sources, **case.get("settings", {}))
    if "taken" in case:
        (stream / "taken.json").write_text(case["taken"])
    try:
        status = read(stream)
        assert read_status(stream) == status
        shutil.rmtree(home, ignore_errors=True)
        assert read(stream).words == status.words  # so that the sources are listed only once
        found = {name: left(stream, f"{name}.json") for name in ("status", "end")}
        for part in parts(stream)[:-1]:
            assert filled(part) >= part.tokens.size
        for part in parts(stream)[-1:]:
            after = part.after
            found |= {"ended": list(after.ended), "offsets": after.offsets, "text": lines(stream)[:4]}
    except DataError as error:
        messages.check(error)
        found = {"refused": True, "text": lines(stream)[:4]}
    shown: dict[str, Any] = json.loads(json.dumps(found).replace(f"{home}/", ""))
    return {name: value for name, value in shown.items() if value}


@pytest.mark.usefixtures("pile")
@pytest.mark.parametrize("case", CASES, ids=itemgetter("case"))
def test_a_stream_has_the_listed_results_or_is_refused(tmp_path: Path, case: dict[str, Any], messages) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for name, content in case.get("files", {}).items():
        written(texts, name, content_of(content))
    for name, content in case.get("objects", {}).items():
        s3.client().put_object(Bucket="pile", Key=name, Body=content_of(content))
    home = "s3://pile" if "objects" in case else str(texts)
    assert page(home, tmp_path / "stream", case, messages) == case["found"]


GROWING: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("growing.yaml").read_text())


def do(home: str, step: dict[str, Any]) -> None:
    kind, name = next(iter(step.items()))
    if home.startswith("s3://"):
        key = f"{home}/{name}".removeprefix("s3://pile/")
        s3.client().put_object(Bucket="pile", Key=key, Body=content_of(step["of"]))
    elif kind == "remove":
        Path(home, name).unlink()
    else:
        with Path(home, name).open("wb" if kind == "write" else "ab") as file:
            file.write(content_of(step["of"]))


def read_all(home: str, stream: Path, run: dict[str, Any], follow: bool) -> None:
    """Run a reader until its sources end, or with `follow` until all steps are done and their lines are in parts."""
    waiting, last = iter(run.get("steps", [])), 0.0

    def holds(now: float) -> bool:
        nonlocal last
        if now - last > part_files.LISTING_SECONDS + 1:
            last = now
            if (step := next(waiting, None)) is None:
                return lines(stream) == expected(run) or now > 1_000
            do(home, step)
        return False

    read_until(stream, holds) if follow else read(stream)


def expected(run: dict[str, Any]) -> list[str]:
    """Return the lines that parts must have after a run: listed, or made from patterns and their number of lines."""
    many = run.get("all", [])
    counted = [
        each.replace("#", str(n)) for each, count in zip(many[::2], many[1::2], strict=True) for n in range(count)
    ]
    return [*run.get("text", []), *counted]


@pytest.mark.usefixtures("pile")
@pytest.mark.parametrize("case", GROWING, ids=itemgetter("case"))
def test_runs_read_added_lines_once_and_refuse_changed_files(tmp_path: Path, case: dict[str, Any], messages) -> None:
    stream, follow = tmp_path / "stream", case.get("settings", {}).get("follow", False)
    (tmp_path / "texts").mkdir()
    home = f"s3://pile/{case['case']}" if "s3" in case else str(tmp_path / "texts")
    begin(stream, home, **case.get("settings", {}))
    for run in case["runs"]:
        for step in run.get("before", []):
            do(home, step)
        if "interrupted" in run:
            interrupt(stream, run["interrupted"])
        elif "refused" in run:
            with messages.raises(DataError) as refused:
                read(stream)
            assert left(stream, "error.json") == {"sentence": str(refused.value)}
        else:
            read_all(home, stream, run, follow)
            assert lines(stream) == expected(run)
            assert left(stream, "error.json") is None
            after = parts(stream)[-1].after if "offsets" in run else Position()
            assert after.offsets == {f"{home}/{name}": at for name, at in run.get("offsets", {}).items()}
            assert (after.identities.keys() == after.offsets.keys()) == (home.startswith("s3:") or "offsets" not in run)
