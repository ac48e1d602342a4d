"""The trainer uses only names that the oldest supported torch has (torch_2_9.yaml)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import yaml

from trainer.rank_processes import OPTIONS

ROOT = Path(__file__).parents[2]
OLDEST = yaml.safe_load(Path(__file__).with_name("torch_2_9.yaml").read_text())


def names_of_torch(tree: ast.AST) -> Iterator[str]:
    """Return the names below torch that a module imports or looks up, such as nn.functional.pad."""
    below: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name.partition(".")[0] == "torch":
                    below[each.asname or "torch"] = each.name if each.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            below.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
    yield from (name.removeprefix("torch.") for name in below.values() if name != "torch")
    for node in ast.walk(tree):
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name) and node.id in below:
            yield ".".join([below[node.id], *reversed(parts)]).removeprefix("torch.")


def test_the_launcher_uses_only_options_of_the_oldest_torchrun():
    assert {option.partition("=")[0] for option in OPTIONS} <= set(OLDEST["options"])
    for source in ("bootstrap/node/programs.py", "trainer/managed.py", "trainer/rank_processes.py"):
        words = [each for node in ast.walk(ast.parse((ROOT / source).read_text())) for each in texts(node)]
        launched = {word.partition("=")[0] for word in words if word.startswith(("--n", "--master", "--standalone"))}
        assert launched
        assert launched <= set(OLDEST["options"])


def texts(node: ast.AST) -> list[str]:
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def test_the_trainer_uses_only_names_of_the_oldest_torch():
    used = {name for path in (ROOT / "trainer").rglob("*.py") for name in names_of_torch(ast.parse(path.read_text()))}
    assert len(used) > 100
    assert used - set(OLDEST["names"]) == set(), "look for them in the sources of that torch (torch_2_9.yaml)"
    assert set(OLDEST["names"]) - used == set(), "no longer used"
