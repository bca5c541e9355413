"""Commands for PRRTE, the launcher of Open MPI from 5 on. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from suite.launch.model import Access, Block, Launcher, between, blocks


def command(
    launcher: Launcher,
    hosts: Sequence[str],
    program: Sequence[str],
    env: Mapping[str, str],
    access: Access,
    root: bool | None = None,
) -> list[str]:
    """The argument vector of a job with one rank per entry of ``hosts``.

    Slots are stated host by host, since by itself PRRTE takes as many as there are cores. All daemons are started
    from here: by default they start each other, on hosts that have no ``agent``. ``root`` says whether root runs it
    (default: who runs this process).
    """
    settings = [word for name, value in env.items() for word in ("-x", f"{name}={value}")]
    parts = [[*_placed(block), *settings, *block.program] for block in blocks(hosts, program, access)]
    as_root = os.geteuid() == 0 if root is None else root
    return [
        *access.enter, launcher.path, *(["--allow-run-as-root"] if as_root else []), *_daemons(access),
        "--bind-to", "none", "--map-by", "slot", *between(":", parts),
    ]  # fmt: skip


def _placed(block: Block) -> list[str]:
    places = ",".join(f"{host}:{count}" for host, count in block.hosts)
    return ["-n", str(block.ranks), "--host", places]


def _daemons(access: Access) -> list[str]:
    """How the daemons are started, and where they meet and keep their files."""
    settings: dict[str, str] = {} if access.allocation else {"ras": "^slurm,pbs,gridengine,lsf", "plm": "ssh"}
    if access.agent:
        settings |= {"plm_ssh_agent": access.agent, "plm_ssh_no_tree_spawn": "1"}
    if access.interface:
        settings["prte_if_include"] = access.interface
    if access.scratch:
        settings["prte_tmpdir_base" if access.one_machine else "prte_local_tmpdir_base"] = access.scratch
    return [word for name, value in settings.items() for word in ("--prtemca", name, value)]
