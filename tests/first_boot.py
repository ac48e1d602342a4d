"""First boot of a node in its own root folder and network namespace.

The root folder has the programs and units that `tests/images/` lists for its image. The network has the S3 endpoint and
the metadata service of the node, and no other name or address. Programs of this machine are copied. Programs that only
Amazon Linux has are small scripts with the same dependencies: `dnf` needs its repository, `ec2-metadata` the metadata.
In a user namespace without CAP_SYS_TIME no script can set this machine's clock: `date` only records the time.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.vpc import INSTANCE, METADATA, S3
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[1]
REGION = "eu-west-1"
_NAMESPACES = ("unshare", "--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--kill-child")
_PYTHON = shlex.quote(sys.executable)
# A virtual environment of the system's Python leads to /usr/bin/python3, where the image has a stand-in.
_REAL_PYTHON = "/usr/bin/real-python" if sys.base_prefix == "/usr" else None
_RUN_PYTHON = f'exec -a {_PYTHON} {_REAL_PYTHON} "$@"' if _REAL_PYTHON else f'exec {_PYTHON} "$@"'
_DEVICES = ("/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")  # and no GPU of this machine
_REPOSITORY = f"al2023-repos-{REGION}-de612dc2"
_PACKAGES = f"https://{_REPOSITORY}.s3.dualstack.{REGION}.amazonaws.com/core"
_STAND_INS = {
    "aws": f'exec {shlex.quote(str(Path(sys.executable).parent / "aws"))} "$@"',
    "python3": _RUN_PYTHON,
    "python3.11": _RUN_PYTHON,
    "sudo": 'exec "$@"',
    "mount.efs": "",
    "exportfs": "",
    "systemctl": """\
case $1 in daemon-reload) exit ;; esac
for unit; do
    case $unit in *.service) ;; *) continue ;; esac
    [ -e "/etc/systemd/system/$unit" ] || [ -e "/usr/share/units/$unit" ] ||
        { echo "Failed to $1 $unit: Unit $unit not found." >&2; exit 5; }
done
printf '%s\\n' "$*" >>/run/systemctl""",
    "ec2-metadata": """\
base=http://169.254.169.254/latest
token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' $base/api/token) || exit 1
name=${1#--}
echo "$name: $(curl -sf -H "X-aws-ec2-metadata-token: $token" $base/meta-data/$name)\"""",
    "dnf": f"""\
fail() {{ echo "Error: $1" >&2; exit 1; }}
said=$(curl -sS {_PACKAGES}/mirrors/mirror.list 2>&1) ||
    fail "Failed to download metadata for repo 'amazonlinux': Cannot prepare internal mirrorlist: $said"
curl -fsS -o /tmp/package {_PACKAGES}/${{!#}} || fail "Unable to find a match: ${{!#}}"
source /tmp/package""",
    "date": """\
[ "$1" = --set ] || exec /usr/bin/real-date "$@"
echo $(($(real-date --date "$2" +%s) - $(real-date +%s))) >/run/clock""",
}


def possible() -> bool:
    """Return whether this machine has the programs and rights for such a boot."""
    found = all(shutil.which(each) for each in ("unshare", "ip", "chroot", "curl", "openssl"))
    return found and subprocess.run([*_NAMESPACES, "true"], capture_output=True).returncode == 0


