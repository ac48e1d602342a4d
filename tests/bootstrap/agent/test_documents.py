"""Requests, attempts and statuses: they are read as they were written, and anything else is refused with a reason."""

import json
from dataclasses import replace

import pytest

from bootstrap.agent.documents import Cancellation, RequestDocument, token_in
from bootstrap.agent.node_documents import Attempt, Member, NodeStatus, RunEnd
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import Format
from corpus.reading.sources import Source
from corpus.stream.stream_settings import StreamSettings
from corpus.text_request import TextRequest
from infra import topology
from tests.bootstrap.agent.world import request
from tests.bootstrap.test_shell import HOSTILE

TEXTS = TextRequest(
    sources=(Source(address="s3://pile/a.txt", size=1, identity="x", format=Format(kind="fasttext")),),
    settings=Settings(ragged=True, labelled=True, duplicates=True),
    max_malformed=0.05,
    plain_bytes=1_000,
)
REQUESTS = (
    request(options={"epochs": ("12",), "slow": ("1:2.0",), "force": ()}),
    request(readers=2, stop=True),
    replace(request(), dataset=None, texts=TEXTS, texts_name="0123456789ab"),
)
STATUS = NodeStatus(token="0a1b2c3d", phase="run", read=7, step=3, steps=9, ends=1.5e9, attempt=1, gpu_use=97)
CANCELLATION = Cancellation(run="0123456789ab", token="0a1b2c3d")
ATTEMPT = Attempt(
    number=2,
    token="0a1b2c3d",
    members=tuple(
        Member(instance=f"i-0000000{number}", address=f"10.0.0.{number + 1}", gpus=int(number < 2))
        for number in range(4)
    ),
    port=20_000,
    step=7,
    why="the node i-00000004 is gone",
)
DOCUMENTS = (  # tests/test_stored_documents.py reads each as written, and with changes that must be refused
    *REQUESTS,
    *(RequestDocument(runs=(each,)) for each in REQUESTS),
    ATTEMPT,
    RunEnd(token="0a1b2c3d", outcome="failed", error="the disk is full"),
    STATUS,
    CANCELLATION,
    replace(CANCELLATION, error="it is slow"),
)


def test_nodes_read_texts_only_from_s3():
    here = replace(TEXTS, sources=(replace(TEXTS.sources[0], address="/etc/passwd"),))
    stream = StreamSettings(sources=("s3://pile/a.txt", "/etc/passwd"))
    without = replace(TEXTS, sources=(replace(TEXTS.sources[0], address="s3://"),))
    for changes in ({"texts": here}, {"texts": without}, {"texts": None, "texts_name": None, "stream": stream}):
        with pytest.raises(DataError, match="a source is not in S3"):
            RequestDocument(runs=(replace(REQUESTS[2], **changes),))


def test_the_token_of_a_request_of_another_version_is_readable():
    written = RequestDocument(runs=REQUESTS[:1]).to_json().replace('"version": 2', '"version": 9')
    assert token_in(written) == REQUESTS[0].token
    for without in ("{", '{"runs": 3}', '{"runs": []}', '{"runs": [{"token": "../x"}]}'):
        assert token_in(without) is None


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        *((REQUESTS[0], field) for field in ("run", "token", "share", "dataset", "texts_name")),
        *((CANCELLATION, field) for field in ("run", "token")),
    ],
)
def test_no_field_of_a_request_can_be_a_path_or_a_shell_word(wanted, field, hostile):
    written = {**json.loads(wanted.to_json()), field: hostile}
    with pytest.raises(DataError):
        type(wanted).from_json(json.dumps(written))


@pytest.mark.parametrize(
    ("given", "changes", "part"),
    [
        (ATTEMPT, {"members": []}, "members is (), but must be 1 to 2,048 long"),
        (ATTEMPT, {"members": [3]}, "members is not of type tuple"),
        (ATTEMPT, {"port": 80}, "port is 80, but must be 1,024 to 64,999"),
        (ATTEMPT, {"number": 0}, "number is 0, but must be 1 to 999,999"),
        (ATTEMPT, {"fruitless": 2}, "fruitless must be less than 2"),
        (ATTEMPT, {"step": -1}, "step is -1, but must be 0 to"),
        (REQUESTS[0], {"trainers": 0}, "trainers is 0, but must be 1 to 1,024"),
        (REQUESTS[0], {"min_nodes": 3}, "min_nodes must be 1 to 2"),
        (REQUESTS[0], {"dataset": None}, "needs exactly one of dataset, texts and stream"),
        (REQUESTS[0], {"run": "demo.20269999T999999-0a1b"}, "but must be the name of a run"),
        (REQUESTS[0], {"version": 2.0}, "its version is 2.0, but this Shoal uses version 2; deploy again"),
        (REQUESTS[0], {"version": 3}, "its version is 3, but this Shoal uses version 2; deploy again"),
        (REQUESTS[0], {"dataset": "s3://data/datasets/../x/dataset.h5"}, "but must be the address of a dataset"),
        (
            REQUESTS[0],
            {"options": {"--output": ["x"]}},
            "has a key or value that is '--output', but must be the name of an option",
        ),
        (REQUESTS[0], {"options": {"epochs": "12"}}, "options is not of type Mapping"),
        (REQUESTS[0], {"more": 1}, "'more' is not a known field"),
    ],
)
def test_an_invalid_document_is_refused_with_the_reason(given, changes, part):
    with pytest.raises(DataError) as refused:
        type(given).from_json(json.dumps({**json.loads(given.to_json()), **changes}))
    assert part in str(refused.value)


def test_readers_run_on_the_reader_nodes_or_on_the_first_training_node():
    stream = replace(REQUESTS[1].stream, readers=3)
    wanted = replace(REQUESTS[1], stream=stream)
    assert [ATTEMPT.readers_on(f"i-0000000{number}", wanted) for number in range(4)] == [[], [], [0, 2], [1]]
    without = replace(ATTEMPT, members=ATTEMPT.trainers)
    assert [without.readers_on(f"i-0000000{number}", wanted) for number in range(2)] == [[0, 1, 2], []]


def test_prefixes_equal_those_of_the_stack():
    from bootstrap.agent import documents

    prefixes = (topology.REQUESTS_PREFIX, topology.RUNS_PREFIX, topology.NODES_PREFIX, topology.END_NAME)
    assert prefixes == (documents.REQUESTS, documents.RUNS, documents.NODES, documents.END_NAME)
