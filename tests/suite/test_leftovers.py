"""Only our own, new, unmapped files of MPI libraries are removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from suite.leftovers import present, remove_new, remove_scratch, remove_stale, remove_topologies, scratch


def test_only_new_unmapped_files_go(tmp_path: Path) -> None:
    shm, proc = tmp_path / "shm", tmp_path / "proc"
    (proc / "12").mkdir(parents=True)
    shm.mkdir()
    for name in ("mpich_shm_old", "someone_else"):
        (shm / name).touch()
    before = present(shm)
    assert before == {"mpich_shm_old"}
    for name in ("mpich_shm_left", "mpich_shm_used", "another"):
        (shm / name).touch()
    (proc / "12" / "maps").write_text(f"7f00-7f01 rw-s 0 00:19 5 {shm / 'mpich_shm_used'}\n")
    assert remove_new(before, shm, proc) == ["mpich_shm_left"]
    assert sorted(p.name for p in shm.iterdir()) == ["another", "mpich_shm_old", "mpich_shm_used", "someone_else"]


def test_no_folder_is_no_fault(tmp_path: Path) -> None:
    assert present(tmp_path / "none") == frozenset()
    assert remove_new(frozenset(), tmp_path / "none", tmp_path) == []


def test_stale_files_go_and_young_ones_stay(tmp_path: Path) -> None:
    shm = tmp_path / "shm"
    shm.mkdir()
    (shm / "mpich_shm_young").touch()
    (shm / "mpich_shm_stale").touch()
    long_ago = time.time() - 3600
    os.utime(shm / "mpich_shm_stale", (long_ago, long_ago))
    assert remove_stale(shm, tmp_path / "proc") == ["mpich_shm_stale"]
    assert [p.name for p in shm.iterdir()] == ["mpich_shm_young"]


def test_a_runs_folder_goes_with_it_or_with_the_next_run(tmp_path: Path) -> None:
    with scratch(tmp_path) as ours:
        (ours / "session").mkdir()
        for name in ("fabricbench-4194399-x", "fabricbench-running", "fabricbench-other-x"):
            (tmp_path / name).mkdir()
        assert remove_scratch(tmp_path) == ["fabricbench-4194399-x"]
        assert ours.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fabricbench-other-x", "fabricbench-running"]


def test_a_topology_that_no_rank_will_read_goes(tmp_path: Path) -> None:
    tmp, proc = tmp_path / "tmp", tmp_path / "proc"
    (proc / "12").mkdir(parents=True)
    tmp.mkdir()
    long_ago = time.time() - 7200
    for name in ("hydra_hwloc_xmlfile_used", "hydra_hwloc_xmlfile_left", "other"):
        (tmp / name).touch()
        os.utime(tmp / name, (long_ago, long_ago))
    (tmp / "hydra_hwloc_xmlfile_young").touch()
    (proc / "12" / "environ").write_text(f"A=1\0HWLOC_XMLFILE={tmp / 'hydra_hwloc_xmlfile_used'}\0B=2\0")
    assert remove_topologies(tmp, proc) == ["hydra_hwloc_xmlfile_left"]
