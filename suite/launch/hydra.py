"""Commands for Hydra: MPICH's mpiexec and that of its relatives, Intel MPI's among them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from suite.launch.model import Access, Block, Launcher, between, blocks, counted


def command(
    launcher: Launcher, hosts: Sequence[str], program: Sequence[str], env: Mapping[str, str], access: Access
) -> list[str]:
    """The argument vector of a job with one rank per entry of ``hosts``."""
    if access.allocation:
        where = ["-launcher", "slurm"]
    else:
        where = ["-launcher", "ssh", "-launcher-exec", access.agent] if access.agent else ["-launcher", "fork"]
    if access.agent and launcher.family == "intel":  # by itself it starts some hosts from others, which have no agent
        where += ["-branch-count", str(len(set(hosts)))]
    settings = [word for name, value in env.items() for word in ("-genv", name, value)]
    placed, parts = _parts(launcher, hosts, blocks(hosts, program, access))
    return [*access.enter, launcher.path, *where, *placed, *_unbound(launcher), *settings, *between(":", parts)]


def _parts(launcher: Launcher, hosts: Sequence[str], found: Sequence[Block]) -> tuple[list[str], list[list[str]]]:
    """What says which hosts have how many ranks, for all programs together, and the programs with their ranks."""
    entries = counted(hosts)
    most = max(count for _, count in entries)
    parts = [["-n", str(block.ranks), *block.program] for block in found]
    if all(count == most for _, count in entries[:-1]):
        return ["-hosts", ",".join(host for host, _ in entries), "-ppn", str(most)], parts
    if launcher.family != "intel":
        return ["-hosts", ",".join(f"{host}:{count}" for host, count in entries)], parts
    alone = [(host, count, block.program) for block in found for host, count in block.hosts]
    return [], [["-host", host, "-n", str(count), *words] for host, count, words in alone]


def _unbound(launcher: Launcher) -> list[str]:
    """Binding is the worker's own."""
    return ["-genv", "I_MPI_PIN", "0"] if launcher.family == "intel" else ["-bind-to", "none"]
