"""What nodes download when they boot: Shoal's code, the libraries it needs, and the boot script.

Easy to get wrong: an asset's hash is in the nodes' definition, so a file that need not be in it (a cache, a test) would
replace the EMR cluster whenever it changes.
"""

from collections.abc import Sequence
from pathlib import Path

from aws_cdk import Annotations, IgnoreMode
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

_JUNK = ("__pycache__", "*.pyc", ".*")


class Payload(Construct):
    """`code` and `wheels` are s3:// addresses of zip files, `script` of a text file."""

    code: str
    wheels: str
    script: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        root: Path,
        packages: Sequence[str],
        wheels: Path,
        script: Path,
    ) -> None:
        """Take the packages from the repository's root; `wheels` and `script` are below it too."""
        super().__init__(scope, construct_id)
        self._root = root
        self._assets = [
            self._asset("Code", root, ["/*", *(f"!/{package}" for package in packages), *_JUNK]),
            self._asset("Wheels", wheels, []),
            self._asset("Script", script, []),
        ]
        self.code, self.wheels, self.script = (asset.s3_object_url for asset in self._assets)

    def allow_download(self, role: iam.Role) -> None:
        """Let the role read these objects and no other asset of the account."""
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["s3:GetObject"],
                resources=[asset.bucket.arn_for_objects(asset.s3_object_key) for asset in self._assets],
            )
        )

    def _asset(self, name: str, path: Path, exclude: list[str]) -> assets.Asset:
        if not path.exists():
            # An exception would block `cdk destroy` too, which synthesises first.
            Annotations.of(self).add_error(f"{path.relative_to(self._root)} is missing; run `make setup`.")
            path = Path(__file__)
        return assets.Asset(self, name, path=str(path), exclude=exclude, ignore_mode=IgnoreMode.GIT)
