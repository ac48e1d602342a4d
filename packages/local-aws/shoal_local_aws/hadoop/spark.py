"""Emulates `spark-submit` on the primary node: runs a PySpark program with this machine's `pyspark`, in one process.

On EMR, Spark reads S3 with EMR's own file system, which is not available outside of EMR. So each s3:// address among
the program's arguments is replaced by a local folder with a copy of the objects. If the program succeeds, changed files
are uploaded. An s3:// address in the program's code does not work.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.hadoop.paths import Files

_VALUED = (
    *("--conf", "--deploy-mode", "--driver-memory", "--executor-cores", "--executor-memory"),
    *("--master", "--name", "--num-executors"),
)
"""Options of `spark-submit` that have a value."""
_KEPT = ("--conf", "--name")
"""Options of `spark-submit` that also have an effect on a single machine."""
_FILES = ("--files", "--py-files")
"""Options of `spark-submit` with a comma-separated list of files."""
_S3 = "s3://"


def parse_arguments(arguments: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Return the options of `spark-submit` that apply here, the program, and its arguments.

    Raises EmulatorError for an option or a program that is not emulated.
    """
    options, rest = list[str](), iter(arguments)
    for word in rest:
        if not word.startswith("--"):
            if not word.endswith(".py"):
                raise EmulatorError(f"The embedded Spark runs programs of PySpark, not {word}.")
            return options, word, list(rest)
        name, equals, value = word.partition("=")
        if name not in (*_VALUED, *_FILES):
            raise EmulatorError(f"The embedded Spark does not support the option {name}.")
        value = value if equals else next(rest, "")
        options += [name, value] if name in (*_KEPT, *_FILES) else []
    raise EmulatorError("spark-submit needs a program, such as s3://BUCKET/program.py.")


class Mirror:
    """Local folders that replace s3:// addresses."""

    def __init__(self, folder: Path, s3: Any) -> None:
        self._folder, self._s3, self._before = folder, s3, dict[Path, tuple[int, int]]()

    def local(self, address: str) -> str:
        """Download the objects at an address, and return the URI of the folder that replaces the address."""
        where = urlsplit(address)
        path = self._folder / where.netloc / where.path.strip("/")
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=where.netloc, Prefix=where.path.strip("/"))
        for each in (found for page in pages for found in page.get("Contents", [])):
            target = self._folder / where.netloc / each["Key"]
            inside = Path(os.path.normpath(target)).is_relative_to(path) and ".." not in Path(each["Key"]).parts
            if not inside or each["Key"].endswith("/"):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            self._s3.download_file(where.netloc, each["Key"], str(target))
            self._before[target] = _state(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        return f"file://{path}"

    def upload(self) -> None:
        """Upload new and changed files to S3, and delete the objects of removed files. Skip Spark's local checksums."""
        for path in (each for each in self._before if not each.exists()):
            bucket, _, key = path.relative_to(self._folder).as_posix().partition("/")
            self._s3.delete_object(Bucket=bucket, Key=key)
        for path in sorted(self._folder.rglob("*")):
            if not path.is_file() or path.suffix == ".crc":
                continue
            if self._before.get(path) != _state(path):
                bucket, _, key = path.relative_to(self._folder).as_posix().partition("/")
                self._s3.upload_file(str(path), bucket, key)


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _submit(arguments: Sequence[str]) -> int:
    options, program, given = parse_arguments(arguments)
    if find_spec("pyspark") is None:
        raise EmulatorError(f"The embedded EMR runs Spark steps with pyspark; install pyspark for {sys.executable}.")
    with tempfile.TemporaryDirectory(dir=Path(os.environ["NODE_ROOT"]) / "mnt") as name:
        mirror = Mirror(Path(name) / "s3", boto3.client("s3"))
        script = copy(program, Path(name) / "program")
        for place, option in enumerate(options):
            if option in _FILES:
                options[place + 1] = ",".join(
                    str(copy(each, Path(name) / option.strip("-"))) for each in options[place + 1].split(",")
                )
        addressed = [mirror.local(each) if each.startswith(_S3) else each for each in given]
        conf = ("--conf", f"spark.local.dir={name}", "--conf", "spark.ui.enabled=false")
        submit = Path(sys.executable).parent / "spark-submit"  # of pyspark
        command = [str(submit), "--master", "local[2]", *options, *conf, str(script), *addressed]
        work = Path(name) / "files"  # a YARN container has the files of --files in its working folder
        work.mkdir(exist_ok=True)
        code = subprocess.run(command, cwd=work, check=False).returncode
        if code == 0:
            mirror.upload()
        return code


def copy(named: str, folder: Path) -> Path:
    """Copy a file, named by an address or a path on the node, to a folder. Return the path of the copy.

    Raises EmulatorError if the file does not exist.
    """
    files, address = Files(), named if ":" in named else f"file://{Path(named).resolve()}"
    if files.find(address) is None:
        raise EmulatorError(f"File {named} does not exist")
    folder.mkdir(exist_ok=True)
    path = folder / Path(address).name
    with files.open(address) as source, path.open("wb") as target:
        shutil.copyfileobj(source, target)
    return path


def main() -> int:
    """Run the program that the command line names, and return its exit code."""
    os.environ.pop("PYTHONPATH", None)  # PYTHONPATH contains this package, which the program must not see
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        return _submit(sys.argv[1:])
    except (EmulatorError, BotoCoreError, ClientError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1


if __name__ == "__main__":
    sys.exit(main())
