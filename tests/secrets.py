"""Searches for a secret in the list of processes and in files."""

from pathlib import Path


def places_of(secret: str, *folders: Path) -> list[str]:
    """Return the command lines, and the files below these folders, that contain a secret."""
    found, sought = [], secret.encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if sought in (line := (process / "cmdline").read_bytes()):
                found.append(line.replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it has ended
    for folder in folders:
        for path in folder.rglob("*"):
            try:
                if path.is_file() and not path.is_symlink() and sought in path.read_bytes():
                    found.append(str(path))
            except OSError:
                continue  # it was replaced
    return found
