"""Plans: blocks partition the cases, identities do not depend on blocks, ten million cases cost nothing."""

import hashlib
import math
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sample_study import write_study

from railsweep.sweeps import load_study, make_plan
from railsweep.sweeps.plan import Plan, block_shape, cases_per_block
from railsweep.sweeps.study import Axis, canonical

SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)


def plan_of(shape: tuple[int, ...], cases: int) -> Plan:
    axes = tuple(Axis(parameter=f"p{i}", name=f"p{i}", start=0.0, stop=1.0, count=n) for i, n in enumerate(shape))
    return Plan(
        axes=axes,
        names=tuple(a.name for a in axes),
        shape=shape,
        block_shape=block_shape(shape, cases),
        base_digest="0" * 64,
    )


@given(SHAPES, st.integers(1, 400))
def test_blocks_partition_the_cases_and_each_is_contiguous(shape: tuple[int, ...], cases: int) -> None:
    plan = plan_of(shape, cases)
    assert math.prod(plan.block_shape) <= cases
    seen: list[int] = []
    for block in range(plan.blocks):
        numbers = [int(np.ravel_multi_index(p, shape)) for p in plan.indices(block)]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert all(plan.block_of(plan.position(n)) == block for n in numbers)
        seen += numbers
    assert sorted(seen) == list(range(plan.cases))


def test_identity_and_seed_do_not_depend_on_blocks_or_place(tmp_path: Path) -> None:
    study = load_study(write_study(tmp_path))
    one, other = make_plan(study, 1), make_plan(study, 7)
    identities = {one.identity(one.values(one.position(c))) for c in range(one.cases)}
    assert len(identities) == one.cases
    assert identities == {other.identity(other.values(other.position(c))) for c in range(other.cases)}
    seeds = {one.seed(one.values(one.position(c))) for c in range(one.cases)}
    assert len(seeds) == one.cases
    # The same case within a larger study is the same case.
    wider = replace(study, axes=(replace(study.axes[0], values=(2000.0, *study.axes[0].values)), *study.axes[1:]))
    grown = make_plan(wider, 1)
    assert one.identity(one.values((0, 1, 2))) == grown.identity(grown.values((1, 1, 2)))


@given(st.tuples(*[st.floats(allow_nan=False) for _ in range(3)]))
def test_identity_is_the_hash_of_the_canonical_json_of_the_values(values: tuple[float, ...]) -> None:
    plan = replace(
        plan_of((2, 2, 2), 1), axes=tuple(Axis(parameter=p, name=p, values=(0.0, 1.0)) for p in ("b.x", "a", "b"))
    )
    own = canonical(dict(zip(plan.parameters, values, strict=True)))
    assert plan.identity(values) == hashlib.sha256(f"{plan.base_digest}\n{own}".encode()).hexdigest()


def test_zipped_axes_share_a_dimension(tmp_path: Path) -> None:
    plan = make_plan(load_study(write_study(tmp_path)), 4)
    assert plan.names == ("radius_m", "load", "speed_mps")
    assert plan.values((0, 1, 0)) == (math.inf, 60.0, 0.3, 20.0)


def test_ten_million_cases_are_planned_without_writing_them_out() -> None:
    tracemalloc.start()
    plan = plan_of((100, 1000, 100), 1000)
    assert plan.cases == 10**7
    block = plan.block_of(plan.position(9_999_999))
    assert block == plan.blocks - 1
    assert len({plan.identity(plan.values(p)) for p in plan.indices(block)}) == 1000
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


def test_block_size_follows_the_cost() -> None:
    assert cases_per_block(10**6, 1e-3, 2.0, 4) == 2000
    assert cases_per_block(1000, 0.05, 2.0, 2) == 40
    assert cases_per_block(16, 0.5, 2.0, 2) == 2  # enough blocks for every worker
    assert cases_per_block(8, 60.0, 2.0, 2) == 1
    assert cases_per_block(100, 1e-5, 2.0, 8) == 100  # too little work to share
