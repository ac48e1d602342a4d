"""Credentials for emulated services."""

import json
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

USER = "shoal"
"""Name of the IAM user in the emulated account."""
USER_FILE = "user.json"
"""Name of the file with the user's keys in the emulator's folder. The emulator deletes the file when it starts."""


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """An access key with its secret. The credentials of a session also have a token and an expiry time."""

    key: str
    secret: str
    token: str = ""
    expires: datetime | None = None

    def environment(self) -> dict[str, str]:
        """Return the environment variables that pass these credentials to AWS clients."""
        return {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}

    def write(self, path: Path) -> None:
        """Write the access key and its secret to a private file, which `add_user` reads."""
        path.touch(mode=0o600)
        path.write_text(json.dumps({"key": self.key, "secret": self.secret}))

    @classmethod
    def new(cls) -> Self:
        """Return new random credentials."""
        return cls(key=f"AKIA{secrets.token_hex(8).upper()}", secret=secrets.token_hex(20))
