"""User who types commands in their own repository, against an embedded AWS."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, Self

import boto3
from shoal_local_aws.aws import ACCOUNT, REGION, EmbeddedAws
from tests.local_aws.accounts import keys_of

from shoal.aws import cdk
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[1]


def make_repository(folder: Path, *, but: Collection[str] = ()) -> None:
    """Fill a folder with links to this repository, except its topologies and the folders in `but`."""
    rooms = ("bootstrap", "common", "corpus", "experiments", "infra", "jobs", "packages", "shoal", "trainer")
    for name in (*rooms, "build"):
        if name not in but:
            (folder / name).symlink_to(ROOT / name)
    for name in ("app.py", "cdk.json"):  # the app looks for other files in its own folder
        shutil.copy(ROOT / name, folder)


def make_repository_with_empty_installs(folder: Path) -> Path:
    """Create a folder with the whole repository, in which EMR's nodes install nothing; return it."""
    folder.mkdir()
    make_repository(folder, but=("build",))
    (folder / "topologies").symlink_to(ROOT / "topologies")
    replace(folder, "bootstrap/emr/install.sh", "exit 0")
    wheels = folder / "build" / "wheels"
    wheels.mkdir(parents=True)
    (wheels / "gpu.zip").symlink_to(ROOT / "build" / "wheels" / "gpu.zip")
    (wheels / "gpu-inputs.zip").write_bytes(b"nothing, as no node that reads texts is started")
    for architecture in ("x86_64", "arm64"):
        (wheels / f"emr-{architecture}.zip").write_bytes(b"nothing, as nobody installs it")
    return folder


def install_from_this_machine(user: "CommandUser", archive: str) -> None:
    """Make the nodes of an archive install from the wheels of this machine: the deployed one only lists libraries."""
    (user.repository / "build").unlink()
    wheels = user.repository / "build" / "wheels"
    wheels.mkdir(parents=True)
    named = ("requirements.txt", "inputs.txt") if archive == "gpu-inputs" else ("requirements.txt",)
    lists = (ROOT / "bootstrap" / "gpu" / name for name in named)
    with zipfile.ZipFile(wheels / f"{archive}.zip", "w") as made:
        made.writestr("requirements.txt", "".join(path.read_text() for path in lists))


def replace(repository: Path, name: str, text: str) -> None:
    """Replace a file in a repository of links."""
    path = Path(name)
    for folder in reversed(path.parents[:-1]):
        if (repository / folder).is_symlink():
            (repository / folder).unlink()
        if not (repository / folder).exists():
            (repository / folder).mkdir()
            for entry in (ROOT / folder).iterdir():
                (repository / folder / entry.name).symlink_to(entry)
    (repository / path).unlink()
    (repository / path).write_text(text)


class CommandUser:
    """User with a repository of topologies, and a shell that uses the embedded AWS."""

    def __init__(self, aws: EmbeddedAws, repository: Path) -> None:
        self.aws, self.repository = aws, repository
        make_repository(repository)
        (repository / "topologies").mkdir()

    @classmethod
    def prepared(cls, aws: EmbeddedAws, folder: Path) -> Self:
        """Return a user with a repository below a folder, and an account that is prepared for the CDK."""
        (folder / "repository").mkdir()
        cdk.prepare(account=ACCOUNT, region=REGION, environment={}, log=aws.folder / "cdk.log")
        return cls(aws, folder / "repository")

    def cdk_deploy(self, topology: str) -> Path:
        """Deploy a topology by the CDK's command, and return the folder of the assembly."""
        assembly = self.aws.folder / f"assembly-{topology}"
        command = ["deploy", "-c", f"topology={topology}", "--require-approval", "never"]
        cdk.run(command, environment={}, assembly=assembly, log=self.aws.folder / "cdk.log", root=self.repository)
        return assembly

    @property
    def environment(self) -> dict[str, str]:
        roots = (self.repository, *self.repository.glob("packages/*"))
        places = {"PYTHONPATH": os.pathsep.join(map(str, roots)), "TMPDIR": os.fspath(self.aws.folder / "tmp")}
        # Emulated machines do not get these variables, which choose other kernels of BLAS and so other rounding.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
        return {**kept, **self.aws.environment, **places}

    def write_topology(self, name: str, text: str) -> None:
        (self.repository / "topologies" / f"{name}.yaml").write_text(text)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start the command `shoal`."""
        code = "import sys; from shoal.cli.main import main; sys.exit(main())"
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            cwd=self.repository,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, status: int = 0) -> tuple[str, str]:
        """Run the command, and return its standard output and standard error."""
        running = self.start(*arguments)
        stdout, stderr = running.communicate(timeout=PATIENCE)
        assert running.returncode == status, stdout + stderr
        return stdout, stderr

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.aws.endpoint,
            region_name="us-east-1",
            **keys_of(self.aws),
        )

    def stack(self, deployment: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client("cloudformation").describe_stacks(StackName=f"Shoal-{deployment}")
        return dict(found["Stacks"][0])

    def stack_outputs(self, deployment: str) -> dict[str, str]:
        return {each["OutputKey"]: each["OutputValue"] for each in self.stack(deployment)["Outputs"]}

    def resources(self, deployment: str) -> dict[str, str]:
        found = self.client("cloudformation").describe_stack_resources(StackName=f"Shoal-{deployment}")
        return {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in found["StackResources"]}
