"""Model of `preprocessing: {on: node}`. With this value, the only training node also preprocesses."""

from typing import Any, Self

from pydantic import ModelWrapValidatorHandler, PrivateAttr, model_validator

from infra.document import FieldError
from infra.parts import NodeGroup, TopologyPart


class OnNode(TopologyPart):
    """Base class of `Topology`. If the file has `preprocessing: {on: node}`, the attribute `preprocessing` has the
    value None."""

    _on_node: bool = PrivateAttr(default=False)

    @property
    def preprocesses_on_node(self) -> bool:
        """Whether the training node also preprocesses."""
        return self._on_node

    @model_validator(mode="wrap")
    @classmethod
    def _read_preprocessing(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        given = data.get("preprocessing") if isinstance(data, dict) else None
        if not isinstance(given, dict) or "on" not in given:
            return handler(data)
        if given != {"on": "node"}:
            raise FieldError(
                "write {on: node} if one node does all the work, or the fields of a cluster.", "preprocessing", "on"
            )
        spec = handler({**data, "preprocessing": None})
        groups: tuple[NodeGroup, ...] = spec.training  # type: ignore[attr-defined]
        if [(group.role, group.count) for group in groups] != [("train", 1)]:
            raise FieldError(
                "with {on: node} one node does all the work; write one group with `count: 1` in `training`.",
                "preprocessing",
                "on",
            )
        spec._on_node = True
        return spec
