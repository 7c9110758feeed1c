"""Time integration: one compiled driver per family of methods, generic over the problem it is given by address.

call            how a compiled driver reaches a problem (and how both are cached)
layout          slots of settings and counters, records
norm, controller, newton, linear, linear_complex, evaluate, output, vector    shared parts
explicit, esdirk, radau, bdf, extrapolation    drivers
explicit_pair, dop853, esdirk_tableau, radau_tableau    their coefficients
registry        every method by name
"""

from railsweep.kernels.integrate.registry import AUTO, METHODS, Method

__all__ = ["AUTO", "METHODS", "Method"]
