"""Credentials of the emulated AWS."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

USER = "shoal"
"""The name of the account's user."""
USER_FILE = "user.json"
"""In the emulator's folder: its user, until the emulator has started."""
_ALL = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """An access key, and of a session its token and its end."""

    key: str
    secret: str
    token: str = ""
    expires: datetime | None = None

    def environment(self) -> dict[str, str]:
        """The variables that give them to AWS's clients."""
        found = {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}
        return {**found, "AWS_SESSION_TOKEN": self.token} if self.token else found

    def write(self, path: Path, policies: Mapping[str, Any] | None) -> None:
        """Leave the keys and the policies of the user for `add_user`; None: it may do everything."""
        path.touch(mode=0o600)
        path.write_text(json.dumps({"key": self.key, "secret": self.secret, "policies": policies or {"all": _ALL}}))

    @classmethod
    def new(cls) -> Self:
        """Credentials that no other emulator has."""
        return cls(key=f"AKIA{secrets.token_hex(8).upper()}", secret=secrets.token_hex(20))
