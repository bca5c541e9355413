"""UCX: transport and device are set together, since a device alone is ignored where another transport is free. Pure."""

from __future__ import annotations

from fabrics.model import Fabric
from fabrics.recipes.want import NoRecipe, Want, gid_index

KINDS = ("shm", "tcp", "ib", "roce")
TRANSPORTS = ("rc", "ud", "dc", "rc_x", "rc_v", "ud_x", "ud_v", "dc_x")  # of RDMA; _x is accelerated, _v plain verbs
SOURCE = "https://github.com/openucx/ucx/blob/master/docs/source/faq.md"
_ACCELERATED = "mlx5_"


def variables(fabric: Fabric, want: Want) -> dict[str, str]:
    """What makes UCX use the devices wanted; raises NoRecipe for a kind or transport that it has not."""
    if fabric.kind not in KINDS:
        raise NoRecipe(f"ucx has no transport of its own for {fabric.kind}: ofi has")
    if fabric.kind == "shm":
        return {"UCX_TLS": "sm,self"}
    if want.loopback:
        raise NoRecipe("ucx finds no route over lo: ofi does")
    within = "self" if want.pure else "sm,self"
    env = {"UCX_TLS": f"{_transport(fabric, want)},{within}", "UCX_NET_DEVICES": ",".join(want.devices)}
    if fabric.kind == "roce" and (index := gid_index(fabric, want.devices)) is not None:
        env["UCX_IB_GID_INDEX"] = str(index)
    return env


def _transport(fabric: Fabric, want: Want) -> str:
    """RC unless another is asked for; accelerated where the devices' names say that they can be."""
    allowed = TRANSPORTS if fabric.rdma else ("tcp",)
    usual = (
        "tcp" if not fabric.rdma else "rc_x" if all(name.startswith(_ACCELERATED) for name in want.devices) else "rc"
    )
    transport = want.transport or usual
    if transport not in allowed:
        raise NoRecipe(f"transport {transport!r}: ucx takes {', '.join(allowed)} on {fabric.kind}")
    return transport
