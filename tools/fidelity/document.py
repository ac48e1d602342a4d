"""Generates the reference page on the emulator's fidelity from the measurements in record.yaml."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from tools.fidelity.calls import ROOT, find_calls

_RECORD, _TEXT = (Path(__file__).parent / name for name in ("record.yaml", "text.md"))
_NO_ANSWERS = ("faults/kinds.py", "faults/requests.py")
"""Files of the emulator that name operations but do not answer them."""
KINDS_OF_OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "CutConnection": ("s3 GetObject",),
    "FreePlan": ("freetier GetAccountPlanState",),
    "LateUpload": ("s3 DeleteBucket",),
    "QuotaLimit": ("service-quotas GetServiceQuota", "service-quotas ListServiceQuotas"),
    "ConcurrentRevocation": ("ec2 RevokeSecurityGroupIngress", "ec2 RevokeSecurityGroupEgress"),
    "VolumeKey": ("ec2 GetEbsDefaultKmsKeyId",),
}
"""Faults that apply only to certain operations."""
AWS_ACTIONS: Mapping[str, str] = {
    "lambda DeleteLayerVersion": "lambda:DeleteLayerVersion",
    "lambda ListLayerVersions": "lambda:ListLayerVersions",
}
"""IAM actions according to AWS's Service Authorization Reference, for operations for which the emulator checks
different actions."""


def read() -> dict[str, Any]:
    """Return the measurements: `operations`, `absent`, `unrefused`, `actions`."""
    found: dict[str, Any] = yaml.safe_load(_RECORD.read_text("utf-8")) if _RECORD.exists() else {}
    return found


def write(found: Mapping[str, Any]) -> None:
    """Write the measurements."""
    _RECORD.write_text(yaml.safe_dump(dict(found), width=120, default_flow_style=None), "utf-8")


@cache
def own_operations() -> frozenset[str]:
    """Return the operations that Shoal's code in the emulator answers or changes.

    The names of the operations are in the calls and tables of this code, or are the first word in the docstring of a
    patched function.
    """
    found: set[str] = set()
    for path in sorted((ROOT / "packages" / "local-aws" / "shoal_local_aws").rglob("*.py")):
        if path.parent.name in ("permissions", "seams") or path.relative_to(path.parents[1]).as_posix() in _NO_ANSWERS:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg:
                found.add(node.arg)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return frozenset(found | set(_seams()))


def _seams() -> Iterator[str]:
    for path in sorted((ROOT / "packages" / "local-aws" / "shoal_local_aws" / "seams").glob("*.py")):
        body = ast.parse(path.read_text("utf-8")).body
        for node, after in pairwise(body):
            made = isinstance(node, ast.AnnAssign) and "PatchPoint[" in ast.unparse(node.annotation)
            if made and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                yield str(after.value.value).split()[0].strip(".,:")


def page() -> str:
    """Return the page in Markdown. It is generated from record.yaml and from the calls in the code."""
    found = read()
    rows = [_row(found, service, operation, rooms) for (service, operation), rooms in sorted(find_calls().items())]
    above = {action for actions in found["operations"].values() for action in actions}
    others = [
        f"| {action} | {', '.join(who)} | {'yes' if action in above else ''} |"
        for action, who in found["actions"].items()
        if ":" in action and (set(who) != {"commands"} or action not in above)
    ]
    text = _TEXT.read_text("utf-8").replace("COUNT", str(len(rows)))
    return text.replace("OPERATIONS", "\n".join(rows)).replace("ACTIONS", "\n".join(others))


def _row(found: Mapping[str, Any], service: str, operation: str, rooms: set[str]) -> str:
    name = f"{service} {operation}"
    actions = found["operations"][name]
    emulated = "no" if name in found["absent"] else "own" if operation in own_operations() else "ministack"
    checked = [*actions, *([f"on AWS {AWS_ACTIONS[name]}"] if name in AWS_ACTIONS else [])]
    faults = _faults(name, refusable=name not in found["unrefused"])
    cells = (service, operation, ", ".join(sorted(rooms)), emulated, ", ".join(checked), ", ".join(faults))
    return f"| {' | '.join(cells)} |"


def _faults(name: str, *, refusable: bool) -> list[str]:
    """Return the names of the faults that can be injected into an operation."""
    kinds = ["any"] if refusable else []
    kinds += ["S3Error"] if name.startswith("s3 ") else []
    return kinds + [kind for kind, names in KINDS_OF_OPERATIONS.items() if name in names]
