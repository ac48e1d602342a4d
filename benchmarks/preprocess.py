"""Preprocessing: MB of raw JSON a CPU-second, by runner and size of input."""

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bootstrap.generator import write_reviews

WHAT = "generated reviews to a dataset, `shoal preprocess`'s pipeline by mrjob's two runners"
FIGURES = ("MB", "MB / CPU s", "MB / s", "peak MB a process")

_TEXTS = (20_000, 80_000)
_CODE = """
import json, resource, sys
from pathlib import Path
from jobs.pipeline import preprocess
preprocess([Path(sys.argv[2])], Path(sys.argv[3]), runner=sys.argv[1], max_malformed=0.2)
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({"cpu": sum(u.ru_utime + u.ru_stime for u in used), "peak": max(u.ru_maxrss for u in used) / 1024}))
"""


def measure(run: int) -> dict[str, dict[str, float]]:
    """One run of every case: the figures by name."""
    found = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        for texts in _TEXTS:
            path = folder / f"{texts}.json"
            write_reviews(path, texts=texts, seed=run)
            size = path.stat().st_size / 1e6
            for runner in ("inline", "local"):
                start = time.monotonic()
                command = [sys.executable, "-c", _CODE, runner, str(path), str(folder / "out")]
                used = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                figures = (size, size / used["cpu"], size / (time.monotonic() - start), used["peak"])
                found[f"{runner}, {texts} texts"] = dict(zip(FIGURES, figures, strict=True))
    return found
