"""What Slurm is asked day after day: `sacct`, `sacctmgr show event`, `scontrol show reservation`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from flows.replay.fleet import CLUSTER
from flows.replay.jobs import Job, node_list
from flows.replay.roster import NodeEvent
from flows.replay.text import elapsed, host_list, slurm_time, stamp
from flows.replay.timeline import DAY, Reservation, Timeline

_OVERLAP = 6 * 3_600
_WEEK = 7 * DAY
_COLUMNS = (
    "JobID|JobIDRaw|Cluster|JobName|User|UID|Account|Partition|QOS|State|ExitCode|DerivedExitCode|Reason|Submit|Eligible|"
    "Start|End|Elapsed|Timelimit|NNodes|AllocTRES|NodeList|Restarts"
)


def write_sacct(folder: Path, jobs: list[Job], timeline: Timeline) -> None:
    """Write `sacct -a -D -X -P --noconvert`, once a day soon after midnight, each time the day and some hours before it."""
    folder.mkdir(parents=True)
    for midnight in midnights(timeline.start, timeline.end):
        now = midnight + 600
        since = midnight - DAY - _OVERLAP
        rows = [_sacct_row(job, now) for job in jobs if job.submit <= now and job.end >= since]
        (folder / f"sacct_{stamp(now)}.txt").write_text("\n".join([_COLUMNS, *rows, ""]))


def midnights(start: int, end: int) -> range:
    """Midnights after each day that the time from `start` to `end` touches."""
    return range(start - start % DAY + DAY, end + DAY, DAY)


def _sacct_row(job: Job, now: int) -> str:
    """Print a record as it stood at `now`."""
    has_started = job.start is not None and job.start <= now
    has_ended = job.end <= now
    state, exit_code, reason, end = job.state, job.exit_code, job.reason, slurm_time(job.end)
    if not has_ended:
        end, exit_code = "Unknown", "0:0"
        state = "RUNNING" if has_started else "PENDING"
        reason = "None" if has_started else "BeginTime" if job.restarts else "Priority"
    start, seconds, nodes, tres = "Unknown", 0, "None assigned", ""
    if has_started and job.start is not None:
        start, nodes, tres = slurm_time(job.start), node_list(job), job.tres
        seconds = min(job.end, now) - job.start
    elif has_ended:
        start = "None"
    return "|".join(
        (
            job.job_id,
            str(job.raw),
            CLUSTER,
            job.name,
            job.user,
            str(job.uid),
            job.account,
            job.partition,
            job.qos,
            state,
            exit_code,
            "0:0",
            reason,
            slurm_time(job.submit),
            slurm_time(job.eligible),
            start,
            end,
            elapsed(seconds),
            elapsed(job.limit) if job.limit else "UNLIMITED",
            str(max(1, len(job.nodes))),
            tres,
            nodes,
            str(job.restarts),
        )
    )


def write_events(folder: Path, events: list[NodeEvent], timeline: Timeline) -> None:
    """Write `sacctmgr -P show event start=...` once a week: all events so far, those that last without an end."""
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(events, key=lambda e: (e.start, e.node, e.state))
    registered = f"{CLUSTER}||{slurm_time(timeline.start - 90 * DAY)}|Unknown||Cluster Registered TRES|"
    for now in weeks(timeline):
        rows = [_event_row(event, now) for event in ordered if event.start <= now]
        text = "\n".join(["Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User", registered, *rows, ""])
        (folder / f"sacctmgr_events_{stamp(now)}.txt").write_text(text)


def weeks(timeline: Timeline) -> Iterator[int]:
    """When weekly exports are made: every seven days, and a week after the end."""
    yield from range(timeline.start + _WEEK, timeline.end, _WEEK)
    yield timeline.end + _WEEK


def _event_row(event: NodeEvent, now: int) -> str:
    end = slurm_time(event.end) if event.end <= now else "Unknown"
    return f"{CLUSTER}|{event.node}|{slurm_time(event.start)}|{end}|{event.state}|{event.reason}|{event.user}"


def write_reservations(folder: Path, reservations: list[Reservation], timeline: Timeline) -> None:
    """Write `scontrol show reservation` once a day: those that were announced and are not over."""
    folder.mkdir(parents=True, exist_ok=True)
    for now in range(timeline.start - 3_600, timeline.end, DAY):
        shown = [r for r in reservations if r.created_at <= now < r.end]
        text = "\n".join(_reservation(r, now) for r in shown) or "No reservations in the system\n"
        (folder / f"scontrol_show_reservation_{stamp(now)}.txt").write_text(text)


def _reservation(reservation: Reservation, now: int) -> str:
    count = len(reservation.nodes)
    state = "ACTIVE" if reservation.start <= now else "INACTIVE"
    return (
        f"ReservationName={reservation.name} StartTime={slurm_time(reservation.start)} EndTime={slurm_time(reservation.end)}"
        f" Duration={elapsed(reservation.end - reservation.start)}\n"
        f"   Nodes={host_list(reservation.nodes)} NodeCnt={count} CoreCnt={count * 96} Features=(null) PartitionName=(null)"
        " Flags=MAINT,IGNORE_JOBS,SPEC_NODES\n"
        f"   TRES=cpu={count * 192}\n"
        "   Users=root,ops Groups=(null) Accounts=(null) Licenses=(null)"
        f" State={state} BurstBuffer=(null) Watts=n/a\n"
        "   MaxStartDelay=(null)\n"
    )
