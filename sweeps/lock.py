"""One driver per store: a lock file with host, pid and a heartbeat.

A driver on this host is dead when its process is gone (its start time guards against reused numbers). One on another
host is dead when its heartbeat, a counter, has not moved while we watched for `STALE_S`: clocks are never compared.
Acquisition is serialised by flock, so two drivers that find the same stale lock cannot both take it.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from railsweep.engine.errors import InputError
from railsweep.sweeps.ledger import write_durably

BEAT_S = 2.0
STALE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a lock."""

    host: str
    pid: int
    born: str
    token: str
    beat: int
    since: str


def this_host() -> str:
    """Name of this machine and of its process-number space (containers on one machine have their own)."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()}{space and '/'}{space}"


def born(pid: int) -> str:
    """When a process started, in ticks; empty when it is gone or this system does not tell."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


def alive(holder: Holder) -> bool | None:
    """Is the holder running? None: on another host, nobody here can tell."""
    if holder.host != this_host():
        return None
    if Path("/proc/self/stat").exists():
        return born(holder.pid) == holder.born
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class StoreLock:
    """Context manager: acquire, beat in the background, release.

    Parameters
    ----------
    folder : Path
        Where the lock file lives.
    stale_s : float
        How long a heartbeat from another host may stand still.
    force : bool
        Take the lock whoever holds it.
    on_loss : callable
        Called when someone else has taken the lock away.
    """

    def __init__(
        self,
        folder: Path,
        *,
        stale_s: float = STALE_S,
        force: bool = False,
        on_loss: Callable[[], None] | None = None,
    ) -> None:
        self.path = folder / "lock.json"
        self.guard = folder / "lock.guard"
        self.stale_s, self.force, self.on_loss = stale_s, force, on_loss
        self.holder = Holder(
            host=this_host(),
            pid=os.getpid(),
            born=born(os.getpid()),
            token=uuid.uuid4().hex,
            beat=0,
            since=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> StoreLock:
        if not self._acquire(None):
            rival = read_holder(self.path)
            if rival is not None and alive(rival) is None:
                self._watch(rival)
            else:
                raise self._refusal(rival)
        self._thread = threading.Thread(target=self._beat, name="railsweep-lock", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        with self._guarded():
            present = read_holder(self.path)
            if present is not None and present.token == self.holder.token:
                self.path.unlink(missing_ok=True)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        handle = os.open(self.guard, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _acquire(self, judged_dead: Holder | None) -> bool:
        with self._guarded():
            present = read_holder(self.path)
            free = (
                present is None
                or self.force
                or alive(present) is False
                or (judged_dead is not None and (present.token, present.beat) == (judged_dead.token, judged_dead.beat))
            )
            if free:
                write_durably(self.path, json.dumps(asdict(self.holder)))
            return free

    def _watch(self, rival: Holder) -> None:
        deadline = time.monotonic() + self.stale_s
        while time.monotonic() < deadline:
            time.sleep(min(0.2, self.stale_s))
            present = read_holder(self.path)
            if present is not None and (present.token, present.beat) != (rival.token, rival.beat):
                raise self._refusal(present)
        if not self._acquire(rival):
            raise self._refusal(read_holder(self.path))

    def _refusal(self, rival: Holder | None) -> InputError:
        who = f"process {rival.pid} on {rival.host} since {rival.since}" if rival else "another process"
        return InputError(
            str(self.path.parent.parent),
            f"is being worked on by {who}",
            "one driver at a time; --take-over if it is dead",
        )

    def _beat(self) -> None:
        beat = 0
        while not self._ended.wait(BEAT_S):
            beat += 1
            try:
                with self._guarded():
                    present = read_holder(self.path)
                    if present is None or present.token != self.holder.token:
                        if self.on_loss is not None:
                            self.on_loss()
                        return
                    write_durably(self.path, json.dumps({**asdict(self.holder), "beat": beat}))
            except OSError:
                continue  # a full disk must not look like a lost lock; the next beat may succeed


def read_holder(path: Path) -> Holder | None:
    """Who holds the lock; a damaged lock file counts as none (it is replaced whole or not at all)."""
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
