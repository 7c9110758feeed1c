"""A search over a store: which blocks to compute next, what their results were, how far the search is.

The store is the truth: candidates are written down before they are computed and results are in the ledger before they
are told, so that a search that was killed goes on from its last checkpoint, or from the beginning by being told
everything again, to the same end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railsweep.engine.errors import InputError, nearest
from railsweep.sweeps.population import checkpoint
from railsweep.sweeps.population.choice import SearchChoice
from railsweep.sweeps.population.optimiser import Solutions, State
from railsweep.sweeps.population.ranking import hypervolume
from railsweep.sweeps.population.task import HALT, record_of
from railsweep.sweeps.quantity import GOOD
from railsweep.sweeps.store import StudyStore

Array = NDArray[np.float64]

CHECKPOINT = "search.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A line of the history of a search: after so many evaluations the best value, or the hypervolume of the front."""

    evaluations: int
    best: float
    hypervolume: float


class Search:
    """Drives a search over a store; `batches` goes to `run_session`."""

    def __init__(self, store: StudyStore) -> None:
        design = store.study.design
        if not isinstance(design, SearchChoice):
            raise InputError(str(store.path), "holds no search", "a study with an [optimise] section")
        self.store, self.choice, self.optimiser = store, design, design.optimiser
        if len(store.plan.shape) != 1:
            raise InputError("axis", f"{store.plan.names} in a study that optimises", "parameters only")
        self._check_quantities()
        self.record = record_of(store)
        self.size = store.plan.block_shape[0]
        if self.size > 1 and (not hasattr(self.optimiser, "population") or self.optimiser.overlap):
            raise InputError("block_cases", f"is {self.size}", f"1 for {self.choice.method}, or with overlap")
        population = getattr(self.optimiser, "population", self.size)
        if population % self.size:
            raise InputError("block_cases", f"is {self.size}", f"a divisor of the population, {population}")
        self.state, self.told = self._resumed()

    def _check_quantities(self) -> None:
        names = [
            v.name for v in self.store.variables if v.dtype != "string" and not v.dimensions and v.name != "status"
        ]
        wanted = [o.quantity for o in self.choice.objectives] + [c.quantity for c in self.choice.constraints]
        for name in wanted:
            if name not in names:
                raise InputError("objective", f"{name!r} is not computed, {nearest(name, names)}", ", ".join(names))

    def _resumed(self) -> tuple[State, int]:
        """The state of the checkpoint when it belongs to this study, else the start (all results are told again)."""
        path = self.store.own / CHECKPOINT
        if path.exists():
            state, facts = checkpoint.load(path)
            if facts.get("study") == self.store.study.digest:
                return state, int(facts["told"])
        return self.optimiser.start(), 0

    def batches(self) -> Iterator[list[int]]:
        """Blocks to compute, until the search has ended or results are missing (a block was lost for good)."""
        self.found()
        while len(candidates := self.optimiser.ask(self.state)):
            first = self.told // self.size
            blocks = range(first, first + len(candidates) // self.size)
            for i, block in enumerate(blocks):
                self.record.write(block * self.size, candidates[i * self.size : (i + 1) * self.size])
            if self.optimiser.overlap:
                # all that are left: workers wait for the candidates that are bred meanwhile (`advance`)
                blocks = range(first, self.optimiser.evaluations)
            missing = [b for b in blocks if self.store.ledger.read(b) is None]
            if missing:
                yield missing
            before = self.told
            self.advance()
            self.write_coordinates()
            if self.told == before:
                return

    def advance(self) -> None:
        """Tell results that have come: whole generations, or with overlap one after the other."""
        while len(candidates := self.optimiser.ask(self.state)):
            count = self.size if self.optimiser.overlap else len(candidates)
            blocks = range(self.told // self.size, (self.told + count) // self.size)
            if any(self.store.ledger.read(b) is None for b in blocks):
                return
            f, v = self.results(blocks)
            self.state = self.optimiser.tell(self.state, candidates[:count], f, v)
            self.told += count
            checkpoint.save(
                self.store.own / CHECKPOINT, self.state, {"study": self.store.study.digest, "told": self.told}
            )
            if not self.optimiser.overlap:
                return
            last = self.optimiser.ask(self.state)
            for i, candidate in enumerate(last):
                self.record.write(self.told + i, candidate[None, :])

    def write_coordinates(self) -> None:
        """Values of the parameters of all candidates into the store, where any reader finds them."""
        blocks = range(-(-(self.told + len(self.optimiser.ask(self.state))) // self.size))
        points = [p for b in blocks if (p := self.record.read(b * self.size)) is not None]
        if not points:
            return
        values = self.choice.box.scaled(np.concatenate(points))
        for j, parameter in enumerate(self.choice.parameters):
            self.store.write_coordinate(parameter.name, values[:, j])

    def lost(self) -> None:
        """A block was lost: who waits for candidates that depend on it gives its own block back."""
        if self.record.folder is not None:
            (self.record.folder / HALT).touch()

    def found(self) -> None:
        """The lost block is handed out again: it may be waited for."""
        if self.record.folder is not None:
            (self.record.folder / HALT).unlink(missing_ok=True)

    def results(self, blocks: range) -> tuple[Array, Array]:
        """Objectives to be minimised and violations of finished blocks."""
        wanted = {o.quantity for o in self.choice.objectives} | {c.quantity for c in self.choice.constraints}
        found: dict[str, list[Array]] = {name: [] for name in wanted}
        for block in blocks:
            arrays = self.store.read(block)
            good = np.isin(arrays["status"], GOOD)
            for name in wanted:
                found[name].append(np.where(good, arrays[name].astype(np.float64), np.nan))
        return self.choice.minimised({name: np.concatenate(parts) for name, parts in found.items()})

    def evaluated(self) -> tuple[Array, Array, Array]:
        """Values of the parameters, objectives to be minimised and violations of all evaluations told."""
        blocks = range(self.told // self.size)
        points = [self.record.read(b * self.size) for b in blocks]
        x = (
            np.concatenate([p for p in points if p is not None])
            if len(blocks)
            else np.empty((0, self.optimiser.dimension))
        )
        f, v = self.results(blocks) if len(blocks) else (np.empty((0, len(self.choice.objectives))), np.empty(0))
        return self.choice.box.scaled(x), f, v

    def best(self) -> Solutions:
        """The best so far, with the values of the parameters."""
        found = self.optimiser.best(self.state)
        return Solutions(x=self.choice.box.scaled(found.x), f=found.f, violation=found.violation)

    def natural(self, f: Array) -> Array:
        """Objectives as the user named them."""
        return np.asarray(f * np.array([o.sign for o in self.choice.objectives]))

    def reference(self, f: Array) -> Array:
        """Reference point of the hypervolume: the user's, or a tenth of the range beyond the worst feasible values."""
        if self.choice.reference:
            return self.natural(np.array(self.choice.reference))
        low, high = f.min(axis=0), f.max(axis=0)
        return np.asarray(high + 0.1 * np.where(high > low, high - low, 1.0))

    def history(self, steps: int = 100) -> list[Step]:
        """Best value and hypervolume after more and more evaluations."""
        _, f, v = self.evaluated()
        feasible = v == 0.0
        if not feasible.any():
            return []
        reference = self.reference(f[feasible])
        found = []
        for n in np.unique(np.linspace(1, len(f), min(steps, len(f))).astype(int)):
            part = f[:n][feasible[:n]]
            if len(part):
                volume = hypervolume(part, reference) if f.shape[1] > 1 else float("nan")
                found.append(Step(evaluations=int(n), best=float(part[:, 0].min()), hypervolume=volume))
        return found

    def facts(self) -> dict[str, Any]:
        """The outcome as plain data."""
        best = self.best()
        names = [p.name for p in self.choice.parameters]
        f = self.natural(best.f)
        _, every, v = self.evaluated()
        history = self.history()
        return {
            "method": self.choice.method,
            "evaluations": self.told,
            "infeasible": int(((v > 0.0) & np.isfinite(v)).sum()),
            "failed": int(np.isinf(v).sum()),
            "hypervolume": history[-1].hypervolume if history and every.shape[1] > 1 else None,
            "solutions": [
                {
                    "parameters": dict(zip(names, map(float, best.x[i]), strict=True)),
                    "objectives": {o.quantity: float(f[i, k]) for k, o in enumerate(self.choice.objectives)},
                    "feasible": bool(best.violation[i] == 0.0),
                }
                for i in range(len(best))
            ],
        }


def block_size(choice: SearchChoice, case_seconds: float, block_seconds: float, workers: int) -> int:
    """Candidates per block: a divisor of the population, for about `block_seconds` of work, two blocks per worker."""
    optimiser = choice.optimiser
    population = getattr(optimiser, "population", 1)
    if optimiser.overlap or population == 1:
        return 1
    most = max(1, min(int(block_seconds / max(case_seconds, 1e-6)), population // (2 * max(1, workers))))
    return max(d for d in range(1, most + 1) if population % d == 0)
