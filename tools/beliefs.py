"""Lists the rules that the emulator enforces, with their sources, and the beliefs that no source proves.

Comments in the code of the emulator declare both:

    # Rule: One request starts at most 1,000 instances. Source: "Error codes for the Amazon EC2 API".
    # Belief: An unknown release label is refused. Check: unknown-release.
    # Belief: A group repeats a failed launch after a few minutes. No check: it takes a type without capacity.

A source is an address, a title in quotes, an issue (`OWNER/REPOSITORY#NUMBER` on GitHub), `botocore SERVICE OPERATION`,
or a version of cfn-lint. A check is a request in `tools/acceptance_aws/beliefs.yaml`. A refusal needs such a comment
above its statement, or above a statement around it. A message about something that the emulator lacks needs none.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tools.calls import ROOT, operations, services

PACKAGE = ROOT / "packages" / "local-aws" / "shoal_local_aws"
_CHECKS = Path(__file__).parent / "acceptance_aws" / "beliefs.yaml"
_MARKER = re.compile(r"(Rule|Belief): ")
_ENTRY = re.compile(r"(Rule|Belief): (?P<sentence>.+?\.) (?P<kind>Source|Check|No check): (?P<detail>.+?)\.?")
_SOURCE = re.compile(r'[\w-]+(\.[\w-]+)+/\S+|[\w.-]+/[\w.-]+#\d+|"[^"]+"|cfn-lint \d')
_BOTOCORE = re.compile(r"botocore ([a-z0-9-]+) (\w+)")
_RAISED = ("JobError", "NoCapacityError", "RefusedError", "ValueError")
_RETURNED = ("error", "json_error", "refused")
"""Names of the exceptions with which the emulator refuses a request, and of the functions that return a refusal."""
_LACKING = re.compile("embedded AWS|not emulated")
_INTRODUCTION = """\
# Beliefs

Shoal is developed against an emulator of AWS (`packages/local-aws/shoal_local_aws/`), which enforces rules of AWS. This
page gives the source of each rule. A rule without a source is a belief. `python -m tools.acceptance_aws` checks beliefs
on an AWS account [before it deploys anything](../../CONTRIBUTING.md#acceptance-on-an-aws-account).

The emulator has the speed of this machine. It has no request limits and no shortage of capacity, except as faults.
botocore checks the fields of requests against its own models, which do not contain all rules of AWS for values.
"""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of the emulator in the file `place`. `kind` says what `detail` is: Source, Check or No check."""

    place: str
    sentence: str
    kind: str
    detail: str


@cache
def checks() -> Mapping[str, Mapping[str, Any]]:
    """Return the requests that check beliefs, by name."""
    found: dict[str, Mapping[str, Any]] = yaml.safe_load(_CHECKS.read_text("utf-8"))
    return found


@cache
def rules() -> list[Rule]:
    """Return all rules and beliefs of the emulator. Raises ValueError for a malformed comment."""
    return [rule for path in _files() for rule in _rules_in(path.relative_to(PACKAGE).as_posix(), path.read_text())]


def beliefs() -> list[Rule]:
    """Return the beliefs, those with a check first."""
    return sorted((rule for rule in rules() if rule.kind != "Source"), key=lambda rule: rule.kind)


def problems() -> Iterator[str]:
    """Yield a sentence for each unknown source or check, each check without belief, and each unexplained refusal."""
    for rule in rules():
        if rule.kind == "Source" and not _is_source(rule.detail):
            yield f"{rule.place}: source {rule.detail!r} is no address, no title in quotes and no operation of botocore"
        if rule.kind == "Check" and rule.detail not in checks():
            yield f"{rule.place}: {_CHECKS.relative_to(ROOT)} has no check {rule.detail!r}"
    for name in set(checks()) - {rule.detail for rule in rules()}:
        yield f"{_CHECKS.relative_to(ROOT)}: no belief names the check {name!r}"
    for path in _files():
        if path.suffix == ".py" and path.parent.name != "seams":
            for line in unexplained(path.read_text()):
                yield f"{path.relative_to(ROOT)}:{line}: explain the refusal in a comment, as {__name__} describes"


def unexplained(source: str) -> list[int]:
    """Return the lines of the refusals in a module that no comment explains."""
    lines, found = source.splitlines(), []

    def visit(node: ast.AST, function: ast.AST, explained: bool) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function, explained = node, False
        elif isinstance(node, ast.stmt):
            explained = explained or _is_marked(lines, node.lineno)
        if isinstance(node, ast.Call) and _refuses(node, function) and not explained:
            found.append(node.lineno)
        for child in ast.iter_child_nodes(node):
            visit(child, function, explained)

    tree = ast.parse(source)
    visit(tree, tree, explained=False)
    return found


def page() -> str:
    """Return the page in Markdown. It is generated from the comments in the emulator and from the table of checks."""
    with_check = [
        (rule.sentence, rule.place, _request(checks()[rule.detail])) for rule in beliefs() if rule.kind == "Check"
    ]
    without = [(rule.sentence, rule.place, rule.detail) for rule in beliefs() if rule.kind == "No check"]
    sourced = [(rule.sentence, rule.place, _linked(rule.detail)) for rule in rules() if rule.kind == "Source"]
    tables = (
        ("Beliefs that are checked", "Request, and its refusal", with_check),
        ("Beliefs that are not checked", "Reason", without),
        ("Rules", "Source", sourced),
    )
    return "\n".join([_INTRODUCTION, *(_table(*table) for table in tables)])


def _files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".yaml"))


