"""Measure how often verdicts are right, on fleets whose truth is known, and write docs/evaluation.md: `make evaluation`.

Twenty seeds beside the demo's own, smaller fleets with other mixes of causes, and the demo with each rule left out. Each
fleet is generated in a scratch folder, read, built, scored and deleted. What is finished is kept there: a call that was
stopped goes on where it was, and `--seeds 2,3`, `--fleets` or `--rules` do a part. The page is written once all is there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from evaluation_page import page  # noqa: E402  # docs/ is no package

from flows import demo, pipeline, truth  # noqa: E402
from flows.cli.evaluate import score_of  # noqa: E402
from flows.config import Config, load  # noqa: E402
from flows.demo import Replay  # noqa: E402
from flows.evaluate import DEFAULT_DISTANCE_SECONDS, compare  # noqa: E402
from flows.manifest import opened  # noqa: E402
from flows.score import Score, Share  # noqa: E402
from warehouse import ablation  # noqa: E402

PAGE = ROOT / "docs" / "evaluation.md"
SCRATCH = ROOT / "build" / "evaluation"
SIDE_BY_SIDE = 2
MEMORY_LIMIT = "2GB"
DEMO = Replay()
SEEDS = range(2, 22)
FLEETS = [Replay(1, n, 54, mix) for n in (256, 1024) for mix in ("hbm_heavy", "network_heavy", "software_heavy")]

Result = dict[str, Any]


def main() -> None:
    """Do what is asked for and not yet done; write the page if nothing is missing."""
    options = _options()
    scratch: Path = options.scratch
    if options.one:
        _one(scratch, options.one, is_rules=options.rules)
        return
    scratch.mkdir(parents=True, exist_ok=True)
    everything = [(r, False) for r in (DEMO, *map(seeded, SEEDS), *FLEETS)] + [(DEMO, True)]
    code = None if options.keep else fingerprint()
    todo = [
        (replay, is_rules)
        for replay, is_rules in everything
        if _is_wanted(options, replay, is_rules) and _finished(scratch, replay, is_rules, code) is None
    ]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as workers:
        failed = [f for f in workers.map(lambda work: _in_process(scratch, *work), todo) if f]
    if failed:
        sys.exit("\n".join(failed))
    results = {key(*work): _finished(scratch, *work, code) for work in everything}
    if missing := [name for name, result in results.items() if result is None]:
        _tell(
            f"docs/evaluation.md stays as it is: {len(missing)} of {len(results)} are not done, {missing[0]} the first"
        )
        return
    done = {name: result for name, result in results.items() if result is not None}
    PAGE.write_text(
        page(
            done[key(DEMO)],
            [done[key(seeded(seed))] for seed in SEEDS],
            [done[key(fleet)] for fleet in FLEETS],
            done[key(DEMO, True)],
        ),
        encoding="utf-8",
    )
    _tell(f"wrote {PAGE.relative_to(ROOT)}")


def seeded(seed: int) -> Replay:
    """Return the demo's fleet with another seed."""
    return replace(DEMO, seed=seed)


def key(replay: Replay, is_rules: bool = False) -> str:
    """Return a name for files: what was generated, and whether rules were left out of it."""
    name = f"{replay.mix}-{replay.nodes}-nodes-{replay.days}-days-seed-{replay.seed}"
    return f"rules-{name}" if is_rules else name


def fingerprint() -> str:
    """Return a hash of all that a result depends on."""
    found = hashlib.sha256()
    for folder in ("flows", "transforms", "warehouse"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".sql", ".csv", ".toml"} and "cli" not in path.parts:
                found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def measured(folder: Path, config: Config, replay: Replay) -> Result:
    """Read, build and score what a folder holds; return plain numbers."""
    began = time.monotonic()
    read, built = pipeline.run(config)
    if not built.published or read.failed:
        raise SystemExit(f"{key(replay)}: the exports or the build failed; run `goodput run --config {config.path}`")
    seconds = time.monotonic() - began
    score = score_of(config, folder / demo.TRUTH, DEFAULT_DISTANCE_SECONDS)
    [run] = score.runs
    return {
        **numbers(score),
        "seed": replay.seed,
        "nodes": replay.nodes,
        "days": replay.days,
        "mix": replay.mix,
        "lines": sum(export.lines for export in read.exports),
        "seconds": seconds,
        "unidentifiable": _pair(score.unidentifiable),
        "brier": score.brier,
        "effective_training_time": run.truth.effective_training_time,
        "effective_training_time_error": run.effective_training_time_error,
        "by_cause": {c.cause: [c.true, c.found, c.right, c.untold] for c in score.by_cause()},
        "calibration": [[b.lower, b.upper, b.mean, b.verdicts.right, b.verdicts.of] for b in score.calibration()],
    }


