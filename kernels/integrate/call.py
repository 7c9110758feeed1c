"""Calls from a compiled integrator into a problem, by address, so that one compiled integrator serves every problem.

Numba specialises a function on the *identity* of a jitted function it is given, and such a specialisation is never
found again in the disk cache by another process (the dispatcher's random uuid is part of the key). The integrators
therefore receive plain integers: addresses of C functions made from the problem's jitted functions. Consequences:

* an integrator is compiled once for all problems and all parameter types, and is cached;
* the entry of a problem is a small C function. It is compiled from a template whose code object is relabelled with
  the file and line of the problem's own function, so numba keeps it in that file's cache and drops it when that file
  changes. A function that is not at module level (a closure, a notebook cell) gets an entry that is not cached;
* the parameters, of any numba type, are stored once per solve in a block of memory (`pack`) and handed on as an
  address; the entry loads from it only what the right-hand side reads. The indirect call costs about 2 ns.

An entry returns 1 + status, and numba returns 0 from a C function whose body raised: so -1 here means "raised".
"""

import hashlib
import sys
import types as python_types
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.cgutils import ir  # the llvmlite that numba itself was built against
from numba.extending import intrinsic
from numba.np import arrayobj

from railsweep.kernels.jit import OPTIONS, SOURCE_STAMP, plain_jit

# Slots of the address array `calls` that every driver receives.
RHS, JACOBIAN, FACTOR, SOLVE, EVENT, OBSERVER, PARAMS, FACTOR_COMPLEX, SOLVE_COMPLEX = range(9)
CALLS_WIDTH = 9

RAISED = -1

# Part of an entry's cache name: a change in how entries are made must not meet machine code made the old way.
ENTRY_VERSION = 3

_POINTER = types.voidptr
FUNCTION_SIGNATURE = types.int64(types.float64, _POINTER, _POINTER, _POINTER, types.int64, types.int64)
FACTOR_SIGNATURE = types.int64(_POINTER, types.float64, _POINTER, _POINTER, types.int64, types.int64, types.int64)
FACTOR_COMPLEX_SIGNATURE = types.int64(
    _POINTER, types.float64, types.float64, _POINTER, _POINTER, types.int64, types.int64, types.int64
)
SOLVE_SIGNATURE = types.int64(_POINTER, _POINTER, _POINTER, types.int64, types.int64, types.int64)


@intrinsic
def _as_code(typing_context: Any, status: Any) -> Any:
    """1 + status; a function that returns None is always well."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = ir.Constant(ir.IntType(64), 1)
        if isinstance(status, types.NoneType):
            return one
        return builder.add(context.cast(builder, args[0], status, types.int64), one)

    return types.int64(status), generate


def _loader(params_type: Any) -> Any:
    @intrinsic
    def load(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.bitcast(args[0], context.get_value_type(params_type).as_pointer())
            # The block owns one reference for the whole solve; the entry is compiled without reference counting
            # and borrows it (counting would touch every array of the record at every call).
            return builder.load(pointer)

        return params_type(address), generate

    return load


@intrinsic
def _size_of(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = context.get_abi_sizeof(context.get_value_type(value))
        return ir.Constant(ir.IntType(64), size)

    return types.int64(value), generate


@intrinsic
def _store(typing_context: Any, value: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        context.nrt.incref(builder, value, args[0])
        pointer = builder.inttoptr(args[1], context.get_value_type(value).as_pointer())
        builder.store(args[0], pointer)
        return context.get_dummy_value()

    return types.none(value, address), generate


@intrinsic
def borrowed(typing_context: Any, record: Any) -> Any:
    """The same tuple, its arrays without their owners: the caller keeps them alive, and nobody counts references.

    A driver that passes its records on counts every array of them at every call (25 times a step in `drive_bdf`).
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = args[0]
        for i, kind in enumerate(record.types):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, builder.extract_value(value, i))
                array.meminfo = cgutils.get_null_value(array.meminfo.type)
                array.parent = cgutils.get_null_value(array.parent.type)
                value = builder.insert_value(value, array._getvalue(), i)
        return value

    return record(record), generate


