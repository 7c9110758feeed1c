"""A state machine over {run, crash, resume, damage, repair, read}; the model is a dict of the finished blocks."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sample_study import SPECTRUM, bits, computed

from railsweep.cluster.serial import SerialExecutor
from railsweep.sweeps import open_store, run_session
from railsweep.sweeps.block import task_of
from railsweep.sweeps.repair import repair

BLOCKS = 4
_reference: dict[str, Any] = {}


def reference() -> dict[str, Any]:
    """A finished store, an empty one to copy, and the arrays of every block; made once."""
    if not _reference:
        folder = Path(tempfile.mkdtemp(prefix="railsweep-machine-"))
        store = computed(folder, SPECTRUM)
        assert store.plan.blocks == BLOCKS
        empty = folder / "empty.zarr"
        shutil.copytree(store.path, empty)
        for block in range(BLOCKS):
            open_store(empty).ledger.path(block).unlink()
            for variable in store.variables:
                chunk = store.plan.coordinates(block)
                open_store(empty).chunk_file(variable, store.arrays[variable.name], chunk).unlink(missing_ok=True)
        _reference.update(
            empty=empty, bits=bits(store.path), blocks=[store.read(b) for b in range(BLOCKS)], folder=folder
        )
    return _reference


class StoreMachine(RuleBasedStateMachine):
    """Any history of runs, crashes and damage leaves finished blocks right and everything else pending."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="railsweep-machine-"))
        shutil.copytree(reference()["empty"], self.folder / "store.zarr")
        self.store = open_store(self.folder / "store.zarr")
        self.model: dict[int, bool] = {}  # finished block -> is it whole?

    @rule(block=st.integers(0, BLOCKS - 1))
    def run_a_block(self, block: int) -> None:
        report = task_of(self.store)(block)
        assert report.fresh == (block not in self.model)
        self.model.setdefault(block, True)

    @rule(block=st.integers(0, BLOCKS - 1), variables=st.integers(0, 6))
    def crash_while_writing(self, block: int, variables: int) -> None:
        """What a killed writer leaves: some chunks, a temp file, no entry."""
        if block not in self.model:
            region = self.store.plan.region(block)
            for variable in self.store.variables[:variables]:
                values = reference()["blocks"][block][variable.name]
                self.store.arrays[variable.name][region] = values
        (self.store.path / "status" / f"c.{variables}.partial").write_bytes(b"torn")
        (self.store.ledger.folder / f"{block}.json.{variables}.partial").write_text("{")

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def damage_a_chunk(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(sorted(self.model)))
        status = self.store.variables[0]
        path = self.store.chunk_file(status, self.store.arrays["status"], self.store.plan.coordinates(block))
        path.write_bytes(data.draw(st.sampled_from([b"", b"alien", path.read_bytes()[:-2]])))
        self.model[block] = False

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def tear_an_entry(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(sorted(self.model)))
        path = self.store.ledger.path(block)
        path.write_bytes(path.read_bytes()[: data.draw(st.integers(0, 40))])
        del self.model[block]

    @rule()
    def resume(self) -> None:
        progress = run_session(self.store, SerialExecutor())
        assert progress.outcome == "finished"
        for block in range(BLOCKS):
            self.model.setdefault(block, True)

    @rule()
    def repair(self) -> None:
        found = repair(self.store)
        assert sorted(found.blocks) == sorted(b for b, whole in self.model.items() if not whole)
        self.model = {b: whole for b, whole in self.model.items() if whole}

    @invariant()
    def reads_are_right(self) -> None:
        if not hasattr(self, "store"):
            return
        fresh = open_store(self.store.path)
        assert [e["block"] for e in fresh.ledger.finished()] == sorted(self.model)
        for block, whole in self.model.items():
            if whole:
                arrays = fresh.read(block)
                for name, values in reference()["blocks"][block].items():
                    if values.dtype.kind in "OTU":
                        assert arrays[name].tolist() == values.tolist()
                    else:
                        assert np.array_equal(arrays[name], values, equal_nan=True)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.repair()
            self.resume()
            assert bits(self.store.path) == reference()["bits"]
            shutil.rmtree(self.folder, ignore_errors=True)


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=4, stateful_step_count=10, deadline=None)


@pytest.mark.slow
def test_many_more_histories() -> None:
    run_state_machine_as_test(StoreMachine, settings=settings(max_examples=60, stateful_step_count=20, deadline=None))
