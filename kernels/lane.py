"""Lanes: LANES numbers side by side in one vector register, one per case, so that one kernel call serves LANES cases.

`lane` is a numba type over an LLVM vector. Arithmetic, comparison (a mask) and indexing of arrays of lanes compile to
vector instructions, one per operation whatever the lanes hold: no lane ever sees its neighbours, so a case gives the
same bits in any group. Kernels are written once and compiled for numbers or for lanes; where a case would branch on its
own numbers they say `choose`, `any_of`, `root`, which mean the same for a plain number.

The lanes may also hold alike things of one vehicle (wheelsets on the same contact tables, links of one kind): a kernel
that is given a tuple of LANES row numbers instead of one reads its records with `at` and serves all of them.

What has no vector form (tables of laws, transitions, heavy creep laws) runs lane after lane: `lane_item`, `with_item`
and `lane_view`, the array of one lane, feed the plain kernels. Those are `exact_jit`: which products the compiler fuses
with a sum would depend on what surrounds them, and a case must get the same bits alone and in a lane.
"""

import operator
from typing import Any

from numba import types
from numba.core import cgutils, errors
from numba.core.cgutils import ir
from numba.core.datamodel import PrimitiveModel, register_default
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, lower_cast, overload
from numba.np import arrayobj

from railsweep.kernels.jit import INLINE_OPTIONS, exact_jit

LANES = 4

_WORD = ir.IntType(64)
_REAL = ir.DoubleType()
_VECTOR = ir.VectorType(_REAL, LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_CONTRACT = ("contract",)


class LaneType(types.Type):  # type: ignore[misc]
    """LANES float64 numbers."""

    def __init__(self) -> None:
        super().__init__(name=f"lane{LANES}")

    def can_convert_from(self, typing_context: Any, other: Any) -> Any:
        return Conversion.safe if isinstance(other, types.Float | types.Integer | types.Boolean) else None

    def unify(self, typing_context: Any, other: Any) -> Any:
        return self if isinstance(other, types.Float | types.Integer) else None


class MaskType(types.Type):  # type: ignore[misc]
    """LANES truth values."""

    def __init__(self) -> None:
        super().__init__(name=f"lane_mask{LANES}")


lane = LaneType()
mask = MaskType()


@register_default(LaneType)
class LaneModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


@register_default(MaskType)
class MaskModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _MASK)


def _spread(builder: Any, number: Any) -> Any:
    """The same number in every lane."""
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), zeros)


