"""The simulator agrees with the closed formulas, and does large schedules in bounded memory."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pytest

from collectives.schedule import INPUT, SCRATCH, Schedule, messages, sizes
from collectives.schedules import allgather, allreduce, alltoall, barrier, broadcast, reduce_scatter, tree, twolevel
from collectives.simulate import Cost, Network, simulate

A, B, C = 3e-6, 1e-9, 2e-10  # s, s/byte, s/byte reduced
WORD = 8
POWERS = (1, 2, 4, 8, 32, 256)
COUNT = 256 * 12
N = COUNT * WORD
UNIFORM = Network(A, 1 / B, reduce_bytes_per_s=1 / C)


def exactly(seconds):
    return pytest.approx(seconds, rel=1e-12, abs=1e-18)


def lg(ranks):
    return (ranks - 1).bit_length()


def share(ranks):
    return (ranks - 1) / ranks * N


def timed(schedule, network=UNIFORM):
    return simulate(schedule, WORD, network).time_s


@pytest.mark.parametrize("ranks", POWERS)
def test_allreduce_takes_what_the_formulas_say(ranks):
    steps = lg(ranks)
    assert timed(allreduce.ring(ranks, COUNT)) == exactly(2 * (ranks - 1) * A + share(ranks) * (2 * B + C))
    assert timed(allreduce.recursive_doubling(ranks, COUNT)) == exactly(steps * (A + N * (B + C)))
    assert timed(allreduce.rabenseifner(ranks, COUNT)) == exactly(2 * steps * A + share(ranks) * (2 * B + C))
    assert timed(allreduce.binomial(ranks, COUNT)) == exactly(2 * steps * (A + N * B) + steps * N * C)


@pytest.mark.parametrize("ranks", [3, 5, 6, 12, 48, 100])
def test_ranks_beyond_a_power_of_two_cost_the_folds(ranks):
    folds = 2 * A + N * (2 * B + C)
    within = 1 << (ranks.bit_length() - 1)
    schedule = allreduce.recursive_doubling(ranks, COUNT)
    assert timed(schedule) == exactly(lg(within) * (A + N * (B + C)) + folds)
    whole = allreduce.rabenseifner(ranks, COUNT)
    assert timed(whole) == exactly(2 * lg(within) * A + share(within) * (2 * B + C) + folds)


@pytest.mark.parametrize("ranks", [3, 6, 12])
def test_a_ring_of_any_length(ranks):
    assert timed(allreduce.ring(ranks, COUNT)) == exactly(2 * (ranks - 1) * A + share(ranks) * (2 * B + C))


@pytest.mark.parametrize("ranks", [2, 4, 8, 32, 256])
@pytest.mark.parametrize("chunks", [1, 4, 12])
def test_one_pipelined_tree(ranks, chunks):
    free = replace(UNIFORM, reduce_bytes_per_s=math.inf)
    schedule = tree.pipelined_tree(ranks, COUNT, chunk=COUNT // chunks, trees=1)
    assert timed(schedule, free) == exactly((2 * lg(ranks) + chunks - 1) * (A + N / chunks * B))


@pytest.mark.parametrize("ranks", [2, 4, 8, 32, 256])
@pytest.mark.parametrize("chunks", [1, 4, 12])
def test_two_pipelined_trees_halve_the_chunks(ranks, chunks):
    free = replace(UNIFORM, reduce_bytes_per_s=math.inf)
    schedule = tree.pipelined_tree(ranks, COUNT, chunk=COUNT // 2 // chunks)
    assert timed(schedule, free) == exactly((2 * lg(ranks) + chunks - 1) * (A + N / 2 / chunks * B))


def test_where_a_nic_carries_one_message_at_a_time_the_second_tree_pays():
    shared = Network(A, 1 / B, nics=1)
    n, chunk = 1 << 20, 1 << 10
    one = simulate(tree.pipelined_tree(64, n, chunk, trees=1), WORD, shared).time_s
    two = simulate(tree.pipelined_tree(64, n, chunk, trees=2), WORD, shared).time_s
    assert one / (3 * n * WORD * B) == pytest.approx(1, abs=0.45)  # 3 n go through an inner rank's NIC each way
    assert two / (2 * n * WORD * B) == pytest.approx(1, abs=0.45)  # 2 n
    assert 1.2 < one / two < 1.6


@pytest.mark.parametrize("ranks", POWERS)
def test_the_other_operations(ranks):
    assert timed(broadcast.binomial(ranks, COUNT)) == exactly(lg(ranks) * (A + N * B))
    scattered = (lg(ranks) + ranks - 1) * A + 2 * share(ranks) * B
    assert timed(broadcast.scatter_allgather(ranks, COUNT)) == exactly(scattered)
    assert timed(allgather.ring(ranks, COUNT)) == exactly((ranks - 1) * (A + N * B))
    assert timed(allgather.bruck(ranks, COUNT)) == exactly(lg(ranks) * A + (ranks - 1) * N * B)
    assert timed(alltoall.pairwise(ranks, COUNT)) == exactly((ranks - 1) * A + share(ranks) * B)
    assert timed(alltoall.bruck(ranks, COUNT)) == exactly(lg(ranks) * (A + N / 2 * B))
    assert timed(reduce_scatter.pairwise(ranks, COUNT)) == exactly((ranks - 1) * A + share(ranks) * (B + C))
    halved = lg(ranks) * A + share(ranks) * (B + C)
    assert timed(reduce_scatter.recursive_halving(ranks, COUNT)) == exactly(halved)
    assert timed(barrier.dissemination(ranks)) == exactly(lg(ranks) * A)


@pytest.mark.parametrize("nics", [1, 2, 4])
@pytest.mark.parametrize(("hosts", "per_host"), [(4, 4), (16, 2), (2, 8), (8, 1), (1, 8)])
def test_two_levels(hosts, per_host, nics):
    near, slow = 4e-7, 1e-10
    of_rank = np.repeat(np.arange(hosts), per_host)
    network = replace(UNIFORM, host_of_rank=of_rank, nics=nics, local_latency_s=near, local_bytes_per_s=1 / slow)
    leaders = twolevel.leaders(of_rank.size, COUNT, of_rank.tolist(), across="recursive-doubling")
    within = lg(per_host) * (2 * (near + N * slow) + N * C)
    assert timed(leaders, network) == exactly(within + lg(hosts) * (A + N * (B + C)))

    columns = twolevel.reduce_scatter_allgather(of_rank.size, COUNT, of_rank.tolist(), across="ring")
    part, sharing = N / per_host, max(1, per_host / nics)
    inside = 2 * (per_host - 1) * (near + part * slow) + (per_host - 1) * part * C
    ring = 2 * (hosts - 1) * A + (hosts - 1) / hosts * part * (2 * B * sharing + C)
    assert timed(columns, network) == exactly(inside + ring)


@pytest.mark.parametrize(("source", "target"), [([0, 1], [2, 3]), ([2, 3], [0, 1])])
def test_a_nic_is_shared_at_either_end(source, target):
    made = messages(source, target, 0, 8, read_from=INPUT)
    network = replace(UNIFORM, host_of_rank=np.array([0, 0, 1, 2]), nics=1)
    assert simulate(planted(made, ranks=4), WORD, network).time_s == exactly(A + 2 * 8 * WORD * B)


def test_cyclic_placement_costs_a_flat_ring_its_shared_nic():
    cyclic, block = np.arange(16) % 4, np.arange(16) // 4
    times = [timed(allreduce.ring(16, COUNT), replace(UNIFORM, host_of_rank=h, nics=1)) for h in (cyclic, block)]
    assert times[1] == exactly(30 * A + share(16) * (2 * B + C))
    assert times[0] == exactly(30 * A + share(16) * (2 * 4 * B + C))


def test_overheads_are_logp():
    o = 7e-7
    network = replace(UNIFORM, overhead_s=o)
    assert timed(allreduce.recursive_doubling(8, COUNT), network) == exactly(3 * (A + 2 * o + N * (B + C)))


def planted(*rounds, ranks=3):
    return Schedule("planted", "planted", ranks, 8, sizes(ranks, 8, 64, 8), rounds)


def test_several_sends_of_a_rank_spend_their_overheads_in_turn():
    o, n = 7e-7, 8 * WORD
    fan = messages([0, 0], [1, 2], 0, 8, read_from=INPUT)
    finish = simulate(planted(fan), WORD, replace(UNIFORM, overhead_s=o)).finish_s
    assert finish.tolist() == exactly([2 * o + n * B + A, 2 * o + n * B + A, 3 * o + n * B + A])


def test_several_receives_are_taken_in_turn_and_reduced():
    o, n = 7e-7, 8 * WORD
    fan = messages([1, 2], 0, 0, 8, read_from=INPUT, combine=True)
    finish = simulate(planted(fan), WORD, replace(UNIFORM, overhead_s=o)).finish_s
    assert finish[0] == exactly(o + A + n * B + 2 * o + 2 * n * C)


def test_an_eager_sender_goes_on_and_a_synchronous_one_waits_for_its_target():
    n = 8 * WORD
    chain = (messages(0, 1, 0, 8, read_from=INPUT), messages(2, 1, 0, 8, read_from=INPUT))
    eager = simulate(planted(*chain), WORD, replace(UNIFORM, rendezvous_bytes=n + 1)).finish_s
    assert eager.tolist() == exactly([n * B, n * B + A, n * B])
    synchronous = simulate(planted(*chain), WORD, replace(UNIFORM, rendezvous_bytes=n)).finish_s
    assert synchronous.tolist() == exactly([n * B + A, 2 * (n * B + A), 2 * (n * B + A)])


def test_local_messages_copy_or_reduce():
    n, rate = 8 * WORD, 5e9
    rounds = messages(0, 0, 0, 8, read_from=INPUT), messages(0, 0, 0, 8, write_to=SCRATCH, combine=True)
    timing = simulate(planted(*rounds), WORD, replace(UNIFORM, copy_bytes_per_s=rate))
    assert timing.finish_s.tolist() == exactly([n / rate + n * C, 0, 0])
    assert (timing.messages, timing.rounds, timing.rank_bytes.tolist()) == (0, 2, [0, 0, 0])


def test_bytes_are_counted_by_rank_and_between_hosts():
    timing = simulate(allreduce.ring(4, 16), WORD, replace(UNIFORM, host_of_rank=np.array([0, 0, 1, 1])))
    assert timing.rank_bytes.tolist() == [6 * 4 * WORD] * 4
    assert timing.host_bytes.tolist() == [6 * 4 * WORD] * 2
    assert (timing.messages, timing.rounds) == (24, 9)


def test_nothing_to_do_takes_no_time():
    assert timed(allreduce.ring(1, COUNT)) == 0
    assert timed(allreduce.ring(5, 0)) == 0


@dataclass(frozen=True)
class Steps:
    """A model of one's own: time by size alone, from a table."""

    def hosts(self, rank):
        return rank

    def messages(self, source, target, nbytes):
        zero = np.zeros(nbytes.size)
        return Cost(np.where(nbytes > 100, 5.0, 1.0), zero, zero, zero, zero == 0)

    def reduce_s(self, nbytes):
        return 0 * nbytes

    copy_s = reduce_s


