"""Splits a file into the texts that people read: names, docstrings, strings, comments, and the prose of documents."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple


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
