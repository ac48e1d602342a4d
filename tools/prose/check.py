"""Finds phrases to avoid and long sentences in the texts of a file that people read: names, docstrings, strings,
comments, and the prose of documents."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

LONGEST = 30
"""Maximum number of words in a sentence of a document or docstring."""
FIRST_WORDS = re.compile(r"(By|Of|As|In|To|From|With|At|On|What|That)\b")
"""Words with which a docstring must not start, because its noun or its verb is then missing."""
SECTION = re.compile(r"\n\s*(?:Args|Returns|Raises|Yields|Attributes|Examples?):")


class Finding(NamedTuple):
    """Phrase to replace: its line, the kind of text that contains it, and advice on a better phrase."""

    line: int
    kind: str
    phrase: str
    advice: str


def allowed() -> dict[str, list[str]]:
    """Return the exceptions in allowed.yaml: for each phrase, the files that are allowed to contain it."""
    found: dict[str, list[str]] = yaml.safe_load((Path(__file__).parent / "allowed.yaml").read_text())
    return found


def rules() -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns in patterns.yaml, each with its advice."""
    listed = yaml.safe_load((Path(__file__).parent / "patterns.yaml").read_text())
    return [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in listed.items()]


RULES, ALLOWED = rules(), allowed()


def findings(path: str, source: str) -> Iterator[Finding]:
    """Yield the phrases to replace in a file. The suffix of `path` determines how `source` is split into texts."""
    if path.endswith(".py"):
        found = of_python(source)
    elif path.endswith(".md"):
        found = of_document(source)
        yield from _long(1, "document", source)
    else:
        found = of_lines(source)
    for line, kind, text in found:
        for rule, advice in RULES:
            for match in rule.finditer(text):
                if path in ALLOWED.get(match[0].lower(), ()):
                    continue
                yield Finding(line + text[: match.start()].count("\n"), kind, match[0].lower(), advice)
        if kind == "docstring":
            if first := FIRST_WORDS.match(text):
                yield Finding(line, kind, first[0], "start the docstring with what the function returns or does")
            yield from _long(line, kind, SECTION.split(text)[0])


def _long(line: int, kind: str, text: str) -> Iterator[Finding]:
    for sentence in sentences(text):
        if len(sentence.split()) > LONGEST:
            yield Finding(line, kind, f"{sentence[:50]}...", f"split this sentence of {len(sentence.split())} words")


class Text(NamedTuple):
    """Text in a file. `kind` is `name`, `docstring`, `string`, `comment` or `line`."""

    line: int
    kind: str
    text: str


def of_python(source: str) -> Iterator[Text]:
    """Yield the docstrings (also of attributes), other strings, the words of defined names, and the comments of a
    module."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield Text(node.lineno, "name", _words(node.name))
        elif isinstance(node, ast.arg):
            yield Text(node.lineno, "name", _words(node.arg))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield Text(node.lineno, "name", _words(node.id))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Text(node.lineno, "docstring" if id(node) in docstrings else "string", node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], "comment", token.string)


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("_", " ")


def of_document(source: str) -> Iterator[Text]:
    """Yield the lines of a Markdown document, without code."""
    in_code = False
    for number, line in enumerate(source.splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        if not in_code:
            yield Text(number, "line", re.sub(r"`[^`]*`", "``", line))


def of_lines(source: str) -> Iterator[Text]:
    """Yield the lines of a file that is neither Python nor Markdown."""
    for number, line in enumerate(source.splitlines(), 1):
        yield Text(number, "line", line)


def sentences(document: str) -> Iterator[str]:
    """Yield the sentences of a Markdown document, without code, tables and headings. The end of a list item also ends a
    sentence."""
    document = re.sub(r"^( *)```.*?^\1```$", "", document, flags=re.DOTALL | re.MULTILINE)
    document = re.sub(r"^\s*\|.*$|^#.*$|<!--.*?-->", "", document, flags=re.MULTILINE)
    document = re.sub(r"`[^`\n]*`", "code", document)
    document = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", document)
    document = re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n\n", document, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", document):
        for sentence in re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph.split())):
            if re.search(r"\w", sentence):
                yield sentence
