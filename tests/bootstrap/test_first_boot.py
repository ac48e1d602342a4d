"""First boots with the content of real machine images, in a network with only S3 and instance metadata.

Each boot succeeds or reports one sentence: a GPU node in the data bucket, an EMR node in the log that EMR copies.
"""

import io
import zipfile
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests import first_boot
from tests.first_boot import REGION, Node

ROOT = Path(__file__).parents[2]
HOUR = 3600
OF_GPU_NODES = ("common", "corpus", "trainer", "bootstrap/node", "packages/balance/shoal_balance")

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not first_boot.possible(), reason="needs namespaces, iproute2, curl and openssl"),
]


def wheels(kind):
    return (ROOT / "build" / "wheels" / f"{kind}.zip").read_bytes()


def packed(*packages):
    """Pack the code that a stack deploys to nodes: these packages."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.write(ROOT / "bootstrap" / "__init__.py", "bootstrap/__init__.py")
        for package in packages:
            for source in sorted(path for path in (ROOT / package).rglob("*.*") if path.parent.name != "__pycache__"):
                archive.write(source, source.relative_to(ROOT))
    return made.getvalue()


@pytest.fixture
def gpu_node(tmp_path):
    """Function that makes a node with the image of GPU nodes, changed by its arguments."""
    return partial(Node, tmp_path, "gpu")


def test_the_nodes_network_reaches_only_s3_and_the_metadata(gpu_node):
    node = gpu_node()
    node.upload("data", "key", b"x")
    places = (f"https://s3.{REGION}.amazonaws.com", "http://169.254.169.254/latest/meta-data/instance-id")
    others = ("https://pypi.org", "http://1.1.1.1", "http://169.254.169.123", f"https://sts.{REGION}.amazonaws.com")
    done = node.boot(
        f"for each in {' '.join((*places, *others))}; do curl -so /dev/null --max-time 5 $each; echo $?; done"
    )
    assert done.stdout.split() == ["0", "0", "6", "7", "7", "6"]


def boot(node, *, share="none"):
    """Boot the node; return the result of its user data."""
    from infra.training import _user_data

    script = (ROOT / "bootstrap" / "gpu" / "boot.sh").read_bytes()
    variables = {
        "DEPLOYMENT": "demo",
        "DATA_BUCKET": "data",
        "SHARE_KIND": share,
        "SHARE_ID": "fs-1",
        "CODE_URL": node.upload("cdk", "code.zip", packed(*OF_GPU_NODES)),
        "WHEELS_URL": node.upload("cdk", "wheels.zip", wheels("gpu")),
        "AWS_DEFAULT_REGION": REGION,
        "GPUS": "0",
        "RANKS": "0",
    }
    node.upload("data", "requests/demo.json", b"{}")
    return node.boot(_user_data(variables, node.upload("cdk", "boot.sh", script)).render())


def booted(node, *, share="none"):
    """Boot the node; return its reported state and the lines of its log."""
    ended = boot(node, share=share)
    report = node.report("data")
    assert (report["state"] == "ready") == (ended.returncode == 0), ended.stdout
    return report["state"], report["log"].splitlines()


def test_a_reader_boots_on_the_gpu_image(gpu_node):
    node = gpu_node()
    assert booted(node) == ("ready", [])
    assert "enable --now shoal-agent.service" in (node.root / "run" / "systemctl").read_text()


def test_an_image_without_pytorch_is_reported(gpu_node):
    ended = booted(gpu_node(without={"python"}))
    assert ended[0] == "failed"
    assert "has no /opt/pytorch/bin/python" in ended[1][-1]


def test_an_unsupported_python_is_reported(gpu_node):
    node = gpu_node()
    python = node.root / "opt" / "pytorch" / "bin" / "python"
    unsupported = "export PIP_PYTHON_VERSION=3.99 PIP_ONLY_BINARY=:all:"
    python.write_text(python.read_text().replace("exec", f"{unsupported}\nexec"))
    state, log = booted(node)
    assert state == "failed"
    assert log[-1].startswith("pip cannot install ")
    assert any("h5py" in line for line in log)


SHARES = {"mount.efs": "efs", "exportfs": "nfs"}
PACKAGES = {
    "aws": "awscli-2",
    "ec2-metadata": "amazon-ec2-utils",
    "mount.efs": "amazon-efs-utils",
    "exportfs": "nfs-utils",
}
UNNEEDED = ("python3", "dlami-nvme.service")


@pytest.mark.parametrize("absent", PACKAGES)
def test_the_boot_installs_a_program_that_the_image_lacks(gpu_node, absent):
    node = gpu_node(without={absent})
    node.publish(PACKAGES[absent], absent)
    state, log = booted(node, share=SHARES.get(absent, "none"))
    assert (state, log) == ("ready", [])


@pytest.mark.parametrize("absent", UNNEEDED)
def test_a_node_boots_without_what_it_can_replace(gpu_node, absent):
    assert booted(gpu_node(without={absent}), share="none") == ("ready", [])


def test_each_unverified_fact_of_the_image_is_absent_in_a_test():
    facts = yaml.safe_load((ROOT / "tests" / "images" / "gpu.yaml").read_text())
    listed = [each for kind in ("programs", "pythons", "units", "missing") for each in facts[kind]]
    doubted = [each for each in listed if "does not start" not in each.get("unverified", "does not start")]
    names = {name for each in doubted for name in each.get("names") or [Path(each.get("path") or each["name"]).name]}
    assert names == {*PACKAGES, *UNNEEDED}


def test_without_the_aws_cli_the_console_has_the_reason(gpu_node):
    ended = boot(gpu_node(without={"aws"}))
    assert (ended.returncode, "dnf cannot install awscli-2" in ended.stdout.splitlines()[-1]) == (1, True)


def test_a_package_missing_from_the_repository_is_reported(gpu_node):
    state, log = booted(gpu_node(), share="efs")
    assert (state, "dnf cannot install amazon-efs-utils" in log[-1]) == ("failed", True)
    assert "Could not resolve host" in log[-2]


@pytest.mark.parametrize("behind", [HOUR, -HOUR])
def test_a_wrong_clock_is_set_before_requests_are_signed(gpu_node, behind):
    state, log = booted(gpu_node(behind=behind))
    (message,) = log
    assert state == "ready"
    assert message.startswith("this node's clock was ")
    assert abs(int(message.split()[4]) - behind) < 60


@pytest.fixture
def emr_node(tmp_path):
    """Function that makes a node with EMR's image, changed by its arguments."""
    return partial(Node, tmp_path, "emr")


