"""Credentials of the emulated AWS."""

import json
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

USER = "shoal"
"""The name of the account's user."""
USER_FILE = "user.json"
"""In the emulator's folder: its user, until the emulator has started."""


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """An access key, and of a session its token and its end."""

    key: str
    secret: str
    token: str = ""
    expires: datetime | None = None

    def environment(self) -> dict[str, str]:
        """The variables that give the user's keys to AWS's clients."""
        return {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}

    def write(self, path: Path) -> None:
        """Leave the user's keys for `add_user`."""
        path.touch(mode=0o600)
        path.write_text(json.dumps({"key": self.key, "secret": self.secret}))

    @classmethod
    def new(cls) -> Self:
        """Credentials that no other emulator has."""
        return cls(key=f"AKIA{secrets.token_hex(8).upper()}", secret=secrets.token_hex(20))
