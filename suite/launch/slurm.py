"""Commands for srun inside an allocation; MPICH and its relatives are started through PMI-2. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabrics.errors import UserError
from suite.launch.model import Access, Launcher, blocks, counted


def command(
    launcher: Launcher, hosts: Sequence[str], program: Sequence[str], env: Mapping[str, str], access: Access
) -> list[str]:
    """The argument vector of a step with one rank per entry of ``hosts``; UserError where Pythons differ by host.

    Values travel in srun's own environment, ``--export`` naming them: in its list a comma would end a value.
    """
    (first, *others) = blocks(hosts, program, access)
    if others:
        raise UserError("srun starts one program on all hosts: give them the same python, or choose --launcher mpiexec")
    entries = counted(hosts)
    where = ["--nodes", str(len(entries)), "--ntasks", str(len(hosts)), "--nodelist", ",".join(h for h, _ in entries)]
    share = ["--ntasks-per-node", str(max(count for _, count in entries)), "--distribution", "block"]
    return [
        *access.enter, "env", *(f"{name}={value}" for name, value in env.items()), launcher.path, "--mpi", "pmi2",
        *where, *share, "--overlap", "--overcommit", "--cpu-bind", "none", "--input", "0", "--kill-on-bad-exit=1",
        "--export", ",".join(env) or "NONE", *first.program,
    ]  # fmt: skip
