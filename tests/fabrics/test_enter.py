"""Running a command in a lab host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from fabrics.errors import UserError
from fabrics.lab import enter
from fabrics.lab.cluster import Lab
from tests.fabrics.conftest import DEADLINE_S, ROOT, output, run_in, sleeper


@pytest.mark.parametrize(
    ("words", "host", "command"),
    [
        (["h0", "date"], "h0", "date"),
        (["-x", "-q", "h0-eth10g", "echo", "a  b"], "h0", "echo a  b"),
        (["-xq", "-o", "BatchMode=yes", "-oPort=1", "-p", "22", "root@d1", "a", "-x"], "d1", "a -x"),
        (["-T", "--", "h1", '"/bin/x"', "--opt", "&"], "h1", '"/bin/x" --opt &'),
    ],
)
def test_ssh_words(words: list[str], host: str, command: str) -> None:
    assert enter.ssh_words(words) == (host, ["sh", "-c", command])


@pytest.mark.parametrize("words", [[], ["-x"], ["h0"], ["-o", "h0", "h1"]])
def test_ssh_words_need_a_host_and_a_command(words: list[str]) -> None:
    with pytest.raises(UserError):
        enter.ssh_words(words)


def test_it_imports_no_more_than_it_needs() -> None:
    program = f"import sys; sys.path.append({str(ROOT)!r}); import fabrics.lab.enter; print(*sys.modules)"
    loaded = set(output(*enter.enter_argv("lab")[:3], "-c", program).split())
    assert not loaded & {"typing", "re", "pathlib", "subprocess", "dataclasses", "json", "site", "numpy"}


def test_exit_code_and_streams_are_the_command_s_own(lab: Lab) -> None:
    result = run_in(lab, "h1", "sh", "-c", "echo out; echo err >&2; exit 37")
    assert (result.returncode, result.stdout, result.stderr) == (37, "out\n", "err\n")


def test_it_becomes_the_command(lab: Lab) -> None:
    with sleeper(lab, "d0") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=DEADLINE_S) == -signal.SIGTERM


def test_the_environment_and_folder_travel(lab: Lab, tmp_path: os.PathLike[str]) -> None:
    command = lab.enter("h0", ["sh", "-c", "echo $PLANTED; pwd"])
    result = subprocess.run(
        command, env={**os.environ, "PLANTED": "x y"}, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout == f"x y\n{tmp_path}\n"


def test_commands_that_cannot_be_run(lab: Lab) -> None:
    absent = run_in(lab, "h0", "no-such-command")
    assert (absent.returncode, absent.stderr) == (127, "fabricbench: no-such-command: command not found\n")
    refused = run_in(lab, "h0", "/etc")
    assert (refused.returncode, refused.stderr) == (126, "fabricbench: /etc: Permission denied\n")


def test_unknown_names(lab: Lab) -> None:
    with pytest.raises(UserError, match="no host h9: one of h0, h1, d0, d1"):
        lab.enter("h9", ["true"])
    for words, said in (
        (["--lab", lab.name, "h9", "true"], f"lab {lab.name} has no host h9: one of d0, d1, h0, h1"),
        (["--lab", "nolab", "h0", "true"], "lab nolab is not up: fabricbench lab up --name nolab"),
        (["--lab", lab.name, "h0"], "usage: enter [--lab NAME] HOST CMD..."),
    ):
        command = [sys.executable, "-m", "fabrics.lab.enter", *words]
        result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=DEADLINE_S, check=False)
        assert (result.returncode, result.stderr) == (2, f"fabricbench: {said}\n")


def test_agent_goes_through_a_shell_with_an_empty_environment(lab: Lab) -> None:
    command = [str(lab.agent), "-x", "h1", "hostname; echo $PLANTED; env"]
    env = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "PLANTED": "x"}
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    host, planted, *variables = result.stdout.splitlines()
    assert (host, planted) == ("h1", "")
    names = {variable.partition("=")[0] for variable in variables}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH", "HOME"}  # those left out are the shell's own


def test_agent_reaches_another_host_from_within_one(lab: Lab) -> None:
    nested = run_in(lab, "h0", str(lab.agent), "h1", "hostname; cat /proc/sys/kernel/random/boot_id; ls /sys/class/net")
    direct = run_in(lab, "h1", "sh", "-c", "hostname; cat /proc/sys/kernel/random/boot_id; ls /sys/class/net")
    assert nested.stdout == direct.stdout
    assert nested.returncode == 0