@intrinsic
def _drop(typing_context: Any, like: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[1], context.get_value_type(like).as_pointer())
        context.nrt.decref(builder, like, builder.load(pointer))
        return context.get_dummy_value()

    return types.none(like, address), generate


def _viewer(dtype: Any, dimensions: int) -> Any:
    """Intrinsic (pointer, shape...) -> C-ordered array over foreign memory.

    Numba's own `carray` cannot be used here: it returns an array from a function, which needs reference counting.
    """
    array_type = types.Array(dtype, dimensions, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        item = context.get_data_type(dtype)
        size = context.get_abi_sizeof(item)
        shape = list(args[1:])
        strides = [context.get_constant(types.intp, size)]
        for extent in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], extent))
        array = context.make_array(array_type)(context, builder)
        arrayobj.populate_array(
            array,
            data=builder.bitcast(args[0], item.as_pointer()),
            shape=shape,
            strides=strides,
            itemsize=context.get_constant(types.intp, size),
            meminfo=None,
        )
        return array._getvalue()

    if dimensions == 1:

        @intrinsic
        def view(typing_context: Any, pointer: Any, n: Any) -> Any:
            return array_type(types.voidptr, types.intp), generate

        return view

    @intrinsic
    def view_matrix(typing_context: Any, pointer: Any, n: Any, m: Any) -> Any:
        return array_type(types.voidptr, types.intp, types.intp), generate

    return view_matrix


_vector = _viewer(types.float64, 1)
_matrix = _viewer(types.float64, 2)
_indices = _viewer(types.int64, 1)


# Templates. Their free names (function, load, ...) are bound per problem, see `_entry`; here they are only declared.
# ruff: noqa: F821
if TYPE_CHECKING:
    function: Any
    load: Any
    as_code: Any
    vector: Any
    matrix: Any
    indices: Any
    zeros: Any
    size_of: Any
    store: Any
    drop: Any


def _vector_template(t: Any, y: Any, params: Any, out: Any, n: Any, m: Any) -> Any:
    return as_code(function(t, vector(y, n), load(params), vector(out, m)))


def _matrix_template(t: Any, y: Any, params: Any, out: Any, n: Any, m: Any) -> Any:
    return as_code(function(t, vector(y, n), load(params), matrix(out, n, m)))


def _factor_template(jacobian: Any, hgamma: Any, reals: Any, wholes: Any, n: Any, n_reals: Any, n_wholes: Any) -> Any:
    return as_code(function(matrix(jacobian, n, n), hgamma, vector(reals, n_reals), indices(wholes, n_wholes)))


def _factor_complex_template(
    jacobian: Any, hgamma: Any, hdelta: Any, reals: Any, wholes: Any, n: Any, n_reals: Any, n_wholes: Any
) -> Any:
    return as_code(function(matrix(jacobian, n, n), hgamma, hdelta, vector(reals, n_reals), indices(wholes, n_wholes)))


def _solve_template(reals: Any, wholes: Any, b: Any, n: Any, n_reals: Any, n_wholes: Any) -> Any:
    return as_code(function(vector(reals, n_reals), indices(wholes, n_wholes), vector(b, n)))


