"""The right-hand side of LANES cases of one vehicle in one call; the same source as `vehicle_rhs`, on lanes.

The cases share the integer records, contact tables, laws and rails; every number of the float records is their own.
State and rates are flat arrays, lane after lane, with one row more than the model has states: after the state stands
the time of every case, after the rates its status.
"""

from railsweep.kernels.jit import plain_jit
from railsweep.kernels.lane import any_of, as_lanes
from railsweep.kernels.record import VehicleArrays
from railsweep.kernels.status import OK
from railsweep.kernels.vehicle import evaluate_vehicle


@plain_jit
def vehicle_lanes_rhs(t, y, m, out):
    """Fill `out` for every lane; 0 when all are well, else 1 (t is not read: every lane has its own in `y`)."""
    lanes = VehicleArrays(
        m.header,
        m.body_index,
        m.wheelset_index,
        m.link_index,
        m.bundle,
        m.bundle_link,
        m.team,
        m.law_index,
        m.table_grid,
        m.table,
        m.segment,
        m.irregularity_grid,
        m.irregularity,
        as_lanes(m.operation),
        as_lanes(m.body),
        as_lanes(m.wheelset),
        as_lanes(m.link),
        as_lanes(m.law),
        as_lanes(m.track),
        as_lanes(m.rail),
        as_lanes(m.place),
        as_lanes(m.motion),
        as_lanes(m.force),
        as_lanes(m.rates),
        as_lanes(m.points),
    )
    state, rates = as_lanes(y), as_lanes(out)
    last = state.size - 1
    status = evaluate_vehicle(state[last], state, lanes, rates)
    rates[last] = status
    return 1 if any_of(rates[last] != OK) else 0
