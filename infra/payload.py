"""Uploads the payload, which nodes download at boot: Shoal's code, its libraries, and the boot script.

Keep files that nodes do not need (caches, tests) out of the assets. The hash of an asset is part of the nodes'
definition. So a change in such a file would replace the EMR cluster.
"""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from aws_cdk import Annotations, IgnoreMode, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from constructs import Construct
from shoal_guard.grants import LIST, READ, accept_pattern, allow, explain

from infra.libraries import describe_missing

_JUNK = ("__pycache__", "*.pyc", ".*")


class Payload(Construct):
    """Uploaded files. `code` and `wheels` are the s3:// addresses of two zip files, and `script` is the s3:// address
    of the boot script."""

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
        """Upload `packages`, `wheels` and `script`. The paths of packages are relative to `root`, the repository."""
        super().__init__(scope, construct_id)
        self._root = root
        for package in packages:
            if not (root / package).exists():
                Annotations.of(self).add_error(f"{package} is missing from Shoal; install it again, and deploy again.")
        self._assets = [
            self._asset("Code", root, [*_all_but(packages), *_JUNK]),
            self._asset("Wheels", wheels, []),
            self._asset("Script", script, []),
        ]
        self.code, self.wheels, self.script = (asset.s3_object_url for asset in self._assets)

    def allow_download(self, role: iam.Role, *, listing: bool = False) -> None:
        """Allow the role to read these objects, but no other assets of the account. `listing` also allows the role to
        list them.

        The assets might be encrypted with a key of the account (`cdk bootstrap --bootstrap-kms-key-id`), which the
        template does not know. So the role can use any key, but only through S3 and only for the asset bucket.
        """
        allow(role, READ, [asset.bucket.arn_for_objects(asset.s3_object_key) for asset in self._assets])
        stack, bucket = Stack.of(self), self._assets[0].bucket.bucket_arn
        if listing:
            names = [asset.s3_object_key for asset in self._assets]
            allow(role, LIST, [bucket], {"StringEquals": {"s3:prefix": names}})
        allow(
            role,
            ["kms:Decrypt"],
            [stack.format_arn(service="kms", resource="key", resource_name="*")],
            {
                "StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"},
                "StringLike": {"kms:EncryptionContext:aws:s3:arn": [bucket, f"{bucket}/*"]},
            },
        )
        explain(
            role,
            ["kms:Decrypt", "*:key/*"],
            "Only an account that encrypts its assets with its own key needs this grant.",
        )
        reason = "The template does not know the key of the account's assets. Only S3 can use it, for the asset bucket."
        accept_pattern(role, f"arn:<AWS::Partition>:kms:{stack.region}:<AWS::AccountId>:key/*", reason)

    def _asset(self, name: str, path: Path, exclude: list[str]) -> assets.Asset:
        if not path.exists():
            # Do not raise, because an exception would also prevent `cdk destroy`, which synthesises the stack first.
            Annotations.of(self).add_error(f"{describe_missing(path.relative_to(self._root))}.")
            path = Path(__file__)
        return assets.Asset(self, name, path=str(path), exclude=exclude, ignore_mode=IgnoreMode.GIT)


def _all_but(packages: Sequence[str]) -> list[str]:
    """Return Git ignore patterns that exclude everything except these paths. The pattern of a parent folder precedes
    those of its children."""
    patterns = ["/*"]
    for package in packages:
        for above in reversed(PurePosixPath(package).parents[:-1]):
            patterns += [f"!/{above}", f"/{above}/*"] if f"!/{above}" not in patterns else []
        patterns.append(f"!/{package}")
    return patterns
