"""Limits: what numbers must hold, and whether those of a run do."""
