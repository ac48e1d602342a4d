"""Templates of topologies, each synthesised once for all processes of a test session."""

import hashlib
import json
import os
from collections.abc import Callable
from typing import Any

from common.files import lock
from infra.topology import stack_name

Synthesise = Callable[..., Any]


class Templates:
    """Templates, by default for the deployment `mine` of `ada`.

    Args:
        folder: what all processes share.
        synthesise: builds a stack from a topology and a folder for its assembly.
    """

    def __init__(self, folder, synthesise):
        self._folder, self._synthesise = folder, synthesise
        folder.mkdir(exist_ok=True)

    def assembly(self, spec, **options):
        options = {"deployment": "mine", **options}
        whole = json.dumps([spec.model_dump(mode="json"), options])
        out = self._folder / hashlib.sha256(whole.encode()).hexdigest()[:16]
        handle = lock(out.with_suffix(".lock"), wait=True)
        try:
            if not (out / "manifest.json").exists():
                self._synthesise(spec, out, **options).node.root.synth()
        finally:
            os.close(handle)
        return out

    def __call__(self, spec, *, deployment="mine", **options):
        """Return a new copy of the template for each caller."""
        path = self.assembly(spec, deployment=deployment, **options) / f"{stack_name(deployment)}.template.json"
        return dict(json.loads(path.read_text("utf-8")))

    def resources(self, spec, **options):
        return dict(self(spec, **options)["Resources"])


def annotations(stack, level="error"):
    """Return the errors or warnings of a stack's parts. The CDK's assertions would synthesise the stack."""
    metadata = (entry for part in stack.node.find_all() for entry in part.node.metadata)
    return {str(entry.data) for entry in metadata if entry.type == f"aws:cdk:{level}"}
