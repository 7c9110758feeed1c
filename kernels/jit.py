"""The one way kernels are compiled.

`jit` caches to disk, releases the GIL, uses C division semantics (a zero divisor gives inf or nan, which the
integrators treat as a failed stage) and lets the compiler fuse a*b + c. It never reorders sums, so a kernel gives
the same bits on every executor, thread count and run.

`plain_jit` compiles without numba's reference counting, which otherwise touches every array of a record at every call
(measured on the wagon: 8.5 us per right-hand side with it, 1.0 us without). Such a function cannot create arrays.
`inline_jit` is the same for the bodies of hot loops, inlined into their callers; `exact_jit` forbids the fused a*b + c,
for arithmetic that computes rounding errors.

Numba looks only at the file of the outermost function when it decides whether machine code on disk is still good, and a
kernel contains the code of many files. The stamp of every cache is therefore that of all kernel sources.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


INLINE_OPTIONS: dict[str, Any] = {
    **{name: value for name, value in OPTIONS.items() if name != "cache"},
    "_nrt": False,
    "forceinline": True,
}


def _source_stamp() -> str:
    """Digest of name, size and time of change of every kernel source."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("*.py")):
        facts = path.stat()
        digest.update(f"{path.relative_to(folder)} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


SOURCE_STAMP = _source_stamp()


def _compiled(function: Callable[..., Any], **more: Any) -> Any:
    dispatcher = numba.njit(**{**OPTIONS, **more})(function)
    cache_file = getattr(dispatcher._cache, "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = SOURCE_STAMP
    return dispatcher


def jit(function: Callable[..., Any]) -> Any:
    """Compile `function` on first call; the machine code is kept on disk for later processes."""
    return _compiled(function)


def plain_jit(function: Callable[..., Any]) -> Any:
    """Like `jit`, for kernels that create no arrays: no reference counting."""
    return _compiled(function, _nrt=False)


def inline_jit(function: Callable[..., Any]) -> Any:
    """Like `plain_jit`, and the compiler is told to inline the function into its callers."""
    return _compiled(function, _nrt=False, forceinline=True)


def exact_jit(function: Callable[..., Any]) -> Any:
    """Like `plain_jit`, every operation rounded on its own."""
    return _compiled(function, _nrt=False, fastmath=False)
