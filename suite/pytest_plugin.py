"""The pytest plugin ``fabricbench``: cases as tests, and as benchmarks of pytest-benchmark with our own samples.

``fabric_case("allreduce", ranks=2, size="64K")`` measures and gives the record. ``fabric_benchmark`` takes the same,
and pytest-benchmark's statistics are exactly those of the samples that the native loop took: a timer replays them, one
round a sample. Both launch a job of their own; under ``mpiexec -n 2 pytest`` the ranks of pytest's own job measure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from fabrics.errors import CannotRun, UserError
from microbench import mpi
from microbench.record import Record, finite

if TYPE_CHECKING:
    from suite.pytest_jobs import Measured
    from suite.pytest_ranks import Ranks

DEADLINE_S = 60.0
TIMEOUT_S = 120.0
SECONDS = 0.5
_RANKS: pytest.StashKey[Ranks] = pytest.StashKey()
_STDOUT: pytest.StashKey[TextIO] = pytest.StashKey()
_QUIET = {"benchmark_json": None, "benchmark_save": None, "benchmark_autosave": False, "benchmark_compare": None,
          "benchmark_compare_fail": None, "benchmark_histogram": None, "xmlpath": None}  # fmt: skip

FabricCase = Callable[..., Record]


@dataclass
class Replay:
    """A timer that shows recorded durations: a round begins at 0 and ends at its sample."""

    now: float = 0.0
    __name__ = "fabricbench_samples"

    def __call__(self) -> float:
        """The time, in s."""
        return self.now


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("fabricbench")
    group.addoption(
        "--fabric-hosts", default="localhost", metavar="H,H,...",
        help="where jobs that tests launch place their ranks, in turn (default: localhost)",
    )  # fmt: skip
    group.addoption(
        "--fabric-deadline", type=float, default=DEADLINE_S, metavar="S",
        help=f"under mpiexec: how long a rank waits for the others after a test (default {DEADLINE_S:g})",
    )  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Under mpiexec, start MPI, and have all ranks but the first print and write nothing."""
    if mpi.launched_size() == 1:
        return
    if hasattr(config, "workerinput") or getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("fabricbench: pytest-xdist and mpiexec do not go together: leave out one of them")
    from suite.pytest_ranks import Ranks  # noqa: PLC0415 - only under mpiexec

    try:
        ranks = config.stash[_RANKS] = Ranks.start(config.getoption("--fabric-deadline"))
    except (UserError, CannotRun) as error:
        raise pytest.UsageError(f"fabricbench: {error}") from None
    if ranks.rank:
        _silence(config)
        stream = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - closed when pytest is done
        config.add_cleanup(stream.close)
        config.stash[_STDOUT], sys.stdout = sys.stdout, stream  # which the reporter takes for its own


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Give a follower its standard output back, now that the reporter has another."""
    if (stream := session.config.stash.get(_STDOUT, None)) is not None:
        sys.stdout = stream


def _silence(config: pytest.Config) -> None:
    """Options under which a follower neither writes a file that rank 0 writes, nor compares."""
    close = getattr(getattr(config.option, "benchmark_json", None), "close", None)
    if close is not None:  # an open file before pytest-benchmark 5.3, a path since
        close()
    for name, value in _QUIET.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Under mpiexec, see that all ranks have the same tests: else they would wait for each other in different ones."""
    ranks = session.config.stash.get(_RANKS, None)
    if ranks is not None and (why := ranks.same_tests([item.nodeid for item in session.items])):
        raise pytest.UsageError(f"fabricbench: {why}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under mpiexec, a phase that failed on any rank has failed on all."""
    report = yield
    ranks = item.config.stash.get(_RANKS, None)
    return report if ranks is None else ranks.joined(report)


@pytest.fixture
def fabric_case(request: pytest.FixtureRequest) -> FabricCase:
    """Measure a case and give its :class:`~microbench.record.Record`.

    ``fabric_case(name, ranks=2, size=None, env=None, timeout_s=120, check=True, **options)``: options are those of
    ``fabricbench bench``, such as ``dtype="float32"``, ``mode="nonblocking"``, ``seconds=0.2``. A case that the library
    lacks, or that does not fit, skips the test, and one that came back wrong fails it, unless ``check`` is false.
    """

    def run(name: str, **asked: Any) -> Record:
        return _measure(request.config, name, **asked).record

    return run


@pytest.fixture
def fabric_clock(request: pytest.FixtureRequest) -> Replay:
    """The timer that replays samples, entered into the test's ``benchmark`` marker before ``benchmark`` reads it."""
    clock, own = Replay(), request.node.get_closest_marker("benchmark")
    kept: Mapping[str, Any] = own.kwargs if own else {}
    request.node.add_marker(pytest.mark.benchmark(**{**kept, "timer": clock}), append=False)
    return clock


@pytest.fixture
def fabric_benchmark(request: pytest.FixtureRequest, fabric_clock: Replay, benchmark: Any) -> FabricCase:
    """The same, and its samples are what pytest-benchmark makes its statistics of: once a test.

    What else the record tells is in the benchmark's ``extra_info``.
    """
    used: list[str] = []

    def run(name: str, **asked: Any) -> Record:
        if used:
            pytest.fail(f"a test is one benchmark: {used[0]} was measured in it before", pytrace=False)
        used.append(name)
        measured = _measure(request.config, name, **asked)
        ranks = request.config.stash.get(_RANKS, None)
        if measured.record.status == "ok" and (ranks is None or ranks.rank == 0):
            _replay(benchmark, fabric_clock, measured)
        elif measured.record.status == "ok":
            benchmark.pedantic(lambda: None)  # a follower has no samples, and pytest-benchmark wants to be used
        return measured.record

    return run


def _replay(benchmark: Any, clock: Replay, measured: Measured) -> None:
    """Hand the samples to pytest-benchmark, one round each, by its public means alone."""
    from suite.pytest_jobs import series_of  # noqa: PLC0415 - with numpy

    try:
        samples = series_of(measured)
    except UserError as error:
        pytest.fail(str(error), pytrace=False)
    rest = iter(samples)

    def setup() -> None:
        clock.now = 0.0

    def step() -> None:
        clock.now = next(rest, samples[-1])  # a profiler runs it once more

    record = measured.record
    benchmark.extra_info["fabricbench"] = finite({
        "id": record.id, "mpi": record.mpi, "ranks": record.ranks, "nbytes": record.nbytes, "hosts": record.hosts,
        "placement": record.placement, "proof": record.proof, "oversubscribed": record.oversubscribed,
        "metrics": {name: vars(metric) for name, metric in record.metrics.items()}, "method": record.method,
    })  # fmt: skip
    benchmark.pedantic(step, setup=setup, rounds=len(samples))


def _measure(
    config: pytest.Config, name: str, *, ranks: int | None = None, env: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S, check: bool = True, **options: Any,
) -> Measured:  # fmt: skip
    """One case, by a job of its own or by the ranks of this one."""
    from suite import pytest_jobs  # noqa: PLC0415 - the rest of the suite, when the first case is measured

    words = pytest_jobs.arguments(name, {"seconds": SECONDS, **options})
    together = config.stash.get(_RANKS, None)
    found, wrong = [], ""
    try:
        found = _here(together, words, ranks, env) if together is not None else pytest_jobs.launched(
            words, _hosts(config, 2 if ranks is None else ranks), env or {}, timeout_s)  # fmt: skip
    except (UserError, CannotRun) as error:
        wrong = str(error)
    if wrong:
        pytest.fail(f"{name}: {wrong}", pytrace=False)
    if len(found) != 1:
        pytest.fail(f"{name}: {len(found)} sizes make as many cases: give size=, one a test", pytrace=False)
    if check:
        _judge(found[0].record)
    return found[0]


def _here(together: Ranks, words: Sequence[str], ranks: int | None, env: Mapping[str, str] | None) -> list[Measured]:
    if ranks not in (None, together.size):
        pytest.skip(f"for {ranks} ranks: this job has {together.size}")
    if env:
        pytest.skip("its variables are set where a job is launched: run pytest without mpiexec")
    return together.run(words)


def _hosts(config: pytest.Config, ranks: int) -> list[str]:
    names = [name.strip() for name in config.getoption("--fabric-hosts").split(",")]
    if ranks < 1 or not all(names):
        raise UserError(f"{ranks} ranks on {names}: at least one rank, and names of hosts")
    return [names[rank % len(names)] for rank in range(ranks)]


def _judge(record: Record) -> None:
    """Skip the test for what is not there, fail it for what went wrong."""
    if record.status in ("skipped", "unsupported"):
        pytest.skip(f"{record.id}: {record.status}: {record.reason}")
    if record.status != "ok":
        pytest.fail(f"{record.id}: {record.status}: {record.reason}", pytrace=False)
