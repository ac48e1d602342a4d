"""List the phrases of tools/prose/patterns.yaml, which are hard to read, in tracked files. Exit with 1 if there are
any."""

import argparse
import subprocess
import sys
from pathlib import Path

from tools.prose import check

ROOT = Path(__file__).parents[2]
READ = (".py", ".md", ".yaml", ".yml", ".toml", ".sh", ".html", ".txt", "Makefile", "Dockerfile", ".ci/run")
SKIPPED = ("tools/prose/", "locks/", "tests/tools/test_prose.py")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.prose", description=__doc__)
    parser.add_argument("paths", nargs="*", default=["."], help="files or folders (default: the whole project)")
    options = parser.parse_args()
    listed = subprocess.run(["git", "ls-files", *options.paths], cwd=ROOT, capture_output=True, text=True, check=True)
    sources = {
        path: (ROOT / path).read_text()
        for path in listed.stdout.splitlines()
        if path.endswith(READ) and not path.startswith(SKIPPED) and (ROOT / path).exists()
    }
    count = 0
    for path, source in sources.items():
        for line, kind, phrase, advice in check.findings(path, source):
            print(f'{path}:{line}: {kind}: "{phrase}": {advice}')
            count += 1
    print(count, "phrases to replace", file=sys.stderr)
    return 1 if count else 0


sys.exit(main())
