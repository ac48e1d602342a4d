"""The package is fast to import, because libraries for one kind of file are imported only when such a file is read."""

import subprocess
import sys

CODE = """
import importlib, pkgutil, sys
import corpus.reading
for module in pkgutil.walk_packages(corpus.reading.__path__, "corpus.reading."):
    importlib.import_module(module.name)
print(sorted({"backports.zstd", "boto3", "botocore", "h5py", "mrjob", "numba", "orjson", "pyarrow"} & {*sys.modules}))
"""


def test_libraries_that_training_machines_lack_are_not_imported() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