@lower_cast(types.Float, LaneType)
@lower_cast(types.Integer, LaneType)
def _number_to_lane(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return _spread(builder, context.cast(builder, value, source, types.float64))


def _binary(function: Any, emit: Any, result: Any) -> None:
    @infer_global(function)
    class _Typing(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and lane in args:
                other = args[1] if args[0] == lane else args[0]
                if other == lane or isinstance(other, types.Float | types.Integer):
                    return signature(result, lane, lane)
            return None

    @lower_builtin(function, LaneType, LaneType)
    def _lowering(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return emit(builder, *args)


def _arithmetic(name: str) -> Any:
    return lambda builder, a, b: getattr(builder, name)(a, b, flags=_CONTRACT)


def _comparison(symbol: str) -> Any:
    compare = "fcmp_unordered" if symbol == "!=" else "fcmp_ordered"
    return lambda builder, a, b: getattr(builder, compare)(symbol, a, b)


for _function, _name in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
    (operator.iadd, "fadd"),
    (operator.isub, "fsub"),
    (operator.imul, "fmul"),
):
    _binary(_function, _arithmetic(_name), lane)
for _function, _symbol in (
    (operator.lt, "<"),
    (operator.le, "<="),
    (operator.gt, ">"),
    (operator.ge, ">="),
    (operator.eq, "=="),
    (operator.ne, "!="),
):
    _binary(_function, _comparison(_symbol), mask)


def _of_masks(function: Any, name: str) -> None:
    @infer_global(function)
    class _Typing(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            return signature(mask, mask, mask) if args == (mask, mask) else None

    @lower_builtin(function, MaskType, MaskType)
    def _lowering(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, name)(*args)


_of_masks(operator.and_, "and_")
_of_masks(operator.or_, "or_")


@infer_global(operator.neg)
class _Negation(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(lane, lane) if args == (lane,) else None


@lower_builtin(operator.neg, LaneType)
def _negated(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fneg(args[0])


def _llvm_call(builder: Any, name: str, kind: Any, args: Any) -> Any:
    width = "f64" if kind == types.float64 else f"v{LANES}f64"
    value = _REAL if kind == types.float64 else _VECTOR
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(value, [value] * len(args)), f"llvm.{name}.{width}"
    )
    return builder.call(function, args)


def _elementwise(name: str, count: int) -> Any:
    """Intrinsic for an LLVM function of `count` arguments, on numbers or lanes."""

    def generate_for(kinds: Any) -> Any:
        kind = lane if lane in kinds else types.float64

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            cast = [context.cast(builder, arg, have, kind) for arg, have in zip(args, sig.args, strict=True)]
            return _llvm_call(builder, name, kind, cast)

        return kind(*kinds), generate

    if count == 1:

        @intrinsic
        def one(typing_context: Any, x: Any) -> Any:
            return generate_for((x,))

        return one

    if count == 2:

        @intrinsic
        def two(typing_context: Any, x: Any, y: Any) -> Any:
            return generate_for((x, y))

        return two

    @intrinsic
    def three(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
        return generate_for((x, y, z))

    return three


root = _elementwise("sqrt", 1)
size = _elementwise("fabs", 1)
sine = _elementwise("sin", 1)
cosine = _elementwise("cos", 1)
power = _elementwise("pow", 2)
# x * y + z, rounded once where the processor can: for sums whose products must not be fused now so, now otherwise
product_sum = _elementwise("fmuladd", 3)


@intrinsic
def choose(typing_context: Any, condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where the condition holds, else `no`; both are evaluated."""
    lanes = condition == mask or lane in (yes, no)
    kind = lane if lanes else typing_context.unify_types(yes, no)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        one = context.cast(builder, args[1], sig.args[1], kind)
        other = context.cast(builder, args[2], sig.args[2], kind)
        return builder.select(args[0], one, other)

    return kind(condition, yes, no), generate


@intrinsic
def any_of(typing_context: Any, condition: Any) -> Any:
    """Does the condition hold in any lane?"""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if condition != mask:
            return args[0]
        bits = builder.bitcast(args[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(condition), generate


@intrinsic
def all_lanes(typing_context: Any, number: Any) -> Any:
    """A number spread over the lanes."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.cast(builder, args[0], number, lane)

    return lane(number), generate


@intrinsic
def lane_item(typing_context: Any, value: Any, which: Any) -> Any:
    """The number in one lane."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_element(args[0], args[1])

    return types.float64(lane, types.int64), generate


@intrinsic
def with_item(typing_context: Any, value: Any, which: Any, number: Any) -> Any:
    """The lanes with the number in one of them replaced."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.insert_element(args[0], args[2], args[1])

    return lane(lane, types.int64, types.float64), generate


def _lane_array(dimensions: int) -> Any:
    # not aligned: the memory comes from numpy, which promises 16 bytes
    return types.Array(lane, dimensions, "C", aligned=False)


@intrinsic
def as_lanes(typing_context: Any, array: Any) -> Any:
    """A contiguous float array (..., LANES), or a flat one lane after lane, as an array of lanes (the same memory).

    What does not fill the lanes at the end of a flat one is left out. An array of lanes is itself.
    """
    if array.dtype == lane:
        return array(array), lambda context, builder, sig, args: args[0]
    if array.layout != "C":
        raise errors.NumbaTypeError("only a contiguous array can be read as lanes")
    flat = array.ndim == 1
    kind = _lane_array(1 if flat else array.ndim - 1)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = context.make_array(array)(context, builder, args[0])
        shape = cgutils.unpack_tuple(builder, source.shape)
        strides = cgutils.unpack_tuple(builder, source.strides)
        if flat:
            shape = [builder.sdiv(shape[0], ir.Constant(_WORD, LANES))]
            strides = [ir.Constant(_WORD, 8 * LANES)]
        else:
            shape, strides = shape[:-1], strides[:-1]
        result = context.make_array(kind)(context, builder)
        arrayobj.populate_array(
            result,
            data=builder.bitcast(source.data, _VECTOR.as_pointer()),
            shape=shape,
            strides=strides,
            itemsize=ir.Constant(_WORD, 8 * LANES),
            meminfo=None,
        )
        return result._getvalue()

    return kind(array), generate


@intrinsic
def lane_view(typing_context: Any, array: Any, which: Any) -> Any:
    """The numbers of one lane of an array of lanes, as a strided float array (the same memory)."""
    kind = types.Array(types.float64, array.ndim, "A")

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = context.make_array(array)(context, builder, args[0])
        first = builder.bitcast(source.data, _REAL.as_pointer())
        result = context.make_array(kind)(context, builder)
        arrayobj.populate_array(
            result,
            data=builder.gep(first, [args[1]]),
            shape=cgutils.unpack_tuple(builder, source.shape),
            strides=cgutils.unpack_tuple(builder, source.strides),
            itemsize=ir.Constant(_WORD, 8),
            meminfo=None,
        )
        return result._getvalue()

    return kind(array, types.int64), generate


def is_rows(kind: Any) -> bool:
    """Is this the type of a tuple of LANES row numbers?"""
    return isinstance(kind, types.UniTuple) and kind.count == LANES and isinstance(kind.dtype, types.Integer)


def _place_in(context: Any, builder: Any, kind: Any, array: Any, row: Any, column: Any) -> Any:
    """The number in one row and column of an array, both >= 0."""
    view = context.make_array(kind)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, view.shape)
    strides = cgutils.unpack_tuple(builder, view.strides)
    place = cgutils.get_item_pointer2(context, builder, view.data, shape, strides, kind.layout, [row, column])
    return arrayobj.load_item(context, builder, kind, place)


@intrinsic
def at(typing_context: Any, array: Any, row: Any, column: Any) -> Any:
    """`array[row, column]`; with a tuple of LANES rows the numbers of all of them: lanes, or a tuple of integers.

    So a kernel that reads its records by this serves one thing, or LANES alike things of one vehicle side by side.
    """
    rows = is_rows(row)
    kind = array.dtype
    if rows:
        kind = lane if array.dtype == types.float64 else types.UniTuple(array.dtype, LANES)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        c = context.cast(builder, args[2], column, types.intp)
        if not rows:
            return _place_in(context, builder, array, args[0], context.cast(builder, args[1], row, types.intp), c)
        numbers = [
            _place_in(context, builder, array, args[0], context.cast(builder, r, row.dtype, types.intp), c)
            for r in cgutils.unpack_tuple(builder, args[1])
        ]
        if kind != lane:
            return context.make_tuple(builder, kind, numbers)
        value = ir.Constant(_VECTOR, ir.Undefined)
        for i, number in enumerate(numbers):
            value = builder.insert_element(value, number, ir.Constant(ir.IntType(32), i))
        return value

    return kind(array, row, column), generate


@intrinsic
def mates(typing_context: Any, array: Any, row: Any) -> Any:
    """The first LANES integers of a row, as a tuple."""
    kind = types.UniTuple(array.dtype, LANES)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        r = context.cast(builder, args[1], row, types.intp)
        columns = [ir.Constant(_WORD, i) for i in range(LANES)]
        return context.make_tuple(builder, kind, [_place_in(context, builder, array, args[0], r, c) for c in columns])

    return kind(array, row), generate


@intrinsic
def leader(typing_context: Any, row: Any) -> Any:
    """A row itself, or the first of a tuple of rows, which stands for all in what they have in common."""
    rows = is_rows(row)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_value(args[0], 0) if rows else args[0]

    return (row.dtype if rows else row)(row), generate


COLUMN_GROUP = 4  # columns of a table that one vector load reads
GROUPS = 3  # such groups that `cubic_columns` evaluates


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Columns of a 4 x 4 block given as four row vectors."""

    def shuffled(a: Any, b: Any, order: list[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), 4), order))

    a, b, c, d = rows
    ab_low, ab_high = shuffled(a, b, [0, 4, 2, 6]), shuffled(a, b, [1, 5, 3, 7])
    cd_low, cd_high = shuffled(c, d, [0, 4, 2, 6]), shuffled(c, d, [1, 5, 3, 7])
    return [
        shuffled(ab_low, cd_low, [0, 1, 4, 5]),
        shuffled(ab_high, cd_high, [0, 1, 4, 5]),
        shuffled(ab_low, cd_low, [2, 3, 6, 7]),
        shuffled(ab_high, cd_high, [2, 3, 6, 7]),
    ]


@intrinsic
def cubic_columns(typing_context: Any, table: Any, first: Any, last: Any, x: Any) -> Any:
    """The first twelve columns of a table of cubics (interval, power, column) at x >= 0, measured in intervals.

    The table reaches from interval `first` to `last` (as numbers of its own: interval 0 stands at `first`); beyond
    its end the last cubic goes on. A tuple of numbers, or of lanes each of which reads its own interval: four columns
    are one vector load, and blocks of four lanes are transposed.
    """
    kind = types.UniTuple(x, GROUPS * COLUMN_GROUP)
    four = ir.VectorType(_REAL, COLUMN_GROUP)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(table)(context, builder, args[0])
        strides = cgutils.unpack_tuple(builder, array.strides)
        base = builder.ptrtoint(array.data, _WORD)
        flags = {"flags": _CONTRACT}

        def row_of(number: Any) -> list[Any]:
            whole = builder.fptosi(number, _WORD)
            whole = builder.select(builder.icmp_signed("<", whole, args[2]), whole, args[2])
            part = builder.fsub(number, builder.sitofp(whole, _REAL), **flags)
            start = builder.add(base, builder.mul(builder.add(whole, args[1]), strides[0]))
            first_lane = builder.insert_element(ir.Constant(four, ir.Undefined), part, ir.Constant(ir.IntType(32), 0))
            t = builder.shuffle_vector(
                first_lane, ir.Constant(four, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), 4), [0] * 4)
            )
            values = []
            for group in range(GROUPS):
                value = None
                for step in (3, 2, 1, 0):
                    place = builder.add(start, builder.mul(strides[1], ir.Constant(_WORD, step)))
                    place = builder.add(place, ir.Constant(_WORD, 8 * COLUMN_GROUP * group))
                    here = builder.load(builder.inttoptr(place, four.as_pointer()), align=8)
                    value = here if value is None else builder.fadd(here, builder.fmul(t, value, **flags), **flags)
                values.append(value)
            return values

        result = []
        if x == types.float64:
            for value in row_of(args[3]):
                result += [builder.extract_element(value, ir.Constant(ir.IntType(32), i)) for i in range(COLUMN_GROUP)]
        else:
            rows = [row_of(builder.extract_element(args[3], ir.Constant(ir.IntType(32), i))) for i in range(LANES)]
            for group in range(GROUPS):
                blocks = [_transposed(builder, [row[group] for row in rows[i : i + 4]]) for i in range(0, LANES, 4)]
                if len(blocks) == 1:
                    result += blocks[0]
                else:
                    wide = ir.Constant(ir.VectorType(ir.IntType(32), 8), list(range(8)))
                    result += [builder.shuffle_vector(a, b, wide) for a, b in zip(*blocks, strict=True)]
        return context.make_tuple(builder, kind, result)

    return kind(table, types.int64, types.int64, x), generate


@intrinsic(prefer_literal=True)
def column_product(
    typing_context: Any, numbers: Any, matrix: Any, vector: Any, low: Any, high: Any, columns: Any
) -> Any:
    """(low, high) plus A v; columns of A, two lanes each, stand one after the other from `matrix` on in `numbers`.

    v are the numbers from `vector` on; both places are >= 0. Even and odd columns are summed apart: one sum alone would
    wait for each of its additions.
    """
    count = columns.literal_value

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(numbers)(context, builder, args[0])
        a, v = builder.gep(array.data, [args[1]]), builder.gep(array.data, [args[2]])
        flags = {"flags": _CONTRACT}
        sums = [args[3], args[4], None, None]
        for c in range(count):
            number = _spread(builder, builder.load(builder.gep(v, [ir.Constant(_WORD, c)])))
            for half in range(2):
                place = builder.gep(a, [ir.Constant(_WORD, (2 * c + half) * LANES)])
                value = builder.load(builder.bitcast(place, _VECTOR.as_pointer()), align=8)
                term = builder.fmul(value, number, **flags)
                which = 2 * (c % 2) + half
                sums[which] = term if sums[which] is None else builder.fadd(sums[which], term, **flags)
        result = [s if o is None else builder.fadd(s, o, **flags) for s, o in zip(sums[:2], sums[2:], strict=True)]
        return context.make_tuple(builder, types.UniTuple(lane, 2), result)

    return types.UniTuple(lane, 2)(numbers, matrix, vector, low, high, columns), generate


def by_kind(stub: Any) -> Any:
    """Decorator of a function from argument types to the implementation of `stub`, for numbers or for lanes."""
    return overload(stub, jit_options=INLINE_OPTIONS)


def table_column(table: Any, column: Any, first: Any, last: Any, x: Any) -> Any:
    """One column of a table of cubics, see `cubic_columns`."""
    raise NotImplementedError("for kernels only")


@exact_jit
def _plain_column(table: Any, column: Any, first: Any, last: Any, x: Any) -> Any:
    i = min(int(x), last)
    t = x - i
    i += first
    return table[i, 0, column] + t * (table[i, 1, column] + t * (table[i, 2, column] + t * table[i, 3, column]))


def _number_from_table(table: Any, column: Any, first: Any, last: Any, x: Any) -> Any:
    return _plain_column(table, column, first, last, x)


def _lanes_from_table(table: Any, column: Any, first: Any, last: Any, x: Any) -> Any:
    found = all_lanes(0.0)
    for i in range(LANES):
        found = with_item(found, i, _plain_column(table, column, first, last, lane_item(x, i)))
    return found


@by_kind(table_column)
def _table_column(table: Any, column: Any, first: Any, last: Any, x: Any) -> Any:
    return _lanes_from_table if x == lane else _number_from_table


__all__ = [
    "LANES",
    "all_lanes",
    "any_of",
    "as_lanes",
    "at",
    "by_kind",
    "choose",
    "column_product",
    "cosine",
    "cubic_columns",
    "is_rows",
    "lane",
    "lane_item",
    "lane_view",
    "leader",
    "mask",
    "mates",
    "power",
    "root",
    "sine",
    "size",
    "table_column",
    "with_item",
]
