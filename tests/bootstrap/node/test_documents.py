"""Requests, attempts and statuses: they are read as they were written, and anything else is refused with a reason."""

import json
from dataclasses import replace

import pytest

from bootstrap.node import documents
from bootstrap.node.documents import Cancellation, RequestDocument, token_in
from bootstrap.node.node_documents import Attempt, Member, NodeStatus, RunEnd
from common import names
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.raw_texts import RawTexts
from corpus.reading.formats import Format
from corpus.reading.sources import Source
from corpus.stream.stream_settings import StreamSettings
from tests.bootstrap.node.world import request
from tests.bootstrap.test_shell import HOSTILE

TEXTS = RawTexts(
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
    members=tuple(Member(instance=f"i-0000000{n}", address=f"10.0.0.{n + 1}", gpus=int(n < 2)) for n in range(4)),
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


def test_nodes_read_texts_only_from_s3(messages):
    here = replace(TEXTS, sources=(replace(TEXTS.sources[0], address="/etc/passwd"),))
    stream = StreamSettings(sources=("s3://pile/a.txt", "/etc/passwd"))
    without = replace(TEXTS, sources=(replace(TEXTS.sources[0], address="s3://"),))
    for changes in ({"texts": here}, {"texts": without}, {"texts": None, "texts_name": None, "stream": stream}):
        with messages.raises(DataError):
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


INVALID_ATTEMPTS = ({"members": []}, {"members": [3]}, {"port": 80}, {"number": 0}, {"fruitless": 2}, {"step": -1})
INVALID_REQUESTS = (
    *({"trainers": 0}, {"min_nodes": 3}, {"dataset": None}, {"run": "demo.20269999T999999-0a1b"}, {"more": 1}),
    *({"version": 2.0}, {"version": 3}, {"dataset": "s3://data/datasets/../x/dataset.h5"}),
    *({"options": {"--output": ["x"]}}, {"options": {"epochs": "12"}}),
)


@pytest.mark.parametrize("changes", [*INVALID_ATTEMPTS, *INVALID_REQUESTS], ids=str)
def test_an_invalid_document_is_refused_with_the_reason(changes, messages):
    document = ATTEMPT if changes in INVALID_ATTEMPTS else REQUESTS[0]
    with messages.raises(DataError):
        type(document).from_json(json.dumps({**json.loads(document.to_json()), **changes}))


def test_readers_run_on_the_reader_nodes_or_on_the_first_training_node():
    stream = replace(REQUESTS[1].stream, readers=3)
    wanted = replace(REQUESTS[1], stream=stream)
    assert [ATTEMPT.readers_on(f"i-0000000{number}", wanted) for number in range(4)] == [[], [], [0, 2], [1]]
    without = replace(ATTEMPT, members=ATTEMPT.trainers)
    assert [without.readers_on(f"i-0000000{number}", wanted) for number in range(2)] == [[0, 1, 2], []]


@pytest.mark.parametrize(
    ("phase", "reached"),
    [("wait", ["wait"]), ("run", ["wait", "stage", "staged", "run"]), ("done", documents.PHASES[:-1]), ("failed", [])],
)
def test_a_node_has_reached_all_phases_up_to_its_own_unless_it_failed(phase, reached):
    status = NodeStatus(token="0a1b2c3d", phase=phase)
    assert [each for each in documents.PHASES if status.has_reached(each)] == [*reached]
    assert status.over == (phase in ("done", "failed"))


def test_prefixes_equal_those_of_the_stack():
    prefixes = (names.REQUESTS, names.RUNS, names.NODES, names.END_NAME)
    assert prefixes == (names.REQUESTS, names.RUNS, names.NODES, names.END_NAME)