def _pack_template(params: Any) -> Any:
    block = zeros(size_of(params) // 8 + 1)
    store(params, block.ctypes.data)
    return block


def _release_template(params: Any, block: Any) -> None:
    drop(params, block.ctypes.data)


def _relabelled(template: Any, function: Any, names: dict[str, Any], label: str, params_type: Any) -> Any:
    """The template as if it stood in the problem's own file, and whether it may be cached there."""
    owner = function.py_func
    code = owner.__code__
    at_module_level = getattr(sys.modules.get(owner.__module__), owner.__name__, None) is function
    made_from = f"{ENTRY_VERSION} {SOURCE_STAMP} {owner.__module__} {label} {params_type}"
    tag = hashlib.sha1(made_from.encode()).hexdigest()[:12]
    name = f"{owner.__name__}_{label}_{tag}"
    relabelled = python_types.FunctionType(
        template.__code__.replace(
            co_filename=code.co_filename, co_firstlineno=code.co_firstlineno, co_name=name, co_qualname=name
        ),
        names,
        name,
    )
    relabelled.__module__ = owner.__module__
    return relabelled, at_module_level and owner.__closure__ is None


def _compiled(decorate: Any, options: dict[str, Any], python_function: Any, cacheable: bool) -> Any:
    try:
        return decorate(**{**options, "cache": cacheable})(python_function)
    except RuntimeError:
        # No place to cache beside this file (interactive session, read-only tree without a user cache).
        return decorate(**{**options, "cache": False})(python_function)


def _entry(function: Any, template: Any, signature: Any, params_type: Any, label: str) -> Any:
    names = {
        "function": function,
        "load": _loader(params_type),
        "as_code": _as_code,
        "vector": _vector,
        "matrix": _matrix,
        "indices": _indices,
    }
    entry, cacheable = _relabelled(template, function, names, label, params_type)
    return _compiled(partial(numba.cfunc, signature), {**OPTIONS, "_nrt": False}, entry, cacheable)


class Packer(NamedTuple):
    """How the parameters of one problem reach its entries.

    ``pack(params)`` stores them in a block of memory whose address goes into `calls`; ``release(params, block)`` must
    follow. Compiled per problem, not once here: numba's index of a function names every type it was compiled for, and a
    type of one user's module must not stand in an index that everybody reads.
    """

    pack: Any
    release: Any


def packer(function: Any, params_type: Any) -> Packer:
    """`Packer` kept in the cache of the file that `function` stands in."""
    names = {"zeros": np.zeros, "size_of": _size_of, "store": _store, "drop": _drop}
    made = []
    for template, label in ((_pack_template, "pack"), (_release_template, "release")):
        python_function, cacheable = _relabelled(template, function, names, label, params_type)
        made.append(_compiled(numba.njit, OPTIONS, python_function, cacheable))
    return Packer(*made)


def function_entry(function: Any, params_type: Any) -> Any:
    """C entry of `f(t, y, params, out)` with a vector `out`: a right-hand side, event or observer function."""
    return _entry(function, _vector_template, FUNCTION_SIGNATURE, params_type, "vector")


def jacobian_entry(function: Any, params_type: Any) -> Any:
    """C entry of `jacobian(t, y, params, out)` with an (n, n) `out`."""
    return _entry(function, _matrix_template, FUNCTION_SIGNATURE, params_type, "matrix")


def factor_entry(function: Any) -> Any:
    """C entry of `factor(jacobian, hgamma, reals, wholes)`."""
    return _entry(function, _factor_template, FACTOR_SIGNATURE, types.none, "factor")


def factor_complex_entry(function: Any) -> Any:
    """C entry of `factor(jacobian, hgamma, hdelta, reals, wholes)`."""
    return _entry(function, _factor_complex_template, FACTOR_COMPLEX_SIGNATURE, types.none, "factor_complex")


def solve_entry(function: Any) -> Any:
    """C entry of `solve(reals, wholes, b)`, real or complex (b then holds real parts and imaginary parts)."""
    return _entry(function, _solve_template, SOLVE_SIGNATURE, types.none, "solve")


def _address_of(context: Any, builder: Any, array_type: Any, value: Any) -> Any:
    return builder.bitcast(context.make_array(array_type)(context, builder, value).data, ir.IntType(8).as_pointer())


@intrinsic
def _call_function(typing_context: Any, address: Any, t: Any, y: Any, params: Any, out: Any, n: Any, m: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, real, pointer = ir.IntType(64), ir.DoubleType(), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(word, [real, pointer, pointer, pointer, word, word])
        return builder.call(
            builder.inttoptr(args[0], kind.as_pointer()),
            [
                args[1],
                _address_of(context, builder, y, args[2]),
                builder.inttoptr(args[3], pointer),
                _address_of(context, builder, out, args[4]),
                args[5],
                args[6],
            ],
        )

    return types.int64(types.int64, types.float64, y, types.int64, out, types.int64, types.int64), generate


@intrinsic
def _call_factor(
    typing_context: Any, address: Any, matrix: Any, hgamma: Any, reals: Any, wholes: Any, n: Any, nr: Any, nw: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, real, pointer = ir.IntType(64), ir.DoubleType(), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(word, [pointer, real, pointer, pointer, word, word, word])
        return builder.call(
            builder.inttoptr(args[0], kind.as_pointer()),
            [
                _address_of(context, builder, matrix, args[1]),
                args[2],
                _address_of(context, builder, reals, args[3]),
                _address_of(context, builder, wholes, args[4]),
                *args[5:],
            ],
        )

    word = types.int64
    return word(word, matrix, types.float64, reals, wholes, word, word, word), generate


@intrinsic
def _call_factor_complex(
    typing_context: Any,
    address: Any,
    matrix: Any,
    hgamma: Any,
    hdelta: Any,
    reals: Any,
    wholes: Any,
    n: Any,
    nr: Any,
    nw: Any,
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, real, pointer = ir.IntType(64), ir.DoubleType(), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(word, [pointer, real, real, pointer, pointer, word, word, word])
        return builder.call(
            builder.inttoptr(args[0], kind.as_pointer()),
            [
                _address_of(context, builder, matrix, args[1]),
                args[2],
                args[3],
                _address_of(context, builder, reals, args[4]),
                _address_of(context, builder, wholes, args[5]),
                *args[6:],
            ],
        )

    word, real = types.int64, types.float64
    return word(word, matrix, real, real, reals, wholes, word, word, word), generate


@intrinsic
def _call_solve(typing_context: Any, address: Any, reals: Any, wholes: Any, b: Any, n: Any, nr: Any, nw: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(word, [pointer, pointer, pointer, word, word, word])
        return builder.call(
            builder.inttoptr(args[0], kind.as_pointer()),
            [
                _address_of(context, builder, reals, args[1]),
                _address_of(context, builder, wholes, args[2]),
                _address_of(context, builder, b, args[3]),
                *args[4:],
            ],
        )

    word = types.int64
    return word(word, reals, wholes, b, word, word, word), generate


@plain_jit
def call_function(calls: Any, slot: int, t: float, y: Any, out: Any) -> int:
    """Status of the vector function in `slot` of `calls` at (t, y); RAISED when it raised."""
    return _call_function(calls[slot], t, y, calls[PARAMS], out, y.size, out.size) - 1


@plain_jit
def call_jacobian(calls: Any, t: float, y: Any, out: Any) -> int:
    """Status of the problem's own Jacobian at (t, y), written into the (n, n) array `out`."""
    return _call_function(calls[JACOBIAN], t, y, calls[PARAMS], out, y.size, y.size) - 1


@plain_jit
def call_factor(calls: Any, matrix: Any, hgamma: float, reals: Any, wholes: Any) -> int:
    """Factorise I - hgamma*matrix into the work arrays; non-zero means singular."""
    n = matrix.shape[0]
    return _call_factor(calls[FACTOR], matrix, hgamma, reals, wholes, n, reals.size, wholes.size) - 1


@plain_jit
def call_solve(calls: Any, reals: Any, wholes: Any, b: Any) -> int:
    """Overwrite b with the solution of (I - hgamma*J) x = b."""
    return _call_solve(calls[SOLVE], reals, wholes, b, b.size, reals.size, wholes.size) - 1


@plain_jit
def call_factor_complex(calls: Any, matrix: Any, hgamma: float, hdelta: float, reals: Any, wholes: Any) -> int:
    """Factorise I - (hgamma + i hdelta)*matrix into the work arrays; non-zero means singular."""
    n = matrix.shape[0]
    return (
        _call_factor_complex(calls[FACTOR_COMPLEX], matrix, hgamma, hdelta, reals, wholes, n, reals.size, wholes.size)
        - 1
    )


@plain_jit
def call_solve_complex(calls: Any, reals: Any, wholes: Any, b: Any) -> int:
    """Overwrite b, real parts first, with the solution of (I - (hgamma + i hdelta)*J) x = b."""
    return _call_solve(calls[SOLVE_COMPLEX], reals, wholes, b, b.size, reals.size, wholes.size) - 1
