import os
import subprocess
import sys
from pathlib import Path

import pytest
from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.hadoop.spark import Mirror, copy, parse_arguments


def test_options_program_and_arguments_are_parsed():
    words = "--deploy-mode cluster --conf=a=b --conf c=d --files x,y s3://b/count.py s3://b/in --deep s3://b/out"
    options, program, given = parse_arguments(words.split())
    assert options == ["--conf", "a=b", "--conf", "c=d", "--files", "x,y"]
    assert (program, given) == ("s3://b/count.py", ["s3://b/in", "--deep", "s3://b/out"])


@pytest.mark.parametrize("words", ["--class Main s3://b/main.jar", "s3://b/main.jar", "--master yarn", ""])
def test_unsupported_options_and_programs_are_refused(words, messages):
    with messages.raises(EmulatorError):
        parse_arguments(words.split())


class Store:
    def __init__(self, **objects):
        self.objects = {("b", key.replace("__", "/")): body for key, body in objects.items()}

    def get_paginator(self, _):
        return self

    def paginate(self, **place):
        keys = [key for bucket, key in self.objects if bucket == place["Bucket"] and key.startswith(place["Prefix"])]
        return [{"Contents": [{"Key": key} for key in keys]}]

    def download_file(self, bucket, key, path):
        Path(path).write_bytes(self.objects[bucket, key])

    def delete_object(self, **place):
        del self.objects[place["Bucket"], place["Key"]]

    def upload_file(self, path, bucket, key):
        self.objects[bucket, key] = Path(path).read_bytes()


def test_input_objects_are_downloaded_and_output_files_uploaded(tmp_path):
    store = Store(in__one=b"1", in__deep__two=b"2", inner=b"no", file=b"f")
    mirror = Mirror(tmp_path, store)
    given, file, output = (
        Path(mirror.local(f"s3://b/{key}").removeprefix("file://")) for key in ("in/", "file", "out")
    )
    assert sorted(each.read_bytes() for each in given.rglob("*") if each.is_file()) == [b"1", b"2"]
    assert file.read_bytes() == b"f"
    assert not (tmp_path / "b" / "inner").exists()
    assert not output.exists()
    output.mkdir()
    (output / "part-0").write_bytes(b"new")
    (output / ".part-0.crc").write_bytes(b"sum")
    (given / "one").unlink()
    before = {name: body for name, body in store.objects.items() if name != ("b", "in/one")}
    mirror.upload()
    assert store.objects == {**before, ("b", "out/part-0"): b"new"}


def test_an_object_key_cannot_leave_the_folder(tmp_path):
    store = Store()
    store.objects |= {("b", "in/../../../outside"): b"bad", ("b", "in/.."): b"bad"}
    Mirror(tmp_path / "s3", store).local("s3://b/in")
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_a_missing_program_is_named(tmp_path, messages):
    (tmp_path / "mnt").mkdir()
    pytest.importorskip("pyspark", reason="requirements-bench.txt is not installed")
    environment = {**os.environ, "NODE_ROOT": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "shoal_local_aws.hadoop.spark", str(tmp_path / "absent.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    messages.check(done.stderr)


def test_a_file_is_copied_under_its_own_name(tmp_path, messages):
    (tmp_path / "words.py").write_bytes(b"WORDS = 1")
    copied = copy(f"file://{tmp_path}/words.py", tmp_path / "files")
    assert copied == tmp_path / "files" / "words.py"
    assert copied.read_bytes() == b"WORDS = 1"
    with messages.raises(EmulatorError):
        copy(str(tmp_path / "absent.py"), tmp_path / "files")
