"""`python -m tools.prose`: list each phrase of patterns.yaml that stands in a tracked file; exit 1 if there is any."""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
SUFFIXES = (".py", ".md", ".yaml", ".yml", ".toml", ".sh", ".html", "Makefile", "Dockerfile", ".ci/run", ".txt")
SKIPPED = ("tools/prose/", "locks/", "tests/golden/")
LONGEST = 30
"""Words of a sentence in a document, at most."""
PREPOSITION = re.compile(r"(By|Of|As|In|To|From|With|At|On|What|That)\b")

Text = tuple[int, str, str]
"""A line's number, the kind of text, and the text."""


def of_python(source: str) -> Iterator[Text]:
    """Yield docstrings, other strings, comments, and the words of defined names."""
    tree = ast.parse(source)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(id(node.value))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name).replace("_", " ")
            yield node.lineno, "name", words
        elif isinstance(node, ast.arg):
            yield node.lineno, "name", node.arg.replace("_", " ")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, "name", node.id.replace("_", " ")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, "docstring" if id(node) in docstrings else "string", node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], "comment", token.string


def texts(path: str) -> Iterator[Text]:
    """Yield the texts of a file: of Python by their kind, of a document its prose, of other files their lines."""
    source = (ROOT / path).read_text()
    if path.endswith(".py"):
        yield from of_python(source)
        return
    in_code = False
    for number, line in enumerate(source.splitlines(), 1):
        if path.endswith(".md"):
            in_code ^= line.lstrip().startswith("```")
            line = re.sub(r"`[^`]*`", "``", line)
        if not in_code:
            yield number, "line", line


def sentences(document: str) -> Iterator[str]:
    """Yield the sentences of a document in Markdown: no code, tables, headings; an item of a list ends a sentence."""
    document = re.sub(r"^( *)```.*?^\1```$", "", document, flags=re.DOTALL | re.MULTILINE)
    document = re.sub(r"^\s*\|.*$|^#.*$|<!--.*?-->", "", document, flags=re.MULTILINE)
    document = re.sub(r"`[^`\n]*`", "CODE", document)
    document = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", document)
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", document):
        for sentence in re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph.split())):
            if re.search(r"\w", sentence):
                yield sentence


def syllables(word: str) -> int:
    groups = re.findall(r"[aeiouy]+", word.lower())
    return max(1, len(groups) - (word.lower().endswith("e") and not word.lower().endswith("le")))


def grade(document: str) -> tuple[int, int, int, float]:
    """Return words, sentences, sentences that are too long, and the grade by Flesch and Kincaid (1975)."""
    found = list(sentences(document))
    words = [word for sentence in found for word in re.findall(r"[A-Za-z']+", sentence)]
    long = sum(len(sentence.split()) > LONGEST for sentence in found)
    if not words:
        return 0, 0, 0, 0.0
    level = 0.39 * len(words) / len(found) + 11.8 * sum(map(syllables, words)) / len(words) - 15.59
    return len(document.split()), len(found), long, level


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.prose", description=__doc__)
    parser.add_argument("paths", nargs="*", default=["."], help="files or folders (default: all that git tracks)")
    parser.add_argument("--count", action="store_true", help="print how often each phrase stands there")
    parser.add_argument("--grades", action="store_true", help="print words, sentences and grade of each document")
    options = parser.parse_args()
    listed = subprocess.run(["git", "ls-files", *options.paths], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [path for path in listed.stdout.splitlines() if (ROOT / path).exists() and not path.startswith(SKIPPED)]
    if options.grades:
        print("words sentences long grade")
        for path in files:
            if path.endswith(".md"):
                print("{:6} {:5} {:4} {:5.1f}".format(*grade((ROOT / path).read_text())), path)
        return 0
    rules = [
        (re.compile(pattern, re.IGNORECASE), advice)
        for pattern, advice in yaml.safe_load((Path(__file__).parent / "patterns.yaml").read_text()).items()
    ]
    counts: Counter[str] = Counter()
    for path in files:
        if not path.endswith(SUFFIXES):
            continue
        for number, kind, text in texts(path):
            found = [(match, advice) for rule, advice in rules for match in rule.finditer(text)]
            if kind == "docstring" and (match := PREPOSITION.match(text)):
                found.append((match, "start with what is returned or done"))
            for match, advice in found:
                line = number + text[: match.start()].count("\n")
                counts[f"{kind}: {match[0].lower()}"] += 1
                if not options.count:
                    print(f'{path}:{line}: {kind}: "{match[0]}": {advice}')
            if kind == "docstring":
                for sentence in sentences(
                    re.split(r"\n\s*(?:Args|Returns|Raises|Yields|Attributes|Example)s?:", text)[0]
                ):
                    if len(sentence.split()) > LONGEST:
                        counts["docstring: a long sentence"] += 1
                        if not options.count:
                            print(
                                f"{path}:{number}: {len(sentence.split())} words in a sentence, at most {LONGEST}: {sentence[:60]}..."
                            )
        if path.endswith(".md"):
            for sentence in sentences((ROOT / path).read_text()):
                if len(sentence.split()) > LONGEST:
                    counts["document: a long sentence"] += 1
                    if not options.count:
                        print(
                            f"{path}: {len(sentence.split())} words in a sentence, at most {LONGEST}: {sentence[:60]}..."
                        )
    for phrase, number in counts.most_common() if options.count else ():
        print(f"{number:6} {phrase}")
    print(sum(counts.values()), "phrases to write again", file=sys.stderr)
    return 1 if counts else 0


sys.exit(main())
