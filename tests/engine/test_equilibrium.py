"""Equilibria in tight curves: flange contact, the balance of the whole wagon, overturning."""

import numpy as np
import pytest
from sample_vehicle import mirror

from railsweep.engine import Track, assemble
from railsweep.engine.model import ModelError
from railsweep.kernels import record as slot
from railsweep.kernels.status import Status

PROFILES = "s1002/uic60@1:40,gauge=1438"


def wagon(radius_m: float, cant_mm: float, speed_mps: float, **track):
    return assemble(
        "cooperrider",
        contact=PROFILES,
        track=Track(radius_m=radius_m, cant_mm=cant_mm, **track),
        speed_mps=speed_mps,
    )


@pytest.mark.parametrize(
    ("radius_m", "cant_mm", "speed_mps"), [(400.0, 80.0, 32.0), (500.0, 0.0, 26.0), (800.0, 80.0, 44.0)]
)
def test_the_wagon_rests_on_its_flange(radius_m, cant_mm, speed_mps):
    """Places that steps in curvature alone do not reach: the equilibrium folds where a wheel meets its flange."""
    left = wagon(radius_m, cant_mm, speed_mps)
    y = left.equilibrium()
    assert np.abs(left.rhs(0.0, y)).max() < 1e-8
    assert y[left.index("wheelset_ll.y")] > 6e-3
    right = wagon(-radius_m, cant_mm, speed_mps)
    order, sign = mirror(left)
    np.testing.assert_allclose(right.equilibrium(), sign * y[order], rtol=0.0, atol=1e-7)


def test_the_rails_carry_the_wagon_round_the_curve():
    """Sums over all wheels: lateral forces give the acceleration of the masses, vertical ones their weight."""
    radius, cant_mm, speed = 500.0, 50.0, 26.0
    model = wagon(radius, cant_mm, speed)
    outputs = model.outputs(0.0, model.equilibrium())
    cant = float(model.arrays.operation[slot.CANT])
    mass = float(sum(1.0 / model.arrays.body[:, slot.INV_MASS]))
    gravity = float(model.arrays.operation[slot.GRAVITY])
    push = speed**2 / radius * np.cos(cant) - gravity * np.sin(cant)
    press = gravity * np.cos(cant) + speed**2 / radius * np.sin(cant)
    sideways = sum(force if wheel.endswith("left") else -force for wheel, force in outputs.y_n.items())
    assert abs(sideways) == pytest.approx(mass * push, rel=0.01)
    assert sum(outputs.q_n.values()) == pytest.approx(mass * press, rel=0.01)


def test_overturning_is_told_from_a_failure_to_converge():
    with pytest.raises(ModelError, match="overturns") as none:
        wagon(300.0, 0.0, 60.0).equilibrium()
    assert none.value.status is Status.DERAILED
    # the moment balance by hand: 54 t, car body and bogies at their heights, on the outer rails
    masses = np.array([44388.0, 2918.9, 2918.9, 1022.0, 1022.0, 1022.0, 1022.0])
    heights = np.array([2.0596, 0.5012, 0.5012, 0.425, 0.425, 0.425, 0.425])
    limit = 9.81 * 0.83 * masses.sum() / (masses @ heights)
    for share, text in ((0.99, "converge|leaves"), (1.01, "overturns")):
        speed = np.sqrt(share * limit * 600.0)
        with pytest.raises(ModelError, match=text):
            wagon(600.0, 0.0, float(speed)).equilibrium()
