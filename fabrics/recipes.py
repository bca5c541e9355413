"""Recipes: the environment that makes one library use one fabric and no other path. Pure.

Only variables that the library in use reads, and always the transport together with the device: a device alone
is ignored in silence where another transport is free to carry the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from fabrics.model import Fabric, Recipe

BACKENDS = ("mpich", "gloo")
FLAVOURS = ("pure",)
LOOPBACK = "lo"


class NoRecipe(ValueError):
    """The library cannot be made to use the fabric; the message says why."""


def recipe(fabric: Fabric, backend: str, flavour: str = "pure", host: str | None = None) -> Recipe:
    """The recipe for ``backend`` on ``fabric``, for one host or, without ``host``, for all alike.

    Raises NoRecipe where there is none, for an unknown backend or flavour, or where the hosts' devices
    differ and ``host`` is not given.
    """
    if backend not in _ENVIRONMENTS:
        raise NoRecipe(f"backend {backend!r}: one of {', '.join(BACKENDS)}")
    if flavour not in FLAVOURS:
        raise NoRecipe(f"flavour {flavour!r}: one of {', '.join(FLAVOURS)}")
    devices = () if fabric.kind == "shm" else _devices(fabric, host)
    return Recipe(fabric.name, flavour, backend, _ENVIRONMENTS[backend](fabric, devices))


def _devices(fabric: Fabric, host: str | None) -> tuple[str, ...]:
    if host is not None and host not in fabric.devices:
        raise NoRecipe(f"fabric {fabric.name} has no host {host}")
    sets = {fabric.devices[host]} if host is not None else set(fabric.devices.values())
    if len(sets) > 1:
        raise NoRecipe(f"fabric {fabric.name}: devices differ by host: a recipe is for one host")
    devices = next(iter(sets), ())
    if not devices:
        raise NoRecipe(f"fabric {fabric.name} has no devices")
    return devices


def _mpich(fabric: Fabric, devices: tuple[str, ...]) -> Mapping[str, str]:
    if fabric.kind == "shm":
        return {"UCX_TLS": "sm,self"}
    if LOOPBACK in devices:
        # UCX finds no route over lo; NOLOCAL keeps MPICH's own shared memory out of the way of two local ranks
        return {
            "MPIR_CVAR_CH4_NETMOD": "ofi",
            "MPIR_CVAR_NOLOCAL": "1",
            "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": LOOPBACK,
        }
    return {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": ",".join(devices)}


def _gloo(fabric: Fabric, devices: tuple[str, ...]) -> Mapping[str, str]:
    if fabric.kind == "shm":
        raise NoRecipe("gloo has no shared memory transport")
    return {"GLOO_SOCKET_IFNAME": ",".join(devices)}


_ENVIRONMENTS = {"mpich": _mpich, "gloo": _gloo}
