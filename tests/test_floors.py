"""Imports point downward only, and what must stay free of MPI and torch does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests import jobs

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = {
    "fabrics": set(),
    "microbench": {"fabrics"},
    "collectives": {"microbench", "fabrics"},
    "training": {"collectives", "microbench", "fabrics"},
    "reports": set(),
    "suite": {"reports", "training", "collectives", "microbench", "fabrics"},
}
REPORTS_MAY = {"microbench.record", "microbench.stats", "collectives.schedule", "collectives.simulate"}


def imports(path: Path, everywhere: bool = True) -> set[str]:
    """Modules that a file imports; with ``everywhere`` false only those of its top level, outside TYPE_CHECKING."""
    tree = ast.parse(path.read_text())
    nodes = ast.walk(tree) if everywhere else iter(tree.body)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update({node.module} | {f"{node.module}.{alias.name}" for alias in node.names})
    return found


def modules(floor: str) -> list[Path]:
    found = sorted((ROOT / floor).rglob("*.py"))
    assert found, f"floor {floor} is missing"
    return found


@pytest.mark.parametrize("floor", ALLOWED)
def test_imports_point_downward(floor: str) -> None:
    ours = set(ALLOWED) | {"tests"}
    for path in modules(floor):
        for name in imports(path):
            top = name.split(".")[0]
            if top in ours and top != floor:
                below = top in ALLOWED[floor] or (floor == "reports" and any(name.startswith(m) for m in REPORTS_MAY))
                package_of_allowed = floor == "reports" and any(m.startswith(f"{name}.") for m in REPORTS_MAY)
                assert below or package_of_allowed, f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("floor", ALLOWED)
def test_nothing_imports_mpi_when_imported(floor: str) -> None:
    for path in modules(floor):
        assert not {n for n in imports(path, everywhere=False) if n.startswith("mpi4py.MPI")}, path


@pytest.mark.parametrize(
    "module",
    ["reports.render", "microbench.stats", "microbench.record", "fabrics.recipes", "suite.cli", "training.bench"],
)
def test_importing_it_brings_neither_mpi_nor_torch(module: str) -> None:
    code = f"import sys, {module}; print([m for m in ('mpi4py', 'mpi4py.MPI', 'torch') if m in sys.modules])"
    done = jobs.python("-c", code)
    assert (done.code, done.out.strip()) == (0, "[]"), done.err


@pytest.mark.parametrize("floor", ALLOWED)
def test_no_function_is_over_60_lines_and_no_module_over_300(floor: str) -> None:
    for path in modules(floor):
        assert len(path.read_text().splitlines()) <= 300, path
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno is not None
                assert node.end_lineno - node.lineno < 60, f"{path}: {node.name}"