class Node:
    """Node before its boot. Its clock is `behind` by this many seconds, and its image lacks the programs and units
    `without`."""

    def __init__(self, folder: Path, image: str, *, behind: int = 0, without: Collection[str] = ()) -> None:
        self.root, self._vpc = folder / "root", folder / "vpc"
        facts: dict[str, Any] = yaml.safe_load((ROOT / "tests" / "images" / f"{image}.yaml").read_text())
        for made in ("usr/bin", "usr/share/units", "etc/ssl/certs", "run", "tmp", "proc", "dev", "root", "var/log"):
            (self.root / made).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (self.root / name).symlink_to(f"usr/{name.replace('sbin', 'bin')}")
        (self.root / "dev" / "fd").symlink_to("/proc/self/fd")
        for unit in (each for each in facts["units"] if each["name"] not in without):
            (self.root / "usr" / "share" / "units" / unit["name"]).touch()
        self._provide({name for each in facts["programs"] for name in each["names"]} - set(without))
        for python in facts["pythons"]:
            if Path(python["path"]).name not in without:
                self.program(python["path"], _RUN_PYTHON)
        (self.root / "etc" / "clock").write_text(str(behind))
        (self.root / "etc" / "passwd").write_text(f"{facts.get('user', 'root')}:x:0:0::/root:/bin/bash\n")
        self._certify()

    def _provide(self, names: Collection[str]) -> None:
        if _REAL_PYTHON:
            shutil.copy(os.path.realpath(sys.executable), self.root / _REAL_PYTHON.lstrip("/"))
        path = os.pathsep.join(["/usr/bin", "/usr/sbin", "/bin", "/sbin"])
        for name in names:
            if name in _STAND_INS:
                self.program(f"/usr/bin/{name}", _STAND_INS[name])
            if (real := shutil.which(name, path=path)) and (name not in _STAND_INS or name == "date"):
                shutil.copy(real, self.root / "usr" / "bin" / name.replace("date", "real-date"))

    def publish(self, package: str, name: str) -> None:
        """Add a package with a program to Amazon Linux's repository, which the node can then reach."""
        self.upload(_REPOSITORY, "core/mirrors/mirror.list", b"")
        program = f"#!/bin/bash\n{_STAND_INS[name]}\n"
        script = f"printf %s {shlex.quote(program)} >/usr/bin/{name}\nchmod 755 /usr/bin/{name}\n"
        self.upload(_REPOSITORY, f"core/{package}", script.encode())

    def program(self, path: str, body: str) -> None:
        """Add a program to the image."""
        program = self.root / path.lstrip("/")
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/bash\n{body}\n")
        program.chmod(0o755)

    def _certify(self) -> None:
        self._vpc.mkdir()
        domains = (f"s3.{REGION}", f"*.s3.{REGION}", f"*.s3.dualstack.{REGION}")
        names = "subjectAltName=" + ",".join(f"DNS:{each}.amazonaws.com" for each in domains)
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem")
        command = ["openssl", "req", "-x509", *key, "-out", "certificate.pem", "-subj", "/CN=s3", "-addext", names]
        subprocess.run(command, cwd=self._vpc, check=True, capture_output=True)
        shutil.copy(self._vpc / "certificate.pem", self.root / "etc" / "ssl" / "certs" / "ca-certificates.crt")

    def upload(self, bucket: str, key: str, body: bytes) -> str:
        """Put an object into a bucket that the node can reach; return its address."""
        path = self._vpc / bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        hosts = sorted(each.name for each in self._vpc.iterdir() if each.is_dir())
        domains = [f"s3.{REGION}", *(f"{host}.s3{kind}.{REGION}" for host in hosts for kind in ("", ".dualstack"))]
        names = " ".join(f"{each}.amazonaws.com" for each in domains)
        (self.root / "etc" / "hosts").write_text(f"127.0.0.1 localhost\n{S3[0]} {names}\n")
        return f"s3://{bucket}/{key}"

    def boot(self, script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a script as root, and return its result with the output of the console."""
        (self.root / "first-boot").write_text(script)
        (self._vpc / "ready").unlink(missing_ok=True)
        environment = {
            "PATH": "/usr/local/bin:/usr/bin",
            "HOME": "/root",
            "HOSTNAME": "ip-10-0-1-20",
            "AWS_CA_BUNDLE": "/etc/ssl/certs/ca-certificates.crt",
        }
        words = [shutil.which("chroot") or "chroot", str(self.root), "/usr/bin/bash", "/first-boot", *arguments]
        return subprocess.run(
            [*_NAMESPACES, "bash", "-c", self._world() + f"exec env -i {_assigned(environment)} {shlex.join(words)}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )

    def _world(self) -> str:
        """Return a script that mounts the folders and configures the network of the namespaces."""
        # The first line of the virtual environment's programs has its real path, even if a link leads to it.
        prefixes = {sys.prefix, os.path.realpath(sys.prefix), sys.base_prefix} - {"/usr"}
        bound = [folder for folder in ("/usr/lib", "/usr/lib64", *sorted(prefixes)) if Path(folder).exists()]
        for folder in bound:
            (self.root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
        for device in _DEVICES:
            (self.root / device.lstrip("/")).touch()
        bound += _DEVICES
        mounts = [
            f"mount --rbind {shlex.quote(each)} {shlex.quote(str(self.root))}{shlex.quote(each)}" for each in bound
        ]
        server = shlex.join([sys.executable, str(ROOT / "tests" / "vpc.py"), str(self._vpc), str(self.root)])
        return "\n".join(
            [
                "set -e",
                "ip link set lo up",
                f"ip address add {METADATA[0]}/32 dev lo",
                *mounts,
                f"mount -t proc proc {shlex.quote(str(self.root / 'proc'))}",
                f"{server} &",
                f"until [ -e {shlex.quote(str(self._vpc / 'ready'))} ]; do sleep 0.05; done\n",
            ]
        )

    def report(self, bucket: str) -> Mapping[str, str]:
        """Return the boot report of the node."""
        said: dict[str, str] = json.loads((self._vpc / bucket / "nodes" / f"{INSTANCE}.json").read_text())
        return said


def _assigned(environment: Mapping[str, str]) -> str:
    return shlex.join(f"{name}={value}" for name, value in environment.items())
