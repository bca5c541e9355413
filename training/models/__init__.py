"""The networks that can be trained: what is known of each by its name, and a module per family that builds it.

This package can be imported without torch; the modules of the families cannot.
"""

from __future__ import annotations

from training.models.table import MODELS, Model

__all__ = ["MODELS", "Model"]