def numbers(score: Score) -> Result:
    """Return the counts that every score has."""
    wrong = Counter(t.causes[0] for t, _, differences in score.wrong() if "cause" in differences and t.is_identifiable)
    return {
        "interruptions": len(score.matched) + len(score.missed),
        "missed": len(score.missed),
        "invented": len(score.invented),
        "planned": _pair(score.planned),
        "causes": _pair(score.causes),
        "nodes_right": _pair(score.nodes),
        "wrong": dict(sorted(wrong.items())),
    }


def without_rules(folder: Path, config: Config) -> Iterator[tuple[str, Result]]:
    """Score what a folder's lake gives with all rules (the name is ""), then without each of them."""
    pipeline.ingest(config)
    known = truth.read(folder / demo.TRUTH)
    with opened(config.data) as manifest:
        inputs = pipeline.inputs_of(config, manifest)
    for rule, verdicts in ablation.without_each_rule(
        folder, inputs, memory_limit=config.memory_limit, threads=config.threads
    ):
        yield rule or "", numbers(compare(known.interruptions, verdicts))


def _one(scratch: Path, name: str, *, is_rules: bool) -> None:
    """Generate, measure and delete one fleet; keep its result."""
    replay, code = Replay(**json.loads(name)), fingerprint()
    folder = scratch / key(replay, is_rules)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        config = _modest(load(demo.prepare_replay(folder, replay)))
        result = {"rules": dict(without_rules(folder, config))} if is_rules else measured(folder, config, replay)
        result["code"] = code
        file = _file(scratch, replay, is_rules)
        file.with_suffix(".part").write_text(json.dumps(result, indent=1), encoding="utf-8")
        file.with_suffix(".part").replace(file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _modest(config: Config) -> Config:
    """Return the configuration with half a machine: two fleets are measured side by side."""
    limits = {"threads": 1, "memory_limit": MEMORY_LIMIT}
    warehouse = config.document.warehouse.model_copy(update=limits)
    return replace(config, document=config.document.model_copy(update={"warehouse": warehouse}))


def _in_process(scratch: Path, replay: Replay, is_rules: bool) -> str | None:
    """Do one in a process of its own, so that its memory is given back; return what went wrong."""
    parameters = {name: getattr(replay, name) for name in ("seed", "nodes", "days", "mix")}
    words = ["--scratch", str(scratch), "--one", json.dumps(parameters), *(["--rules"] if is_rules else [])]
    began = time.monotonic()
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"{key(replay, is_rules)} failed:\n{done.stderr[-2000:]}"
    _tell(f"{key(replay, is_rules)}: {time.monotonic() - began:.0f} s")
    return None


def _is_wanted(options: argparse.Namespace, replay: Replay, is_rules: bool) -> bool:
    if options.seeds is None and not options.fleets and not options.rules:
        return True
    if is_rules:
        return bool(options.rules)
    return options.fleets if replay in FLEETS else replay.seed in (options.seeds or ())


def _finished(scratch: Path, replay: Replay, is_rules: bool, code: str | None) -> Result | None:
    """Return a result that is kept, unless other code made it; `code` None = whatever made it."""
    try:
        found: Result = json.loads(_file(scratch, replay, is_rules).read_text(encoding="utf-8"))
    except OSError:
        return None
    return found if code in (None, found["code"]) else None


def _file(scratch: Path, replay: Replay, is_rules: bool) -> Path:
    return scratch / f"{key(replay, is_rules)}.json"


def _pair(share: Share) -> list[int]:
    return [share.right, share.of]


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=lambda text: [int(s) for s in text.split(",")], help="these only: 1,2,3")
    parser.add_argument("--fleets", action="store_true", help="the smaller fleets only")
    parser.add_argument("--rules", action="store_true", help="the demo with each rule left out only")
    parser.add_argument("--keep", action="store_true", help="take finished results although the code has changed since")
    parser.add_argument("--scratch", type=Path, default=SCRATCH, help="folder for fleets and finished results")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
