"""Templates of topologies, each synthesised once for all processes of a test session."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.files import lock
from infra.topology import Topology, stack_name
from tests.infra.invariants import Resources

Synthesise = Callable[..., Any]


class Templates:
    """Templates, by default for the deployment `mine` of `ada`.

    Args:
        folder: what all processes share.
        synthesise: builds a stack from a topology and a folder for its assembly.
    """

    def __init__(self, folder: Path, synthesise: Synthesise) -> None:
        self._folder, self._synthesise = folder, synthesise
        folder.mkdir(exist_ok=True)

    def assembly(self, spec: Topology, **options: Any) -> Path:
        options = {"deployment": "mine", **options}
        whole = json.dumps([spec.model_dump(mode="json"), options])
        out = self._folder / hashlib.sha256(whole.encode()).hexdigest()[:16]
        handle = lock(out.with_suffix(".lock"), wait=True)
        assert handle is not None
        try:
            if not (out / "manifest.json").exists():
                self._synthesise(spec, out, **options).node.root.synth()
        finally:
            os.close(handle)
        return out

    def __call__(self, spec: Topology, *, deployment: str = "mine", **options: Any) -> dict[str, Any]:
        """Return a new copy of the template for each caller."""
        path = self.assembly(spec, deployment=deployment, **options) / f"{stack_name(deployment)}.template.json"
        return dict(json.loads(path.read_text("utf-8")))

    def resources(self, spec: Topology, **options: Any) -> Resources:
        return dict(self(spec, **options)["Resources"])


def annotations(stack: Any, level: str = "error") -> set[str]:
    """Return the errors or warnings of a stack's parts. The CDK's assertions would synthesise the stack."""
    metadata = (entry for part in stack.node.find_all() for entry in part.node.metadata)
    return {str(entry.data) for entry in metadata if entry.type == f"aws:cdk:{level}"}
