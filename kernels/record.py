"""The packed vehicle: which number stands in which slot.

A vehicle on a track is a handful of flat arrays (`VehicleArrays`). All floating-point records are views into one
buffer, so that a parameter sample is one copy and a few writes. The engine packs; every kernel reads; the slot names
below are the only description of the layout.

Frames: x forward, y left, z up; roll, pitch, yaw by the right-hand rule. Each body is described in the track frame at
its own place along the track (origin on the centre line at top of rail, z normal to the canted track plane).
"""

from typing import Any, NamedTuple

# Working coordinates of one body, one row of `motion`: displacement and rate alternate.
Y, Y_DOT, Z, Z_DOT, ROLL, ROLL_DOT, PITCH, PITCH_DOT, YAW, YAW_DOT = range(10)
MOTION_WIDTH = 10

# Force on one body about its centre of mass, one row of `force` (axes of its own track frame).
FX, FY, FZ, MX, MY, MZ = range(6)
FORCE_WIDTH = 6

# --- header: counts and switches --------------------------------------------------------------------------------
STATES = 0
CREEP_LAW = 1  # see creep.py
PRECESSION = 2
VECTOR_MECHANICS = 3  # 1: links act along axes that turn with the bodies, reaction couples included
ROLL_MOMENT = 4  # 1: contact roll moment with the lever arm of the rolling radius (A2)
GEOMETRIC_LIFT = 5  # 1: penetration from the lift and roll of the rigid wheelset (A3, A4)
LOCAL_FRAMES = 6  # 1: every body feels the curvature and cant of its own place (A7 and transitions)
TRACK_KIND = 7
FASTSIM_STRIPS = 8
FASTSIM_CELLS = 9
IRREGULARITY = 10  # 1: the rails leave the smooth track (see irregularity.py)
HEADER_WIDTH = 11

PRECESSION_OFF, PRECESSION_PRINTED, PRECESSION_RIGHT = range(3)
TRACK_STRAIGHT, TRACK_CONSTANT, TRACK_VARYING = range(3)

# --- operation: numbers of the whole run ------------------------------------------------------------------------
SPEED, FRICTION, SHEAR_MODULUS, GRAVITY, CURVATURE, CANT, START = range(7)
# factors on the irregularities: on all channels and on each; the seed of the realisation is a label, no kernel reads it
SCALE_ALL, SCALE_VERTICAL, SCALE_LATERAL, SCALE_CROSS_LEVEL, SCALE_GAUGE, IRREGULARITY_SEED = range(7, 13)
NORMAL_DAMPING = 13  # of a contact point, along its normal [N s/m]
OPERATION_WIDTH = 14

# --- body -------------------------------------------------------------------------------------------------------
# body_index: ten state numbers (-1: that coordinate is fixed at zero), then the wheelset number or -1
BODY_WHEELSET = 10
BODY_INDEX_WIDTH = 11
(
    INV_MASS,
    INV_INERTIA_ROLL,
    INV_INERTIA_PITCH,
    INV_INERTIA_YAW,
    MASS,
    INERTIA_ROLL,
    INERTIA_PITCH,
    INERTIA_YAW,
    ARC,  # place of the body along the track [m]
    YAW_LEVER,  # own place minus the place whose tangent yaw is measured from [m]
    HEIGHT,  # of the centre of mass over top of rail [m]
) = range(11)
BODY_WIDTH = 11

# --- wheelset ---------------------------------------------------------------------------------------------------
# wheelset_index: body, spin state, then first table and number of tables (contact points) left and right
WHEELSET_BODY, WHEELSET_SPIN, LEFT_FIRST, LEFT_COUNT, RIGHT_FIRST, RIGHT_COUNT = range(6)
WHEELSET_INDEX_WIDTH = 6
ROLLING_RADIUS, HALF_SPACING = range(2)
WHEELSET_WIDTH = 2

# rail: where the rails are under one wheelset relative to the smooth track, and the rates of that [m, rad, m/s, rad/s].
# All zero on perfect track.
RAIL_Y, RAIL_Y_DOT, RAIL_Z, RAIL_Z_DOT, RAIL_ROLL, RAIL_ROLL_DOT, RAIL_GAUGE, RAIL_GAUGE_DOT = range(8)
RAIL_WIDTH = 8

# --- link -------------------------------------------------------------------------------------------------------
(
    LINK_KIND,
    LINK_AXIS,
    LINK_LOWER,
    LINK_UPPER,
    SPRING_LAW,
    DAMPER_LAW,
    INTERNAL_KIND,
    INTERNAL_STATE,  # number of the first internal state
    LINK_PRELOADED,  # 1: carries its share of the weight in the nominal position
) = range(9)
LINK_INDEX_WIDTH = 9
AXIAL, VECTOR, RADIAL, TORSION = range(4)  # link kinds
LINEAR_LAW = -1  # otherwise the number of a law
INTERNAL_NONE, MAXWELL, NISHIMURA, BERG = range(4)
(
    LOWER_X,
    LOWER_Y,
    LOWER_Z,
    UPPER_X,
    UPPER_Y,
    UPPER_Z,
    REST_X,  # vector from the lower to the upper point in the nominal position
    REST_Y,
    REST_Z,
    REST_LENGTH,
    SIGN,  # +1 or -1: makes extension positive along the axis
    STIFFNESS,
    DAMPING,
    PRELOAD,  # force in the nominal position, positive = tension [N]
    OFFSET,  # extension at which a tabulated spring law carries the preload [m]
    SERIES_STIFFNESS,
    SERIES_DAMPING,
    RESERVOIR_STIFFNESS,
    AIR_MASS,
    DAMPING_EXPONENT,
    FRICTION_FORCE,
    FRICTION_LENGTH,
) = range(22)
LINK_WIDTH = 22