def test_another_model_can_be_put_in():
    assert timed(allreduce.recursive_doubling(8, 12), Steps()) == 3
    assert timed(allreduce.recursive_doubling(8, 13), Steps()) == 15


@pytest.mark.parametrize(
    "wrong",
    [
        {"bytes_per_s": 0},
        {"latency_s": -1},
        {"reduce_bytes_per_s": -1},
        {"local_bytes_per_s": 0},
        {"nics": -1},
        {"overhead_s": math.nan},
    ],
)
def test_a_network_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match="a network's rates"):
        replace(UNIFORM, **wrong)


def test_ranks_without_a_host_and_elements_without_bytes_are_refused():
    with pytest.raises(ValueError, match="rank 3 has no host: 2 given"):
        timed(allreduce.ring(4, 8), replace(UNIFORM, host_of_rank=np.array([0, 1])))
    with pytest.raises(ValueError, match="element of 0 bytes"):
        simulate(allreduce.ring(2, 8), 0, UNIFORM)


def test_large_schedules_need_the_memory_of_one_round():
    tracemalloc.start()
    timing = simulate(allreduce.recursive_doubling(1 << 16, 256), 4, replace(UNIFORM, nics=1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert timing.time_s == exactly(16 * (A + 1024 * (B + C)))
    assert peak < 64 << 20
