"""Finds the commands of the AWS CLI that code and documents show to a reader: `aws SERVICE OPERATION`.

Shell scripts are left out, because nodes run them with roles of their own.
"""

import ast
import re

from tools import permissions
from tools.calls import ROOMS, ROOT

_LINE = re.compile(r"\baws ((?!cannot )[a-z][a-z0-9-]+ [a-z][a-z0-9-]+)")
_RUN_BY_NODES = ("infra/training.py",)


def shown_lines():
    """Return the files of each command, by service and operation as the AWS CLI names them."""
    found = {}
    for file, text in _texts():
        for line in _LINE.findall(text):
            found.setdefault(line, set()).add(file)
    return found


def _texts():
    documents = (*ROOT.glob("*.md"), *ROOT.glob("packages/*/*.md"), *(ROOT / "docs").rglob("*.md"))
    yield from ((path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in documents)
    yield "tools/permissions.py", permissions.page()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            if (file := path.relative_to(ROOT).as_posix()) not in _RUN_BY_NODES:
                yield from (
                    (file, text) for node in ast.walk(ast.parse(path.read_text("utf-8"))) for text in _text(node)
                )


def _text(node):
    """Yield the string, the literal parts of the f-string, or the words of the command line that a node is."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.List | ast.Tuple):
        yield " ".join(str(each.value) if isinstance(each, ast.Constant) else "_" for each in node.elts)
