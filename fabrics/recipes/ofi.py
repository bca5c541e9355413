"""libfabric: the provider, and the variable by which that provider's device is chosen. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from fabrics.model import Fabric
from fabrics.recipes.want import NoRecipe, Want, single, split_port

VERBS = "verbs;ofi_rxm"
PROVIDERS: Mapping[str, tuple[str, ...]] = {  # by kind, the usual one first
    "tcp": ("tcp",),
    "ib": (VERBS,),
    "roce": (VERBS,),
    "opa": ("psm2", "opx"),
    "efa": ("efa",),
    "cxi": ("cxi",),
}
SHARES_MEMORY = ("psm2", "opx", "efa")  # providers that carry ranks of one host through shared memory themselves
_MAN = "https://github.com/ofiwg/libfabric/blob/main/man"
SOURCES: Mapping[str, str] = {
    "tcp": f"{_MAN}/fi_tcp.7.md",
    VERBS: f"{_MAN}/fi_verbs.7.md",
    "psm2": "https://docs.open-mpi.org/en/v5.0.x/networking/opa.html",
    "opx": f"{_MAN}/fi_opx.7.md",
    "efa": f"{_MAN}/fi_efa.7.md",
    "cxi": f"{_MAN}/fi_cxi.7.md",
}
_UNIT = re.compile(r"hfi\d+_(\d+)")


def provider(fabric: Fabric, want: Want) -> str:
    """The provider for the fabric's kind; raises NoRecipe where there is none, or not the one asked for."""
    allowed = PROVIDERS.get(fabric.kind, ())
    if not allowed:
        raise NoRecipe(f"ofi has no provider for {fabric.kind}")
    if want.transport is not None and want.transport not in allowed:
        raise NoRecipe(f"transport {want.transport!r}: ofi takes {', '.join(allowed)} on {fabric.kind}")
    return want.transport or allowed[0]


def variables(fabric: Fabric, want: Want) -> dict[str, str]:
    """What makes libfabric use the devices wanted.

    The verbs provider finds its RoCE address by the interface's, through librdmacm: its GID index variable is for
    datagrams alone, and is not set. Raises NoRecipe for a kind without provider, or devices it cannot be told.
    """
    name = provider(fabric, want)
    return {"FI_PROVIDER": name, **_DEVICE_VARIABLES[name](want.devices)}


def _tcp(devices: Sequence[str]) -> dict[str, str]:
    return {"FI_TCP_IFACE": single(devices, "FI_TCP_IFACE")}


def _verbs(devices: Sequence[str]) -> dict[str, str]:
    name, port = split_port(single(devices, "FI_VERBS_DEVICE_NAME"))
    if port != 1:
        raise NoRecipe(f"the verbs provider takes no port: {name}:{port} cannot be chosen")
    return {"FI_VERBS_DEVICE_NAME": name}


def _psm2(devices: Sequence[str]) -> dict[str, str]:
    units = [(_unit(device), split_port(device)[1]) for device in devices]
    if len(units) > 1:
        rails = ",".join(f"{unit}:{port}" for unit, port in units)
        return {"PSM2_MULTIRAIL": "1", "PSM2_MULTIRAIL_MAP": rails}
    return {"HFI_UNIT": str(units[0][0])}


def _opx(devices: Sequence[str]) -> dict[str, str]:
    device = single(devices, "FI_OPX_HFI_SELECT")
    port = split_port(device)[1]
    return {"FI_OPX_HFI_SELECT": str(_unit(device))} | ({"FI_OPX_PORT": str(port)} if port != 1 else {})


def _efa(devices: Sequence[str]) -> dict[str, str]:
    return {"FI_EFA_IFACE": _names(devices)}


def _cxi(devices: Sequence[str]) -> dict[str, str]:
    return {"FI_CXI_DEVICE_NAME": _names(devices)}


def _names(devices: Sequence[str]) -> str:
    return ",".join(split_port(device)[0] for device in devices)


def _unit(device: str) -> int:
    name = split_port(device)[0]
    match = _UNIT.fullmatch(name)
    if not match:
        raise NoRecipe(f"{name}: no unit number in this name, such as the 0 of hfi1_0")
    return int(match[1])


_DEVICE_VARIABLES: Mapping[str, Callable[[Sequence[str]], dict[str, str]]] = {
    "tcp": _tcp,
    VERBS: _verbs,
    "psm2": _psm2,
    "opx": _opx,
    "efa": _efa,
    "cxi": _cxi,
}
