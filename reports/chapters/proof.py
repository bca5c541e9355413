"""Chapter 2: every fabric, its recipe, and what counters saw of the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reports.load import mapping
from reports.tables import pairs, prose, table
from reports.units import count, rate, volume
from reports.view import Chapter, Finding, View, alone, grouped, jobs_of, number

SENTENCES = {
    "proved": "Counters prove that the bytes took {}.",
    "unknown": "UNPROVED: no counters vouch for {}.",
    "imported": "IMPORTED: {}: what other suites printed; nothing vouches for the way of the bytes.",
    "disproved": "DISPROVED: bytes meant for {} went elsewhere; those numbers are not published (chapter 8).",
}
_WORTH_NAMING_BYTES = 50_000


def chapter(v: View) -> Chapter:
    """The chapter on fabrics and proof."""
    if not v.fabrics:
        return Chapter(2, "Fabrics and proof", ("Nothing to show: the run names no fabric.",))
    blocks = (_overview(v), *(_fabric(v, name) for name in v.fabrics))
    return Chapter(2, "Fabrics and proof", blocks, tuple(_findings(v)))


def verdicts(v: View, fabric: str) -> dict[str, int]:
    """How many jobs over the fabric came to each verdict; where no job is on disk, of its records with a number.

    One rank alone sends nothing, so there is nothing to prove.
    """
    found = [_verdict(job) for job in jobs_of(v, fabric) if job.get("proof") and not _silent(job)]
    found = found or [r.proof for r in v.records if r.fabric == fabric and r.status == "ok" and not alone(r)]
    return {word: found.count(word) for word in dict.fromkeys(found)}


def proof_detail(v: View, fabric: str, launch: int, verdict: str) -> str:
    """What the proof of a job with that verdict says, in that launch if possible; empty without one."""
    told = [(job.get("launch") == launch, str(proof.get("detail", ""))) for job in jobs_of(v, fabric)
            if (proof := mapping(job.get("proof"))).get("verdict") == verdict]  # fmt: skip
    return max(told, key=lambda t: t[0])[1] if told else ""


def _verdict_text(v: View, fabric: str) -> str:
    found = verdicts(v, fabric)
    if v.fabrics[fabric].get("unusable"):
        return "unusable"
    if not found:
        silent = any(map(_silent, jobs_of(v, fabric)))
        other = "nothing sent" if silent else "failed" if jobs_of(v, fabric) else "not measured"
        return "no route" if unreachable(v, fabric) else other
    total = sum(found.values())
    return ", ".join(word if n == total else f"{word} {n} of {total}" for word, n in found.items())


def _silent(job: Mapping[str, Any]) -> bool:
    """Whether one rank ran the job, which had nobody to send to."""
    return len(list(job.get("hosts") or ())) == 1


def unreachable(v: View, fabric: str) -> str:
    """Why hosts did not reach each other over the fabric before anything was measured; empty where they did."""
    return str(mapping(mapping(v.data.run.get("reachability")).get("unreachable")).get(fabric) or "")


def _overview(v: View) -> str:
    rows = [[name, str(f.get("kind", "?")), rate(number(f.get("rate_bits_per_s"))),
             " ".join(map(str, f.get("hosts") or ())) or "-",
             _verdict_text(v, name), "EMULATED" if name in v.emulated else ""]
            for name, f in v.fabrics.items()]  # fmt: skip
    return table(["fabric", "kind", "rate", "hosts", "proof", "notes"], rows, ["left"] * 6)


def _fabric(v: View, name: str) -> str:
    known = v.fabrics[name]
    mark = " (EMULATED)" if name in v.emulated else ""
    if not known:
        return f"{name}{mark}\n" + prose("run.json does not describe this fabric.", "  ")
    devices = "; ".join(f"{host}: {' '.join(map(str, names or ()))}"
                        for host, names in mapping(known.get("devices")).items() if names)  # fmt: skip
    rows = [("unusable", _str(known.get("unusable"))), ("devices", devices),
            ("note", _str(known.get("note"))), *_jobs(v, name)]  # fmt: skip
    body = pairs(rows) or "nothing ran over it"
    return "\n".join([name + mark, *("  " + line for line in body.splitlines())])


def _jobs(v: View, fabric: str) -> Iterator[tuple[str, str]]:
    """Each recipe once, and under it each verdict once with what the counters of its first job saw.

    A job that ended before its probe has no verdict; chapter 8 has its reason.
    """
    if reason := unreachable(v, fabric):
        yield "no route", reason
    probed = [job for job in jobs_of(v, fabric) if job.get("proof") or not job.get("reason")]
    for recipe, jobs in grouped(probed, _recipe).items():
        yield "recipe", recipe
        for verdict, same in grouped(jobs, lambda job: "nothing sent" if _silent(job) else _verdict(job)).items():
            proof = mapping(same[0].get("proof"))
            yield verdict, f"{len(same)} of {len(jobs)} jobs: {proof.get('detail') or 'no detail'}"
            yield "counters", counters(proof, mapping(v.fabrics[fabric].get("devices")))
    yield from _own_traffic(v, fabric)


def _verdict(job: Mapping[str, Any]) -> str:
    return str(mapping(job.get("proof")).get("verdict") or "unknown")


def _own_traffic(v: View, fabric: str) -> Iterator[tuple[str, str]]:
    """Benchmarks that probed their own traffic, since the job's probe is of another library."""
    told = [r for r in v.records if r.fabric == fabric and r.counters.get("verdict")]
    for (benchmark, backend, verdict), same in grouped(told, lambda r: (r.benchmark, r.backend, r.proof)).items():
        detail = same[0].counters.get("detail") or "no detail"
        yield verdict, f"{benchmark} over {backend}, {count(len(same), 'record')}: {detail}"
        yield "counters", counters(same[0].counters, mapping(v.fabrics[fabric].get("devices")))


