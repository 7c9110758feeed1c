"""The edge of the basin of rest, against separatrices that are known in closed form."""

import json
import math

import numpy as np
import pytest
from numba import njit

from railsweep.engine import InputError, assemble
from railsweep.kernels.status import Status
from railsweep.sweeps.bifurcation.basin import KickSettings, smallest_kick, try_kick
from railsweep.sweeps.bifurcation.family import family_of_model, family_of_rhs

SETTINGS = KickSettings(
    horizon_s=120.0, window_s=30.0, sample_s=0.05, hunting=0.05, scan=5, tolerance=1e-3, rtol=1e-8, atol=1e-10
)


@njit
def bautin(t, y, params, out):
    """Normal form r' = r (beta + r^2 - r^4), turning once in 2 pi / 5 seconds."""
    r2 = y[0] * y[0] + y[1] * y[1]
    growth = params[0] + r2 - r2 * r2
    out[0] = growth * y[0] - 5.0 * y[1]
    out[1] = growth * y[1] + 5.0 * y[0]
    return 0


@njit
def runaway(t, y, params, out):
    """x' = x (x^2 - a^2): rest for abs(x) < a, and beyond it out of range."""
    out[0] = y[0] * (y[0] * y[0] - params[0] * params[0])
    return 2 if abs(y[0]) > 5.0 else 0


def family(rhs, n):
    return family_of_rhs(rhs, n, lambda value: np.array([value]))


@pytest.mark.parametrize("beta", [-0.05, -0.15, -0.22])
@pytest.mark.parametrize("angle", [0.0, 2.0])
def test_bautin_separatrix(beta, angle):
    radius = math.sqrt(0.5 * (1.0 - math.sqrt(1.0 + 4.0 * beta)))
    found = smallest_kick(family(bautin, 2), beta, [math.cos(angle), math.sin(angle)], 0.9, settings=SETTINGS)
    assert found.fate == "hunts"
    assert found.harmless < radius
    assert found.harmless == pytest.approx(radius, rel=2e-3)
    assert found.smallest == pytest.approx(radius, rel=2e-3)
    assert found.smallest - found.harmless <= 1e-3 * found.smallest
    cycle = math.sqrt(0.5 * (1.0 + math.sqrt(1.0 + 4.0 * beta)))
    largest = max(found.kicks, key=lambda k: k.size)
    assert largest.amplitude == pytest.approx(cycle, rel=1e-3)
    assert json.loads(json.dumps(found.to_dict()))["status"] == "OK"


def test_no_kick_leads_away_below_the_fold():
    found = smallest_kick(family(bautin, 2), -0.3, [1.0, 0.0], 1.2, settings=SETTINGS)
    assert found.smallest is None
    assert found.fate == "dies"
    assert found.harmless == 1.2
    assert len(found.kicks) == SETTINGS.scan


def test_unstable_rest_has_no_basin():
    found = smallest_kick(family(bautin, 2), 0.2, [1.0, 0.0], 0.5, settings=SETTINGS)
    assert found.harmless is None
    assert found.fate == "hunts"
    assert found.smallest < 1e-5


def test_a_run_that_fails_is_told_from_hunting():
    found = smallest_kick(family(runaway, 1), 0.7, [2.0], 1.0, settings=SETTINGS)
    assert found.fate == "failed"
    assert found.status == Status.DERAILED
    assert 2.0 * found.smallest == pytest.approx(0.7, rel=2e-3)
    assert np.isnan(max(found.kicks, key=lambda k: k.size).amplitude)
    assert found.to_dict()["kicks"][-1]["amplitude"] is None


def test_the_base_is_what_is_kicked():
    found = smallest_kick(family(runaway, 1), 1.0, [1.0], 1.0, base=[0.5], settings=SETTINGS)
    assert found.smallest == pytest.approx(0.5, rel=2e-3)


def test_result_does_not_depend_on_threads():
    one, two = (smallest_kick(family(bautin, 2), -0.1, [0.3, 0.4], 1.5, threads=n, settings=SETTINGS) for n in (1, 2))
    assert one == two


def test_wagon_kicked_below_and_above_its_critical_speed():
    """Conical wheels: hunting begins at 99 m/s. The wheelsets are watched; a shape is given by names."""
    wagon = family_of_model(assemble("cooperrider", speed_mps=60.0))
    settings = KickSettings(horizon_s=6.0, window_s=3.0, scan=2, rtol=1e-5, atol=1e-8)
    rest = wagon.model_at(60.0).equilibrium()
    rest[wagon.states.index("wheelset_tl.y")] += 4e-3
    assert try_kick(wagon, 60.0, rest, settings=settings).fate == "dies"
    assert try_kick(wagon, 115.0, rest, settings=settings).fate == "hunts"
    harmless = smallest_kick(wagon, 60.0, {"wheelset_tl.y": 1.0}, 4e-3, settings=settings)
    assert harmless.smallest is None
    assert [k.size for k in harmless.kicks] == [2e-3, 4e-3]
    derails = try_kick(wagon, 60.0, rest * 1e3, settings=settings)
    assert (derails.fate, derails.status) == ("failed", Status.DERAILED)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ([1.0, 0.0, 0.0], {}, "2 numbers"),
        ([0.0, 0.0], {}, "not all of them zero"),
        ({"y7": 1.0}, {}, "y7"),
        ([1.0, 0.0], {"watch": ["z"]}, "watch"),
    ],
)
def test_wrong_input_is_refused(shape, options, message):
    with pytest.raises(InputError, match=message):
        smallest_kick(family(bautin, 2), -0.1, shape, 1.0, settings=SETTINGS, **options)


def test_settings_are_strict():
    with pytest.raises(InputError, match="window_s"):
        KickSettings(window_s=40.0)
    with pytest.raises(InputError, match="scan"):
        KickSettings(scan=0)
    with pytest.raises(InputError, match="decay"):
        KickSettings(decay=2.0)
