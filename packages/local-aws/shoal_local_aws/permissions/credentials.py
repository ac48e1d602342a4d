"""Credentials of the emulated AWS."""

import json
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

USER = "shoal"
"""Name of the account's user."""
USER_FILE = "user.json"
"""File with the user's keys in the emulator's folder. The emulator deletes it at its start."""


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """An access key with its secret. A session also has a token and an expiry time."""

    key: str
    secret: str
    token: str = ""
    expires: datetime | None = None

    def environment(self) -> dict[str, str]:
        """Return the environment variables that pass the user's keys to AWS clients."""
        return {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}

    def write(self, path: Path) -> None:
        """Write the user's keys to a private file for `add_user`."""
        path.touch(mode=0o600)
        path.write_text(json.dumps({"key": self.key, "secret": self.secret}))

    @classmethod
    def new(cls) -> Self:
        """Return new random credentials."""
        return cls(key=f"AKIA{secrets.token_hex(8).upper()}", secret=secrets.token_hex(20))