def _recipe(job: Mapping[str, Any]) -> str:
    recipe = mapping(job.get("recipe"))
    env = " ".join(f"{k}={x}" for k, x in mapping(recipe.get("env")).items())
    name = ", ".join(str(recipe[k]) for k in ("flavour", "backend") if recipe.get(k))
    return f"{name or 'not recorded'}: {env or 'no variable set'}"


def counters(proof: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """What each device of the fabric counted for the payload, and what all the others did.

    ``67.1 MB sent; h0 eth10g tx 67.9 MB rx 0.4 MB; others 12 B``
    """
    parts, rest = [], 0.0
    for host, devices in sorted(mapping(proof.get("deltas")).items()):
        for device, both in mapping(devices).items():
            received, sent = _pair(both)
            mine = device in (own.get(host) or ())
            if mine or received + sent >= _WORTH_NAMING_BYTES:
                tag = "" if mine else " (not of this fabric)"
                parts.append(f"{host} {device} tx {volume(sent)} rx {volume(received)}{tag}")
            else:
                rest += received + sent
    if not mapping(proof.get("deltas")):
        return ""
    return "; ".join([f"{volume(number(proof.get('payload_bytes')) or 0.0)} sent", *parts, f"others {volume(rest)}"])


def _pair(both: Any) -> tuple[float, float]:
    given = [number(x) or 0.0 for x in both] if isinstance(both, list | tuple) else []
    return (given[0], given[1]) if len(given) == 2 else (0.0, 0.0)


def _str(data: Any) -> str:
    return "" if data is None else str(data)


def _findings(v: View) -> Iterator[Finding]:
    """One sentence per verdict, with the fabrics that it holds for; a fabric's worst verdict counts."""
    measured = {r.fabric for r in v.records}
    by_verdict: dict[str, list[str]] = {}
    for name in v.fabrics:
        found = verdicts(v, name)
        if name in measured and found:
            worst = next(word for word in ("disproved", "unknown", "imported", "proved", *found) if word in found)
            total = sum(found.values())
            by_verdict.setdefault(worst, []).append(
                name if found[worst] == total else f"{name} ({found[worst]} of {count(total, 'job')})"
            )
    for verdict, names in by_verdict.items():
        text = SENTENCES.get(verdict, f"Verdict {verdict}: {{}}.").format(", ".join(names))
        yield Finding(2, text, {"verdict": verdict, "fabrics": names})
    for name in v.fabrics:
        if reason := unreachable(v, name):
            yield Finding(2, f"NOT MEASURED: {name}: {reason}.", {"fabric": name, "unreachable": reason})
