"""The text of docs/evaluation.md, from what make_evaluation.py measured. Every figure and every claim is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Result = dict[str, Any]

_INTRODUCTION = """\
Measured on simulated fleets whose truth is known, by `make evaluation`, which writes this page; no figure here is typed.
The simulation follows the Llama 3 paper's mix of causes and the line shapes of real exports. It is still a simulation:
**confidences are checked against it alone**, and that says little of your cluster until verdicts there are compared with
what its operators know ([evaluate](evaluate.md))."""

_SCORED = """\
Causes are scored over those that the exports can tell, nodes where one node is to blame; the error of effective training
time is in points."""

_LEFT_OUT = """\
The demo, with one rule left out at a time: identifiable causes right, and which causes lose or gain. A rule that costs
nothing speaks where others speak too, or of what this fleet did not meet."""

LEAST_PLANNED, LEAST_CAUSES, MOST_ERROR = 0.995, 0.97, 0.002


def page(demo: Result, seeds: Sequence[Result], fleets: Sequence[Result], rules: Result) -> str:
    """Return the page.

    Args:
        demo: the demo's own fleet and seed.
        seeds: the same fleet with other seeds.
        fleets: smaller fleets with other mixes.
        rules: the demo with each rule left out, under "rules"; "" = with all.
    """
    parts = [
        "# How often verdicts are right",
        _INTRODUCTION,
        "## Seeds",
        f"{demo['nodes']:,} nodes, {demo['days']} days, mix {demo['mix']}. Seed {demo['seed']} is the demo's. {_SCORED}",
        _table([demo, *seeds], lambda r: str(r["seed"]), "seed"),
        _against_targets([*seeds, *fleets], demo),
        _demo_within(demo, seeds),
        "## Other fleets",
        _table(fleets, lambda r: f"{r['nodes']:,} nodes, {r['mix']}", "fleet"),
        "## By cause",
        f"{_pooled(seeds)}: how often it was the cause, was named, and was answered rightly.",
        _by_cause(seeds),
        "## Is 90 % right nine times in ten?",
        f"{_pooled(seeds)}: verdicts by their confidence, over identifiable causes.",
        _calibration(seeds),
        "## What each rule is worth",
        _LEFT_OUT,
        _rules(rules["rules"]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(results: Sequence[Result], name: Callable[[Result], str], head: str) -> str:
    rows = [
        f"| {name(r)} | {r['interruptions']:,} | {r['missed']} | {r['invented']} | {_share(r['planned'])} | {_share(r['causes'])} | "
        f"{_share(r['nodes_right'])} | {_points(r)} | {r['brier']:.3f} |"
        for r in results
    ]
    return "\n".join(
        [
            f"| {head} | interruptions | missed | invented | planned right | cause right | node right | training time error | Brier score |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
            *rows,
        ]
    )


def _against_targets(results: Sequence[Result], demo: Result) -> str:
    targets: list[tuple[str, Callable[[Result], bool]]] = [
        ("no interruption missed or invented", lambda r: not r["missed"] and not r["invented"]),
        (f"planned right in at least {LEAST_PLANNED:.1%}", lambda r: _ratio(r["planned"]) >= LEAST_PLANNED),
        (
            f"cause right in at least {LEAST_CAUSES:.0%} of identifiable ones",
            lambda r: _ratio(r["causes"]) >= LEAST_CAUSES,
        ),
        (
            f"effective training time within {100 * MOST_ERROR:.1f} points",
            lambda r: abs(r["effective_training_time_error"]) <= MOST_ERROR,
        ),
    ]
    rows = [
        f"| {told} | {sum(map(holds, results))} of {len(results)} | {'yes' if holds(demo) else 'no'} |"
        for told, holds in targets
    ]
    return "\n".join(["| target | fleets that reach it, but the demo's | the demo |", "|---|--:|--:|", *rows])


def _demo_within(demo: Result, seeds: Sequence[Result]) -> str:
    measures: list[tuple[str, Callable[[Result], float], Callable[[float], str]]] = [
        ("planned right", lambda r: _ratio(r["planned"]), lambda v: f"{v:.1%}"),
        ("cause right", lambda r: _ratio(r["causes"]), lambda v: f"{v:.1%}"),
        ("node right", lambda r: _ratio(r["nodes_right"]), lambda v: f"{v:.1%}"),
        ("training time error", lambda r: 100 * r["effective_training_time_error"], lambda v: f"{v:+.3f}"),
        ("Brier score", lambda r: r["brier"], lambda v: f"{v:.3f}"),
    ]
    rows = []
    for told, measure, shown in measures:
        values = [measure(r) for r in seeds]
        own, least, most = measure(demo), min(values), max(values)
        rows.append(
            f"| {told} | {shown(own)} | {shown(least)} to {shown(most)} | {'yes' if least <= own <= most else 'no'} |"
        )
    head = f"| measure | the demo | the other {len(seeds)} seeds | the demo lies within |"
    return "\n".join(["Is the demo's seed a lucky one?", "", head, "|---|--:|--:|---|", *rows])


def _pooled(seeds: Sequence[Result]) -> str:
    return f"Seeds {seeds[0]['seed']} to {seeds[-1]['seed']} together"


def _by_cause(seeds: Sequence[Result]) -> str:
    sums: dict[str, list[int]] = {}
    for result in seeds:
        for cause, counts in result["by_cause"].items():
            sums[cause] = [a + b for a, b in zip(sums.get(cause, [0] * len(counts)), counts, strict=True)]
    rows = [
        f"| {cause} | {true:,} | {found:,} | {right:,} | {untold:,} |"
        for cause, (true, found, right, untold) in sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))
    ]
    return "\n".join(["| cause | true | found | right | not in exports |", "|---|--:|--:|--:|--:|", *rows])


def _calibration(seeds: Sequence[Result]) -> str:
    pooled: dict[tuple[float, float], list[float]] = {}
    for result in seeds:
        for lower, upper, mean, right, of in result["calibration"]:
            sums = pooled.setdefault((lower, upper), [0.0, 0, 0])
            pooled[lower, upper] = [sums[0] + mean * of, sums[1] + right, sums[2] + of]
    rows = [
        f"| {lower:.0%} to {upper:.0%} | {said / of:.1%} | {right / of:.1%} | {of:,.0f} |"
        for (lower, upper), (said, right, of) in sorted(pooled.items())
    ]
    return "\n".join(["| confidence | said on average | right | verdicts |", "|---|--:|--:|--:|", *rows])


def _rules(rules: dict[str, Result]) -> str:
    whole = rules[""]
    rows = []
    for rule, result in sorted(rules.items(), key=lambda item: (_ratio(item[1]["causes"]), item[0])):
        if rule:
            lost = _ratio(result["causes"]) - _ratio(whole["causes"])
            planned = result["planned"][0] - whole["planned"][0]
            rows.append(
                f"| `{rule}` | {_share(result['causes'])} | {100 * lost:+.1f} | {planned:+d} | "
                f"{_changes(whole['wrong'], result['wrong'])} |"
            )
    return "\n".join(
        [
            f"With all rules: {_share(whole['causes'])}.",
            "",
            "| rule left out | cause right | points | planned right | causes that lose (-) or gain (+) |",
            "|---|--:|--:|--:|---|",
            *rows,
        ]
    )


def _changes(before: dict[str, int], after: dict[str, int]) -> str:
    changes = {cause: before.get(cause, 0) - after.get(cause, 0) for cause in before.keys() | after.keys()}
    told = sorted(((n, cause) for cause, n in changes.items() if n), key=lambda item: (item[0], item[1]))
    return ", ".join(f"{cause} {n:+d}" for n, cause in told) or "none"


def _share(pair: list[int]) -> str:
    return f"{pair[0]:,} of {pair[1]:,} ({_ratio(pair):.1%})" if pair[1] else "none"


def _ratio(pair: list[int]) -> float:
    return pair[0] / pair[1] if pair[1] else 1.0


def _points(result: Result) -> str:
    return f"{100 * result['effective_training_time_error']:+.3f}"
