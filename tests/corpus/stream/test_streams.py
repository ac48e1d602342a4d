"""What a reader makes of files, and what it refuses, as `streams.yaml` lists."""

from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.errors import DataError
from corpus.reading import s3
from tests.corpus.reading.inputs.beginnings import content_of, written
from tests.corpus.stream.reading import begin, lines, parts, read

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("streams.yaml").read_text())


def page(home: str, stream: Path, case: dict[str, Any]) -> dict[str, Any]:
    """All that is left of a stream whose sources are below a folder or bucket."""
    begin(stream, *(f"{home}/{each}" for each in case["sources"]), **case.get("settings", {}))
    if "taken" in case:
        (stream / "taken.json").write_text(case["taken"])
    found: dict[str, Any] = {}
    try:
        status = read(stream)
        found["totals"] = {name: getattr(status, name) for name in ("lines", "words", "bytes", "malformed", "parts")}
        found["source"] = status.source.replace(f"{home}/", "")
        after = parts(stream)[-1].after if status.parts else None
        found["ended"] = [each.removeprefix(f"{home}/") for each in after.ended] if after else []
        found["offsets"] = {each.removeprefix(f"{home}/"): at for each, at in after.offsets.items()} if after else {}
    except DataError as error:
        found["refused"] = str(error).replace(f"{home}/", "").replace(f"{stream}/", "").replace(str(stream), "STREAM")
    found["text"] = lines(stream)[:4]
    return {name: value for name, value in found.items() if value}


@pytest.mark.usefixtures("pile")
@pytest.mark.parametrize("case", CASES, ids=itemgetter("case"))
def test_all_that_is_left_of_a_stream_or_the_sentence_that_refuses_it(tmp_path: Path, case: dict[str, Any]) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for name, content in case.get("files", {}).items():
        written(texts, name, content_of(content))
    for name, content in case.get("objects", {}).items():
        s3.client().put_object(Bucket="pile", Key=name, Body=content_of(content))
    assert page("s3://pile" if "objects" in case else str(texts), tmp_path / "stream", case) == case["found"]
