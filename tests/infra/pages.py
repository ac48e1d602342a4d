"""Converts templates to readable pages, and finds the changes that a field of a topology makes.

    python -m tests.infra.pages   # rewrites tests/infra/templates.yaml; review the changes before you commit them

References are written `${Name}` or `${Name.Attribute}`, joined texts are whole, and an asset is `[its files]`. `after`
lists the dependencies of a resource. Pages omit suffixes of names, default deletion policies, and common tags.
"""

import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from common import names
from infra import topology
from tests.infra.invariants import as_list, needs, references
from tests.infra.templates import Templates
from tests.infra.variants import SHIPPED

FILE = Path(__file__).with_name("templates.yaml")
DEMO = topology.load("demo", SHIPPED)
_SUFFIX = re.compile(r"(?<=\w)[0-9A-F]{8}\b")
_ON_EVERYTHING = {names.TAG_DEPLOYMENT, names.TAG_TOPOLOGY, names.TAG_OWNER, "Name"}
_USUAL = {"UpdateReplacePolicy": "Delete", "DeletionPolicy": "Delete", "Version": "2012-10-17"}


def page(assembly):
    """Return outputs and resources of an assembly's template; `twins` of a resource differ only in numbers."""
    (path,) = assembly.glob("*.template.json")
    template = json.loads(
        re.sub(r"([0-9a-f]{64})\.\w+", lambda found: _files(assembly, found[1]), path.read_text("utf-8"))
    )
    resources = template["Resources"]
    named = {name_of(name): _readable(_flat(resources, name)) for name in resources}
    assert len(named) == len(resources)
    seen = {}
    for name, each in named.items():
        seen.setdefault(re.sub(r"[0-9]+", "", json.dumps([name, each])), []).append(name)
    alike = {first: {**named[first], **({"twins": twins} if twins else {})} for first, *twins in seen.values()}
    return {"Resources": alike, "Outputs": _readable(template.get("Outputs", {}))}


def _files(assembly, digest):
    """Return the files of an asset. A file of the test repository contains its own path."""
    (asset,) = (path for path in assembly.glob(f"asset.{digest}*") if path.is_dir() or path.stat().st_size < 100)
    files = sorted(str(path.relative_to(asset)) for path in asset.rglob("*") if path.is_file())
    return f"[{' '.join(files) or asset.read_text()}]"


def _flat(resources, name):
    """Return a resource with its properties next to its type, and only with dependencies that no other one implies."""
    kept = {key: each for key, each in resources[name].items() if key not in ("Properties", "Metadata", "DependsOn")}
    waits = set(as_list(resources[name].get("DependsOn", []))) - set(references(resources[name]))
    waits -= {other for each in waits for other in needs(resources, each)}
    return {
        **kept,
        **resources[name].get("Properties", {}),
        **({"after": sorted(map(name_of, waits))} if waits else {}),
    }


def name_of(logical):
    return _SUFFIX.sub("", _SUFFIX.sub("", logical))


def _readable(value):
    if isinstance(value, list):
        if value and all(isinstance(each, dict) and {"Key", "Value"} <= set(each) for each in value):
            return {each["Key"]: _readable(each["Value"]) for each in value if each["Key"] not in _ON_EVERYTHING}
        return [_readable(each) for each in value]
    if not isinstance(value, dict):
        return value
    match next(iter(value.items()), None), len(value):
        case ("Ref", name), 1:
            return f"${{{name_of(name)}}}"
        case ("Fn::GetAtt", (name, attribute)), 1:
            return f"${{{name_of(name)}.{attribute}}}"
        case ("Fn::Join", (between, parts)), 1:
            text = str(between).join(map(str, _readable(parts)))
            return json.loads(text, parse_float=lambda _: "PRICE") if text.startswith("{") else text
        case ("Fn::Sub", text), 1:
            return _readable(text)
        case ("Fn::Base64", text), 1:
            return [line for line in str(_readable(text)).splitlines() if line]
    kept = (
        (name, _readable(each)) for name, each in value.items() if _USUAL.get(name) != each and name != "PolicyName"
    )
    read = {name: sorted(each) if name == "Resource" and isinstance(each, list) else each for name, each in kept}
    return {name: each for name, each in read.items() if (name, each) not in (("Tags", {}), ("Tags", []))}


def changes(before, after):
    """Return the differences: removed parts have the value None, and lists name removed and new members."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = [*before, *(name for name in after if name not in before)]
        differing = [name for name in names if before.get(name) != after.get(name)]
        return {name: changes(before.get(name), after.get(name)) for name in differing}
    if isinstance(before, list) and isinstance(after, list):
        sides = ("gone", [each for each in before if each not in after]), ("new", [e for e in after if e not in before])
        return {side: members for side, members in sides if members} or after
    return after


def page_of(templates, fields):
    """Return the page of the demo with these fields; `generation` is that of the stack."""
    options = {name: value for name, value in fields.items() if name == "generation"}
    spec = demo(**{name: value for name, value in fields.items() if name not in options})
    return page(templates.assembly(spec, **options))


def demo(**fields):
    return topology.Topology.model_validate({**DEMO.model_dump(mode="json"), **fields})


def cases():
    """Return the cases. The first has the whole page of the demo, each other one the changes by its fields."""
    return list(yaml.safe_load(FILE.read_text("utf-8")))


def seen(templates, case, whole):
    found = page_of(templates, case["fields"])
    return found if not case["fields"] else changes(whole, found)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _data):
        return True


def main():
    sys.path.append(str(SHIPPED.parent / "packages" / "local-aws"))  # helpers of its tests, which conftest.py uses
    from tests.infra.conftest import fill, stack_of

    with TemporaryDirectory() as folder:
        root = fill(Path(folder) / "repository")
        templates = Templates(Path(folder) / "templates", lambda *given, **more: stack_of(root, *given, **more))
        whole = page_of(templates, {})
        pages = [{**case, "page": seen(templates, case, whole)} for case in cases()]
    FILE.write_text(yaml.dump(pages, Dumper=_Dumper, sort_keys=False, width=138, default_flow_style=None), "utf-8")


if __name__ == "__main__":
    main()
