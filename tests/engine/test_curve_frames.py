"""Links between bodies that stand at different places of a curve (spec 2.18.1), against exact geometry on a circle."""

import numpy as np
import pytest

from railsweep.engine import Track, assemble

AXIS = {"longitudinal": 0, "lateral": 1, "vertical": 2}


def rotation(theta):
    """Exact rotation matrix of a rotation vector."""
    angle = np.linalg.norm(theta)
    skew = np.array([[0, -theta[2], theta[1]], [theta[2], 0, -theta[0]], [-theta[1], theta[0], 0]])
    return np.eye(3) + skew * np.sinc(angle / np.pi) + 0.5 * skew @ skew * np.sinc(angle / (2 * np.pi)) ** 2


def exact_extensions(model, y, curvature):
    """Extensions of all links from positions in the horizontal plane: the track is a circle to the right."""
    state = dict(zip(model.state_names, y, strict=True))
    bodies = {b.name: b for b in model.vehicle.bodies}

    def place(name):
        body = bodies[name]
        turn = body.position_m[0] * curvature
        axes = np.array([[np.cos(turn), np.sin(turn), 0], [-np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
        origin = np.array([np.sin(turn), -(1 - np.cos(turn)), 0]) / curvature
        yaw = state[f"{name}.yaw"]
        if body.is_wheelset:  # measured from the tangent at the bogie
            yaw += (body.position_m[0] - bodies[body.parent].position_m[0]) * curvature
        theta = [state[f"{name}.roll"], state.get(f"{name}.pitch", 0.0), yaw]
        centre = origin + axes @ [0.0, state[f"{name}.y"], body.position_m[2] + state[f"{name}.z"]]
        return centre, axes @ rotation(np.array(theta))

    found = []
    for link in model.vehicle.links:
        (c1, r1), (c2, r2) = place(link.lower), place(link.upper)
        reach = r1.T @ (c2 + r2 @ link.upper_point_m - c1 - r1 @ link.lower_point_m)
        rest = (
            np.array(bodies[link.upper].position_m)
            + link.upper_point_m
            - np.array(bodies[link.lower].position_m)
            - link.lower_point_m
        )
        axis = AXIS[link.type]
        found.append((-1.0 if rest[axis] < 0 else 1.0) * (reach[axis] - rest[axis]))
    return np.array(found)


@pytest.mark.parametrize("hand", ["right", "left"])
@pytest.mark.parametrize("radius", [600.0, 3000.0])
def test_extensions_are_those_of_a_circle(radius, hand):
    """Equal up to the square of the angles between the frames (u1/R = 12.5 mrad at 600 m) times a lever of 1.65 m."""
    model = assemble("cooperrider", speed_mps=20.0, track=Track(radius_m=radius, hand=hand))
    rng = np.random.default_rng(3)
    y = np.zeros(model.n)
    for i, name in enumerate(model.state_names):
        dof = name.rpartition(".")[2]
        y[i] = rng.standard_normal() * {"y": 1e-3, "z": 1e-3, "roll": 1e-4, "pitch": 1e-4, "yaw": 1e-4}.get(dof, 0.0)
    curvature = model.track.curvature_1pm
    ours = np.array([view.extension for view in model.outputs(0.0, y).links])
    exact = exact_extensions(model, y, curvature)
    assert np.abs(exact).max() > 7.5**2 / radius / 4  # the versine of half the bogie distance is in it
    assert np.abs(ours - exact).max() < (7.5 / radius) ** 2 * 1.65 + 1e-6


def test_without_local_frames_the_curve_is_not_seen():
    """The published formulation measures links as if all frames were one (A7)."""
    curved = assemble("cooperrider", speed_mps=20.0, track=Track(radius_m=600.0), formulation="dytsi")
    assert all(view.extension == 0.0 for view in curved.outputs(0.0, np.zeros(curved.n)).links)
