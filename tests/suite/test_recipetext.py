"""Recipes as lines for a shell: for whom, from where, and what stands where there is none."""

from __future__ import annotations

from fabrics.model import Fabric
from suite.recipetext import Asked, as_text, recipes

HOSTS = ("a", "b", "c")
ETH = Fabric("eth", "tcp", HOSTS, dict.fromkeys(HOSTS, ("eth0",)), 25e9, note="top of rack")
ROCE = Fabric("roce", "roce", ("a",), {"a": ("mlx5_2:1",)}, 100e9, gids={"mlx5_2:1": 3}, unusable="lacks the provider")
UNLIKE = Fabric("unlike", "tcp", HOSTS, {"a": ("ens1",), "b": ("ens2",), "c": ("ens1",)})
RAILS = Fabric(
    "rails", "ib", ("a", "b"), dict.fromkeys("ab", ("mlx5_0:1", "mlx5_1:1")), rails=(0, 0, 1, 1)
)  # fmt: skip


def blocks(fabric: Fabric, *backends: str, flavour: str = "pure", transport: str | None = None) -> list[str]:
    """What is told of a fabric, its heading first, without what is told of all."""
    return as_text([fabric], Asked(backends, flavour, transport)).split("\n\n")[1:]


def test_a_block_is_lines_for_a_shell_with_their_source() -> None:
    assert blocks(ETH, "openmpi-ucx", flavour="job") == [
        "# === eth: tcp, 25 Gbit/s\n# note: top of rack",
        "# openmpi-ucx on eth\n"
        "export OMPI_MCA_pml=ucx\n"
        "export OMPI_MCA_pml_ucx_tls=any\n"
        "export OMPI_MCA_pml_ucx_devices=any\n"
        "export OMPI_MCA_coll='^hcoll,ucc'\n"
        "export UCX_TLS=tcp,sm,self\n"
        "export UCX_NET_DEVICES=eth0\n"
        "# to other hosts: mpirun -x UCX_TLS -x UCX_NET_DEVICES\n"
        "# source: https://github.com/openucx/ucx/blob/master/docs/source/faq.md",
    ]


def test_rdma_is_not_verified_and_says_why_it_is_not_measured() -> None:
    heading, ucx, ofi, gloo = blocks(ROCE, "mpich", "mpich-ofi", "gloo", transport=None)
    assert heading == "# === roce: roce, 100 Gbit/s\n# not measured here: lacks the provider"
    assert "export UCX_TLS=rc_x,self\nexport UCX_NET_DEVICES=mlx5_2:1\nexport UCX_IB_GID_INDEX=3\n" in ucx
    assert "export FI_PROVIDER='verbs;ofi_rxm'\n" in ofi
    assert ucx.splitlines()[-2] == ofi.splitlines()[-2] == "# not verified on hardware"
    assert gloo == "# gloo on roce: none: gloo speaks TCP, not roce"


def test_transports_are_chosen_where_a_kind_has_several() -> None:
    for transport in ("rc", "ud", "dc"):
        assert f"export UCX_TLS={transport},self\n" in blocks(ROCE, "mpich", transport=transport)[1]
    opa = Fabric("opa", "opa", ("a",), {"a": ("hfi1_0:1",)})
    assert "export FI_PROVIDER=opx\n" in blocks(opa, "mpich", transport="opx")[1]
    assert "ofi takes psm2, opx on opa" in blocks(opa, "mpich", transport="rc")[1]


def test_hosts_whose_devices_differ_have_recipes_of_their_own() -> None:
    told = recipes(UNLIKE, Asked(("mpich",)))
    assert [(each.hosts, each.found and each.found.env["UCX_NET_DEVICES"]) for each in told] == [
        (("a", "c"), "ens1"), (("b",), "ens2"),
    ]  # fmt: skip
    assert blocks(UNLIKE, "gloo")[1].startswith("# gloo on unlike, on a c\nexport GLOO_SOCKET_IFNAME=ens1\n")


def test_local_ranks_have_the_device_of_their_rail() -> None:
    _, first, second = blocks(RAILS, "impi-ofi")
    assert first.startswith("# impi-ofi on rails, local rank 0, 1 of each 4\n")
    assert "export FI_VERBS_DEVICE_NAME=mlx5_0\n" in first
    assert second.startswith("# impi-ofi on rails, local rank 2, 3 of each 4\n")
    assert "export FI_VERBS_DEVICE_NAME=mlx5_1\n" in second
    (none,) = recipes(RAILS, Asked(("gloo",)))
    assert (none.hosts, none.local_ranks, none.reason) == ((), (), "gloo speaks TCP, not ib")


def test_json_has_the_same() -> None:
    (row,) = [told.as_dict() for told in recipes(ROCE, Asked(("mpich",), "job"))]
    assert row == {
        "backend": "mpich", "flavour": "job", "hosts": (), "local_ranks": (), "reason": "", "verified": False,
        "env": {"UCX_TLS": "rc_x,sm,self", "UCX_NET_DEVICES": "mlx5_2:1", "UCX_IB_GID_INDEX": "3"},
        "source": "https://github.com/openucx/ucx/blob/master/docs/source/faq.md",
    }  # fmt: skip


def test_devices_that_are_not_known_are_told() -> None:
    bare = Fabric("eth", "tcp", ("a",), unusable="a has no address in 10.1.0.0/24")
    assert blocks(bare, "mpich")[1] == "# mpich on eth: none: fabric eth has no devices"