def _rules_in(place: str, text: str) -> Iterator[Rule]:
    """Yield the rules and beliefs in the comments of a file."""
    entries: list[str] = []
    open_entry = False
    for line in map(str.strip, text.splitlines()):
        comment = line.removeprefix("# ") if line.startswith("# ") else None
        if comment and _MARKER.match(comment):
            entries.append(comment)
            open_entry = True
        elif comment and open_entry:
            entries[-1] += comment if entries[-1].endswith("/") else f" {comment}"
        else:
            open_entry = False
    for entry in entries:
        if not (parts := _ENTRY.fullmatch(entry)) or (parts["kind"] == "Source") != entry.startswith("Rule"):
            raise ValueError(f"{place}: {entry!r} is no rule with a source, and no belief with `Check:` or `No check:`")
        yield Rule(place=place, **parts.groupdict())


def _is_source(text: str) -> bool:
    named = _BOTOCORE.findall(text)
    known = all(service in services() and name in operations(service).values() for service, name in named)
    return known and bool(named or _SOURCE.search(text))


def _is_marked(lines: list[str], number: int) -> bool:
    """Return whether the comment above a line (numbered from 1) has a rule or a belief."""
    for line in map(str.strip, reversed(lines[: number - 1])):
        if not line.startswith("# "):
            return False
        if _MARKER.match(line.removeprefix("# ")):
            return True
    return False


def _refuses(call: ast.Call, function: ast.AST) -> bool:
    """Return whether a call makes a refusal with its own text, which AWS could give."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in (_RETURNED if isinstance(call.func, ast.Attribute) else _RAISED):
        return False
    assignments = (node for node in ast.walk(function) if isinstance(node, ast.Assign | ast.NamedExpr))
    before = sorted((node for node in assignments if node.lineno <= call.lineno), key=lambda node: node.lineno)
    values = {
        ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target): node.value for node in before
    }
    names = [each.id for each in ast.walk(call) if isinstance(each, ast.Name)]
    texts = [ast.unparse(each) for each in (*call.args, *(values[name] for name in names if name in values))]
    words = (isinstance(each, ast.JoinedStr) or isinstance(getattr(each, "value", None), str) for each in call.args)
    return any(words) and not any(map(_LACKING.search, texts))


def _request(check: Mapping[str, Any]) -> str:
    return f"`{check['service']} {check['operation']}`: {check['code']}"


def _linked(source: str) -> str:
    """Return a source with its addresses and its GitHub issues as links."""
    issues = re.sub(r"([\w.-]+/[\w.-]+)#(\d+)", r"[\g<0>](https://github.com/\1/issues/\2)", source)
    return re.sub(r"(?<![\w/])[\w-]+(?:\.[\w-]+)+/[^\s,;)]+", r"<https://\g<0>>", issues)


def _table(title: str, detail: str, rows: list[tuple[str, str, str]]) -> str:
    head = [f"## {title}: {len(rows)}", "", f"| Rule | File | {detail} |", "|---|---|---|"]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows), ""])
