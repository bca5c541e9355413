"""Reading a text file that a user names."""

from __future__ import annotations

from pathlib import Path

from fabrics.errors import UserError


def read(path: Path, what: str) -> str:
    """The text of ``path``; UserError says which ``what`` cannot be read, and why."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {what} {path}: {getattr(error, 'strerror', None) or error}") from None