# bundle: links that run side by side in lanes. The links in row first + j of `bundle_link`, j < links, are of one kind,
# and all links of a lane join the same two bodies. Idle lanes repeat the last one in use.
BUNDLE_LANES, BUNDLE_FIRST, BUNDLE_LINKS = range(3)
BUNDLE_WIDTH = 3

# --- law --------------------------------------------------------------------------------------------------------
# law_index: kind, first segment, number of segments, what happens outside the table
LAW_KIND, LAW_FIRST, LAW_SEGMENTS, LAW_OUTSIDE = range(4)
LAW_INDEX_WIDTH = 4
TABLE_LAW, GAP_LAW, COULOMB_LAW = range(3)
OUTSIDE_STOP, OUTSIDE_EXTRAPOLATE = range(2)
# law: two numbers for the closed-form kinds and two scales for tables
LAW_A, LAW_B, LAW_X_SCALE, LAW_Y_SCALE = range(4)
LAW_WIDTH = 4
# segment: left end, right end, then value = c0 + c1 d + c2 d^2 + c3 d^3 with d = x - left end
SEGMENT_LEFT, SEGMENT_RIGHT, SEGMENT_C0, SEGMENT_C1, SEGMENT_C2, SEGMENT_C3 = range(6)
SEGMENT_WIDTH = 6

# --- contact table ----------------------------------------------------------------------------------------------
GRID_START, GRID_INV_STEP, GRID_INTERVALS, GRID_FIRST = range(4)
GRID_WIDTH = 4
(
    SIN_ANGLE,
    COS_ANGLE,
    HERTZ,  # N = HERTZ q^1.5 [N m^-1.5]
    PENETRATION,  # on the path of the rigid wheelset [m]
    LIFT,  # of the rigid wheelset [m]
    PATH_ROLL,  # of the rigid wheelset, positive when this wheel rises [rad]
    LEVER,  # lateral distance of the contact point from the wheelset centre [m]
    RADIUS,  # rolling radius at the contact point [m]
    CREEP_11,  # a b C11 / q [m], likewise 22; (a b)^1.5 C23 / q^1.5 [m^1.5]
    CREEP_22,
    CREEP_23,
    AXIS_A,  # semi-axis along rolling over sqrt(q) [m^0.5]
    AXIS_B,  # lateral semi-axis over sqrt(q) [m^0.5]
) = range(13)
TABLE_COLUMNS = 13

# --- track ------------------------------------------------------------------------------------------------------
TRACK_FROM, TRACK_LENGTH, TRACK_SHAPE, CURVATURE_0, CURVATURE_1, CANT_0, CANT_1 = range(7)
TRACK_WIDTH = 7
SHAPE_CONSTANT, SHAPE_CLOTHOID, SHAPE_BLOSS, SHAPE_COSINE = range(4)

# irregularity_grid; `origin` is the place on the track where the irregularities begin
(
    IRREGULARITY_INV_STEP,
    IRREGULARITY_INTERVALS,
    IRREGULARITY_PERIODIC,
    IRREGULARITY_FADE,
    IRREGULARITY_ORIGIN,
) = range(5)
IRREGULARITY_GRID_WIDTH = 5

# place: curvature, cant and their rates in time at one body, filled at the start of every evaluation
PLACE_CURVATURE, PLACE_CURVATURE_DOT, PLACE_CANT, PLACE_CANT_DOT, PLACE_CANT_DOT_DOT = range(5)
PLACE_WIDTH = 5


class VehicleArrays(NamedTuple):
    """A vehicle on a track, packed. Integer arrays are shared by all samples; float arrays are views of one buffer."""

    header: Any
    body_index: Any
    wheelset_index: Any
    link_index: Any
    bundle: Any
    bundle_link: Any  # (row, lane)
    team: Any  # wheelsets on the same contact tables side by side (team, lane), then the number of lanes in use
    law_index: Any
    table_grid: Any  # shared: not part of the buffer
    table: Any  # shared: (interval, power, column)
    segment: Any  # shared
    irregularity_grid: Any  # shared
    irregularity: Any  # shared: (interval, power, channel)
    operation: Any
    body: Any
    wheelset: Any
    link: Any
    law: Any
    track: Any
    # work space, meaningless between calls
    rail: Any
    place: Any
    motion: Any
    force: Any
    rates: Any  # two vectors of the length of the state
    points: Any  # contact point reports of one wheelset
