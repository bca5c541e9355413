"""Errors that reach the user as one line: what, where, and what to do."""

from __future__ import annotations


class UserError(Exception):
    """Something the user wrote cannot be meant: names the token and what is allowed. Exit code 2."""

    exit_code = 2


class CannotRun(Exception):
    """What was asked for cannot run here, or did not finish. Exit code 4."""

    exit_code = 4
