import io

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.faults.kinds import CutConnection
from shoal_local_aws.hadoop.job import input_files, parse_options, read_lines
from shoal_local_aws.hadoop.paths import Files

WHOLE = "-mapper cat -reducer cat -input s3://b/i -output s3://b/o"


@pytest.mark.parametrize(
    "arguments",
    [
        f"-D stream.num.map.output.key.fields=2 {WHOLE}",
        "-mapper cat -combiner cat",
        "-mapper",
        f"-D mapreduce.job.reduces=-1 {WHOLE}",
        f"-files s3://b/mapper.py#../mapper.py {WHOLE}",
        "-mapper cat -input s3://b/i -output s3://b/o",
    ],
)
def test_a_wrong_command_line_is_explained(arguments, messages):
    with messages.raises(EmulatorError):
        parse_options(arguments.split())


@given(st.lists(st.sampled_from([b"a", b"\r", b"\n", b"bc"]), max_size=30))
def test_a_line_ends_at_a_newline_or_a_carriage_return(tmp_path_factory, pieces):
    path = tmp_path_factory.mktemp("returns") / "input"
    path.write_bytes(b"".join(pieces))
    found = b"".join(read_lines(Files(), f"file://{path}"))
    assert found.splitlines(keepends=True) == [
        line + b"\n" for line in io.BytesIO(b"".join(pieces)).read().splitlines()
    ]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("file://{}", ["a.json", "c.txt"]),
        ("file://{}/c.txt", ["c.txt"]),
        ("file://{}/missing", None),
        ("file://{}/.above", None),
        ("file://{}/.packed", None),
        ("/data/reviews", None),
        ("gs://data", None),
    ],
)
def test_inputs_are_the_visible_plain_files_of_a_folder(path, found, tmp_path, messages):
    (tmp_path / ".above" / "below").mkdir(parents=True)
    (tmp_path / ".packed").mkdir()
    for name in ("_SUCCESS", ".part", "a.json", "c.txt", ".packed/a.gz"):
        (tmp_path / name).write_bytes(b"x\n")
    if found:
        assert input_files(Files(), path.format(tmp_path)) == [f"file://{tmp_path}/{name}" for name in found]
        return
    with messages.raises(EmulatorError):
        input_files(Files(), path.format(tmp_path))


def test_an_object_is_read_despite_broken_connections(aws):
    content = bytes(range(200))
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="ranges")
    s3.put_object(Bucket="ranges", Key="key", Body=content)
    with aws.faults.during(CutConnection(least=1, times=9)), Files().open("s3://ranges/key") as stream:
        assert stream.read() == content
