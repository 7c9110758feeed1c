"""The warm-started critical speed against the scan over speed."""

import numpy as np
import pytest

from railsweep.engine import Track, assemble
from railsweep.engine.model import Model
from railsweep.sweeps.linear_critical_speed import LinearCriticalSpeed, ScanRange, eigenpair, running_pairs


class SampleStudy:
    """What the quantity asks a study for."""

    def __init__(self, options: ScanRange) -> None:
        self.options = options
        self.axes = ()


SCAN = ScanRange(from_mps=30.0, to_mps=140.0, step_mps=5.0, modes=3)
NAMES = ["secondary_yaw.damping", "primary_longitudinal.stiffness", "secondary_lateral.stiffness", "contact.friction"]


def quantity_of(model: Model) -> LinearCriticalSpeed:
    return LinearCriticalSpeed(SampleStudy(SCAN), model)  # type: ignore[arg-type]


@pytest.mark.parametrize("radius_m", [float("inf"), pytest.param(3000.0, marks=pytest.mark.slow)])
def test_it_is_the_lowest_crossing_of_a_scan(radius_m: float) -> None:
    curve = np.isfinite(radius_m)
    model = assemble(
        "cooperrider",
        speed_mps=60.0,
        track=Track(radius_m=radius_m, cant_mm=100.0) if curve else Track(),
        contact="s1002/uic60@1:40",
    )
    quantity, binder = quantity_of(model), model.bind(NAMES)
    nominal = np.array([model.layout.value(binder.names[i], model.buffer) for i in range(4)])
    draw, scanned = np.random.default_rng(1), 0
    for _ in range(6):
        case = binder(nominal * (1.0 + 0.1 * draw.uniform(-1.0, 1.0, 4)))
        found = quantity(case, 0).numbers
        lowest = running_pairs(case, SCAN)[0]
        assert found["critical_speed_mps"] == pytest.approx(lowest.speed_mps, rel=1e-7)
        assert found["crossing_hz"] == pytest.approx(lowest.frequency_hz, rel=1e-6)
        scanned += found["scanned"]
    assert scanned <= 1


def test_it_does_not_depend_on_the_cases_before() -> None:
    model = assemble("cooperrider", speed_mps=60.0)
    binder = model.bind(NAMES[:1])
    cases = [binder([v]) for v in (1.2e5, 1.6e5, 2.0e5)]
    forward = [quantity_of(model)(c, 0).numbers["critical_speed_mps"] for c in cases]
    shared = quantity_of(model)
    backward = [shared(c, 0).numbers["critical_speed_mps"] for c in reversed(cases)]
    assert forward == backward[::-1]


def test_a_case_without_a_crossing_says_so() -> None:
    model = assemble("cooperrider", speed_mps=60.0)
    low = LinearCriticalSpeed(
        SampleStudy(ScanRange(from_mps=30.0, to_mps=50.0, step_mps=10.0, modes=2)),  # type: ignore[arg-type]
        model,
    )
    result = low(model, 0)
    assert result.status != 0
    assert "no running mode turns unstable from 30 to 50 m/s" in result.reason


def test_an_eigenpair_is_found_from_a_rough_guess() -> None:
    draw = np.random.default_rng(3)
    matrix = draw.standard_normal((20, 20))
    values, vectors = np.linalg.eig(matrix)
    i = int(np.argmax(values.imag))
    noise = 0.02 * (draw.standard_normal(20) + 1j * draw.standard_normal(20))
    found = eigenpair(matrix, complex(values[i]) * 1.01, vectors[:, i] + noise)
    assert found is not None
    assert found[0] == pytest.approx(complex(values[i]), rel=1e-10)
    assert np.abs(matrix @ found[1] - found[0] * found[1]).max() < 1e-9
