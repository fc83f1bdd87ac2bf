"""What sits in no machine of the run: services it depends on, and hangs that nothing explains."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures.effects import clean_up
from flows.replay.signatures.lines import between, kernel, process_group, said

DEPENDENCY = "dependency"
WATCHDOG = "nccl_watchdog"


def _many(scene: Scene) -> list[str]:
    return [scene.node, *scene.neighbours[:6], *scene.bystanders]


def _writer(last: str) -> list[str]:
    frames = (
        ("/opt/train/state/writer.py", 188, "commit", "self.store.put(key, buffer)"),
        ("/opt/train/state/store.py", 97, "put", "return self._retry(self._put, key, buffer)"),
    )
    told = ["Traceback (most recent call last):"]
    for path, line, function, source in frames:
        told += [f'  File "{path}", line {line}, in {function}', f"    {source}"]
    return [*told, last]


def lustre_gone(scene: Scene) -> Iterator[Line]:
    """Object storage targets of the parallel file system time out on every node; checkpoint writes fail."""
    rng = scene.rng
    target, server = f"ckpt-OST{rng.randrange(64):04x}", f"10.40.{rng.randrange(4)}.{rng.randrange(1, 60)}@o2ib"
    for node in _many(scene):
        at, mount = scene.fault_at + rng.random() * 20, f"{target}-osc-ffff9d{rng.randrange(1 << 40):010x}"
        sent = int(at) - 100
        lines = [
            (
                f"Lustre: {rng.randrange(2000, 9000)}:0:(client.c:2310:ptlrpc_expire_one_request()) @@@ Request sent has timed out for slow reply: "
                f"[sent {sent}/real {sent}]  req@00000000{rng.randrange(1 << 32):08x} x{rng.randrange(10**15, 10**16)}/t0(0) "
                f"o4->{mount}@{server}:6/4 lens 488/448 e 0 to 1 dl {int(at)} ref 2 fl Rpc:X/0/ffffffff rc 0/-1 job:''"
            ),
            f"Lustre: {mount}: Connection to {target} (at {server}) was lost; in progress operations using this service will wait for recovery to complete",
        ]
        yield from kernel(node, at, *lines)
        if rng.random() < 0.7:
            texts = _writer("OSError: [Errno 108] Cannot send after transport endpoint shutdown")
            yield from said(
                scene, node, rng.randrange(scene.fleet.gpus), between(scene, scene.stalled_at, scene.ended_at), texts
            )
    yield from clean_up(scene, share=0.4)


def object_store(scene: Scene) -> Iterator[Line]:
    """The object store answers 503 to everybody."""
    last = "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the UploadPart operation (reached max retries: 10): Please reduce your request rate."
    if scene.rng.random() < 0.5:
        last = 'botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "https://objects.storage.internal/ckpt-405b"'
    for node in _many(scene):
        yield from said(
            scene,
            node,
            scene.rng.randrange(scene.fleet.gpus),
            between(scene, scene.stalled_at, scene.ended_at),
            _writer(last),
        )
    yield from clean_up(scene, share=0.4)


def names(scene: Scene) -> Iterator[Line]:
    """Name resolution fails on many nodes at once."""
    last = "socket.gaierror: [Errno -3] Temporary failure in name resolution"
    for node in _many(scene):
        yield from said(scene, node, 0, between(scene, scene.stalled_at, scene.ended_at), _writer(last))
    yield from clean_up(scene, share=0.4)


def nfs_gone(scene: Scene) -> Iterator[Line]:
    """The home server stops answering: kernels wait, ranks fail to import."""
    for node in _many(scene):
        yield from kernel(node, scene.fault_at + scene.rng.random() * 30, "nfs: server nfs02 not responding, timed out")
        texts = [
            "Traceback (most recent call last):",
            '  File "/opt/train/loop.py", line 61, in hook',
            "    with open(self.path) as file:",
            "TimeoutError: [Errno 110] Connection timed out: '/shared/train/flags.json'",
        ]
        yield from said(scene, node, 0, between(scene, scene.stalled_at, scene.ended_at), texts)


def hang(scene: Scene) -> Iterator[Line]:
    """Nothing but the watchdogs."""
    yield from clean_up(scene, share=0.4)


def hang_quiet(_: Scene) -> tuple[Line, ...]:
    """Nothing but the watchdogs, not even clean-up."""
    return ()


def hang_dumped(scene: Scene) -> Iterator[Line]:
    """The watchdogs, and the heartbeat monitors that write the flight recorder out."""
    for node in (scene.node, *scene.bystanders[:4]):
        at, gpu = scene.ended_at - 6 + scene.rng.random() * 4, scene.rng.randrange(scene.fleet.gpus)
        yield process_group(
            scene,
            node,
            gpu,
            at,
            1316,
            f"Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()={scene.rng.randint(1, 9)}",
        )
        yield process_group(scene, node, gpu, at + 0.004, 1153, "ProcessGroupNCCL preparing to dump debug info.")
    yield from clean_up(scene, share=0.3)


SIGNATURES = (
    Signature("lustre_gone", DEPENDENCY, 35, "exit", lustre_gone, gap=(20.0, 120.0)),
    Signature("object_store", DEPENDENCY, 30, "exit", object_store, gap=(0.0, 60.0)),
    Signature("names", DEPENDENCY, 20, "exit", names, gap=(0.0, 60.0)),
    Signature("nfs_gone", DEPENDENCY, 15, "exit", nfs_gone, gap=(30.0, 120.0)),
    Signature("hang", WATCHDOG, 45, "watchdog", hang, gap=(0.0, 1.0)),
    Signature("hang_quiet", WATCHDOG, 25, "watchdog", hang_quiet, gap=(0.0, 1.0)),
    Signature("hang_dumped", WATCHDOG, 30, "watchdog", hang_dumped, gap=(0.0, 1.0)),
)
