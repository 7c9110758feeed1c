"""A quantity for tests: natural frequencies at speeds of its own, so it has options, a file and a coordinate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from railsweep.engine.document import Section
from railsweep.engine.model import Model
from railsweep.kernels.status import Status
from railsweep.sweeps.quantity import CaseResult, Dimension, ReadFile, Variable, refuse_axis
from railsweep.sweeps.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class RampOptions:
    """Speeds of the ramp and the name of a file of weights."""

    speeds_mps: tuple[float, ...]
    weights: str
    misspell: bool


class Ramp:
    """Weighted speed times friction along a ramp: no physics, but every number is known in closed form."""

    @classmethod
    def read_options(cls, section: Section, read_file: ReadFile) -> RampOptions:
        """speeds_mps, weights (a file of numbers), misspell."""
        weights = section.text("weights")
        read_file(section.where("weights"), weights)
        return RampOptions(
            speeds_mps=tuple(section.numbers("speeds_mps")), weights=weights, misspell=section.flag("misspell", False)
        )

    def __init__(self, study: Study, model: Model) -> None:
        refuse_axis(study, "speed_mps", "an axis other than the speed, which the ramp varies")
        self.options: RampOptions = study.options
        self.weights = [float(word) for word in study.files[self.options.weights].split()]
        speeds = self.options.speeds_mps
        ramp = Dimension(name="ramp_speed", length=len(speeds), values=speeds, unit="m/s", title="speed of the ramp")
        weight = Dimension(name="weight", length=len(self.weights))
        self.variables = (
            Variable(name="product", unit="m/s", title="weight x speed x friction", dimensions=(ramp, weight)),
            Variable(name="word", unit="", title="a word", dtype="string"),
        )

    def __call__(self, model: Model, seed: int) -> CaseResult:
        """One product per speed and weight."""
        friction = model.parameters["contact.friction"]
        numbers: dict[str, Any] = {
            "product": friction * np.outer(self.options.speeds_mps, self.weights),
            "word": f"friction {friction}",
        }
        return CaseResult(status=int(Status.OK), numbers={"prodct": 1.0} if self.options.misspell else numbers)


RAMP = """
name = "ramp"
quantity = "ramp"
[vehicle]
name = "cooperrider"
[ramp]
speeds_mps = [30.0, 20.0, 10.0]
weights = "weights.txt"
[[axis]]
parameter = "contact.friction"
name = "friction"
values = [0.1, 0.2, 0.3, 0.4]
[executor]
kind = "serial"
[output]
block_cases = 3
"""


class Hang:
    """Friction, except that one case never answers: compiled code in an endless loop, which no signal interrupts."""

    @classmethod
    def read_options(cls, section: Section, read_file: ReadFile) -> None:
        """None."""

    def __init__(self, study: Study, model: Model) -> None:
        self.variables = (Variable(name="seen", unit="1", title="friction"),)

    def __call__(self, model: Model, seed: int) -> CaseResult:
        """Hang at 0.3."""
        friction = model.parameters["contact.friction"]
        if friction == 0.3:
            endless(1.0)
        return CaseResult(status=int(Status.OK), numbers={"seen": friction})


class HangTogether(Hang):
    """The same for batches."""

    def batch(self, models: Sequence[Model], seeds: Sequence[int]) -> list[CaseResult]:
        """Hangs if any of them does."""
        return [self(model, seed) for model, seed in zip(models, seeds, strict=True)]


@numba.njit(nogil=True)
def endless(x: float) -> float:
    """Turns until the process ends."""
    while x > 0.0:
        x = 2.0 - x if x < 1.5 else 1.0
    return x


HANG = """
name = "hang"
quantity = "hang"
[vehicle]
name = "cooperrider"
[solver]
time_limit_s = 0.2
[[axis]]
parameter = "contact.friction"
name = "friction"
values = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
[output]
block_cases = 2
"""

# In a sitecustomize.py, so that every process of a run knows the quantity and is not patient for long.
REGISTER = """
import sys
sys.path.append({folder!r})
from railsweep.sweeps import quantity, watchdog
quantity.QUANTITIES["hang"] = "sample_quantity:Hang"
quantity.QUANTITIES["hang_together"] = "sample_quantity:HangTogether"
watchdog.SLACK_S = 4.0
"""