def installed(node):
    """Run the bootstrap action; return its exit status and the lines that it printed."""
    code = node.upload("cdk", "code.zip", packed("common", "corpus", "jobs", "bootstrap/node"))
    libraries = node.upload("cdk", "wheels.zip", wheels("emr-x86_64"))
    script = (ROOT / "bootstrap" / "emr" / "install.sh").read_text()
    ended = node.boot(script, code, libraries, REGION)
    return ended.returncode, ended.stdout.splitlines()


def test_the_bootstrap_action_installs_on_the_image(emr_node):
    node = emr_node()
    assert installed(node) == (0, [])
    assert (node.root / "usr" / "bin" / "shoal-step").is_symlink()


def test_the_bootstrap_action_installs_the_python_that_the_image_lacks(emr_node):
    node = emr_node(without={"python3.11"})
    node.publish("python3.11", "python3.11")
    assert installed(node) == (0, [])


def test_an_emr_image_without_the_python_is_reported(emr_node):
    status, lines = installed(emr_node(without={"python3.11"}))
    assert (status, "this image has no python3.11" in lines[-1]) == (1, True)


def test_a_wrong_clock_of_an_emr_node_is_reported(emr_node):
    status, lines = installed(emr_node(behind=HOUR))
    assert (status, "; its clock: " in lines[-1]) == (1, True)
