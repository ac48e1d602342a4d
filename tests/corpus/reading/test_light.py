"""The package loads fast on any machine: a library that one kind of file needs is loaded when one is read."""

import subprocess
import sys

CODE = """
import importlib, pkgutil, sys
import corpus.reading
for module in pkgutil.walk_packages(corpus.reading.__path__, "corpus.reading."):
    importlib.import_module(module.name)
print(sorted({"backports.zstd", "boto3", "botocore", "h5py", "mrjob", "numba", "orjson", "pyarrow"} & {*sys.modules}))
"""


def test_no_library_that_a_machine_to_train_on_has_not_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
