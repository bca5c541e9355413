"""About how long a case of ``train`` takes at most: pure arithmetic, for plans and deadlines."""

from __future__ import annotations

from training.data.choice import FOLDER, SYNTHETIC, parse
from training.exchange.modes import UNFUSED
from training.models import MODELS
from training.models.table import FLOAT32_BYTES
from training.paired import FEWEST_ALONE, MIN_ROUNDS, budget
from training.setup import BFLOAT16, STRONG, Setup

READY_STEPS = 2  # that are watched beside the rounds; of each other size of buckets one
FIRST_STEPS = 1  # by each exchange, which the check before the rounds takes once more
_MACS_PER_S = 16e9  # of one core, in float32; seen: 18e9
_BFLOAT16_SLOWER = 4.0  # on cores without instructions for it
_PASSES = 3  # a backward pass takes twice a forward one
_GIGA_MACS = {  # of one image of the usual size in a forward pass, as torchvision counts them; of CIFAR's, He et al.
    "resnet18": 1.82, "resnet34": 3.67, "resnet50": 4.09, "resnet101": 7.80, "resnet152": 11.51, "resnet20": 0.041,
    "resnet32": 0.070, "resnet44": 0.098, "resnet56": 0.127, "resnet110": 0.256, "vgg16": 15.47, "alexnet": 0.71,
    "inception_v3": 5.71, "inception_v3_aux": 5.71,
}  # fmt: skip
_PER_BYTE_S = 0.6e-9  # of gradients, in a step: copies to buckets and back, and the optimizer
_PER_BUCKET_S = 2e-3
_CONNECT_S = 3.0  # torch's group, DPUs' windows
_DECODED_S = 0.02  # an image of a folder: a photograph of some megapixels
_READ_S = 1e-4  # an image of CIFAR-10
_PER_PIXEL_S = 2e-7  # of an image that is brought into the network's form, or augmented


def compute_s(setup: Setup, batch: int) -> float:
    """About how long a step takes one core without an exchange."""
    model, side = MODELS[setup.workload.model], setup.workload.image_px
    macs = _PASSES * batch * _GIGA_MACS[setup.workload.model] * 1e9 * (side / model.image_px) ** 2
    slower = _BFLOAT16_SLOWER if setup.dtype == BFLOAT16 else 1.0
    return slower * macs / _MACS_PER_S + _PER_BYTE_S * model.parameters * FLOAT32_BYTES


def exchange_s(setup: Setup, ranks: int, bytes_per_s: float) -> float:
    """About how long an exchange takes that hides behind nothing: a ring's bytes at two thirds of the rate."""
    model = MODELS[setup.workload.model]
    nbytes = model.parameters * (2 if setup.dtype == BFLOAT16 else FLOAT32_BYTES)
    buckets = model.tensors if any(UNFUSED in name for name in setup.exchanges) else 0
    return 1.5 * (2 * (ranks - 1) / ranks * nbytes / bytes_per_s) + buckets * _PER_BUCKET_S


def data_s(setup: Setup, batch: int) -> float:
    """About how long images of a step are waited for; files on a slow disk take longer, which no plan can know."""
    kind = parse(setup.data).kind
    if kind == SYNTHETIC and not setup.augment:
        return 0.0  # the same images in every step
    read_s = {SYNTHETIC: 0.0, FOLDER: _DECODED_S}.get(kind, _READ_S)
    return batch * (read_s + _PER_PIXEL_S * setup.workload.image_px**2)


def least_steps(exchanges: int, fusions: int) -> int:
    """The steps that a case takes on a rank at least, with images of their own: its first ones, and a round."""
    first = 3 * fusions + READY_STEPS - 1 + FIRST_STEPS * exchanges
    return first + 1 + exchanges + FEWEST_ALONE


def at_most_s(setup: Setup, ranks: int, budget_s: float, max_rounds: int, bytes_per_s: float) -> float:
    """About how long a case takes at most, its checks and first steps included."""
    total = setup.workload.batch
    batch = max(1, total // ranks) if setup.scaling == STRONG else total
    loaded, exchange = data_s(setup, batch), exchange_s(setup, ranks, bytes_per_s)
    noop, alone_s = compute_s(setup, batch) + loaded, compute_s(setup, total) + data_s(setup, total)
    modes, fusions = len(setup.modes), len({mode.cap_bytes for mode in setup.modes})
    exchanged = modes * (noop + exchange)
    plan = budget(noop + exchanged, budget_s, max_rounds, alone_s)
    rounds_s = max(budget_s, min(MIN_ROUNDS, plan.rounds) * (noop + exchanged))
    first_s = (3 * fusions + READY_STEPS - 1) * noop + FIRST_STEPS * exchanged
    checks_s = noop + 2 * exchanged + exchange
    return rounds_s + first_s + checks_s + plan.alone * alone_s + _CONNECT_S
