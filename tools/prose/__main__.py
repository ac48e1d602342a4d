"""List the phrases of tools/prose/patterns.yaml, which are hard to read, in tracked files. Exit with 1 if there are
any."""

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tools.prose import check, texts

ROOT = Path(__file__).parents[2]
READ = (".py", ".md", ".yaml", ".yml", ".toml", ".sh", ".html", ".txt", "Makefile", "Dockerfile", ".ci/run")
SKIPPED = ("tools/prose/", "locks/", "tests/tools/test_prose.py")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.prose", description=__doc__)
    parser.add_argument("paths", nargs="*", default=["."], help="files or folders (default: the whole project)")
    parser.add_argument("--count", action="store_true", help="print how often each phrase occurs")
    parser.add_argument("--grades", action="store_true", help="print words, long sentences and grade of each document")
    options = parser.parse_args()
    listed = subprocess.run(["git", "ls-files", *options.paths], cwd=ROOT, capture_output=True, text=True, check=True)
    sources = {
        path: (ROOT / path).read_text()
        for path in listed.stdout.splitlines()
        if path.endswith(READ) and not path.startswith(SKIPPED) and (ROOT / path).exists()
    }
    if options.grades:
        print_grades(sources)
        return 0
    counts: Counter[str] = Counter()
    for path, source in sources.items():
        for line, kind, phrase, advice in check.findings(path, source):
            counts[f"{kind}: {'a long sentence' if phrase.endswith('...') else phrase.lower()}"] += 1
            if not options.count:
                print(f'{path}:{line}: {kind}: "{phrase}": {advice}')
    if options.count:
        print(*(f"{number:6} {phrase}" for phrase, number in counts.most_common()), sep="\n")
    print(counts.total(), "phrases to replace", file=sys.stderr)
    return 1 if counts else 0


def print_grades(sources: dict[str, str]) -> None:
    """Print one line per document: words, sentences of more than 30 words, and grade level."""
    total = 0
    print(" words  long  grade")
    for path, source in sources.items():
        if path.endswith(".md"):
            words = len(source.split())
            total += words
            long = sum(len(each.split()) > check.LONGEST for each in texts.sentences(source))
            print(f"{words:6} {long:5} {texts.grade(source):6.1f}  {path}")
    print(f"{total:6}  in all")


sys.exit(main())
