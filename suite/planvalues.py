"""The values of a plan file's keys: how each is read, and what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from collectives.overlap.options import COMPUTE, PLACEMENTS, Options
from fabrics.errors import UserError
from microbench import sync
from microbench.device import DEVICES
from microbench.dtypes import dtype
from microbench.sizes import parse_sizes
from suite.arguments import LONGEST_S, MOST
from training.cfd.options import Options as Flow
from training.characterize.kernels import NAMES
from training.setup import Setup

Reader = Callable[[Any], Any]
_BRIEFEST_S = 0.001


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise ValueError(value)
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _BRIEFEST_S <= value <= LONGEST_S:
        raise ValueError(value)
    return float(value)


def _some(value: Any, of: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The values of a list, each once: what is said again says nothing more, as with sizes."""
    if not isinstance(value, list) or not value:
        raise ValueError(value)
    found = [of(v) for v in value]
    return tuple(one for place, one in enumerate(found) if one not in found[:place])


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ValueError(value)
    return float(value)


def _sync(value: Any) -> str:
    """Empty for ``auto``, which is what a section has that does not say."""
    if value not in sync.NAMES:
        raise ValueError(value)
    return "" if value == sync.NAMES[0] else str(value)


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _device(value: Any) -> str:
    if value not in DEVICES:
        raise ValueError(value)
    return str(value)


def _sizes(value: Any) -> tuple[int, ...]:
    return parse_sizes(_name(value))


def _model(value: Any) -> dict[str, Any]:
    """A model's options, whole and checked, with its own budget if it has one."""
    return _budgeted("model", value, lambda options: Setup.of(options).options)


def _flow(value: Any) -> dict[str, Any]:
    """The same of a flow."""
    return _budgeted("flow", value, lambda options: Flow.of(options).as_dict())


def _budgeted(what: str, value: Any, checked: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    options = checked({key: option for key, option in dict(value).items() if key != "budget_s"})
    return options | ({"budget_s": _own_budget(what, value["budget_s"])} if "budget_s" in value else {})


def _kernel(value: Any) -> str:
    if value not in NAMES:
        raise ValueError(value)
    return str(value)


def _own_budget(what: str, value: Any) -> float:
    try:
        return _seconds(value)
    except ValueError:
        raise UserError(f"a {what}: budget_s = {value!r}: budget_s takes {_SECONDS}") from None


def _option(key: str, name: str) -> Reader:
    """What checks a list of values of an overlap's option, each as :class:`Options` does; the key is told."""

    def read(value: Any) -> Any:
        try:
            return _some(value, lambda one: getattr(Options.of({name: one}, offload=True), name))
        except UserError as error:
            raise UserError(f"{key}: {error}") from None

    return read


def _count(value: Any) -> int:
    """A number of bytes, written as sizes are, or plain."""
    if isinstance(value, str):
        (found,) = parse_sizes(value)
        return found
    return _whole(value)


_SECONDS = f"seconds, from {_BRIEFEST_S:g} to {LONGEST_S:g} (a day)"
_WHOLE = f"a whole number from 1 to {MOST}"
_BYTES = 'one size such as "256K"'
READERS: Mapping[str, tuple[Reader, str]] = MappingProxyType({
    "sizes": (_sizes, 'a text such as "8:4M"'),
    "dtypes": (lambda value: _some(value, lambda name: dtype(_name(name)).name), 'a list such as ["float32"]'),
    "ranks": (lambda value: _some(value, _whole), "a list of whole numbers such as [2, 3]"),
    "fabrics": (lambda value: _some(value, _name), 'a list such as ["shm"], or ["networks"]'),
    "models": (lambda value: _some(value, _model), 'a list such as [{ model = "resnet50", batch = 16 }]'),
    "flows": (lambda value: _some(value, _flow), 'a list such as [{ grid = "64x64x64" }]'),
    "budget_s": (_seconds, _SECONDS),
    "deadline_s": (_seconds, _SECONDS),
    "min_iterations": (_whole, _WHOLE),
    "max_iterations": (_whole, _WHOLE),
    "precision": (_share, "a half width from 0 (never stop early) to below 1, such as 0.01"),
    "modes": (lambda value: _some(value, _name), 'a list such as ["blocking", "nonblocking"]'),
    "algorithms": (lambda value: _some(value, _name), 'a list such as ["library", "ring"]'),
    "backends": (lambda value: _some(value, _name), 'a list such as ["mpi", "gloo"]'),
    "devices": (lambda value: _some(value, _device), f"a list of {', '.join(DEVICES)}"),
    "sync": (_sync, f"one of {', '.join(sync.NAMES)}; for several ways write a [[section]] for each"),
    "compare": (lambda value: _some(value, _name), 'a list such as ["host", "probes16", "staged"]'),
    "fractions": (_option("fractions", "fraction"), "a list such as [0.25, 1, 4]"),
    "skews": (_option("skews", "skew"), "a list such as [0, 0.5]"),
    "outstanding": (_option("outstanding", "outstanding"), "a list such as [1, 4]"),
    "compute": (_option("compute", "compute"), f"a list of {', '.join(COMPUTE)}"),
    "placement": (_name, f"one of {', '.join(PLACEMENTS)}, auto"),
    "workers": (_option("workers", "workers"), "a list such as [1, 2]"),
    "chunk": (_count, _BYTES),
    "dpu_memory": (_count, _BYTES),
    "dpus": (_whole, _WHOLE),
    "kernels": (lambda value: _some(value, _kernel), f"a list of {', '.join(NAMES)}"),
})  # fmt: skip
