"""Solve any initial-value problem y' = f(t, y) with the compiled integrators.

`solve` is the contract: any numba-jitted ``rhs(t, y, params, out)``, any numba type as `params`. The integrators are
compiled once for all problems (see `railsweep.kernels.integrate.call` for how a problem is reached and cached).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from railsweep.engine.linear_solver import LinearSolver
from railsweep.engine.solver_plan import Events, Options, checked_state, make_plan
from railsweep.engine.solver_run import Solution, run_plan


def solve(
    rhs: Any,
    t_span: Sequence[float],
    y0: npt.ArrayLike,
    params: Any = None,
    method: str = "auto",
    rtol: float = 1e-6,
    atol: float | npt.ArrayLike = 1e-9,
    jacobian: Any = None,
    t_eval: npt.ArrayLike | None = None,
    *,
    first_step: float | None = None,
    max_step: float = np.inf,
    min_step: float = 0.0,
    max_steps: int = 100_000_000,
    max_rhs: int = 0,
    max_order: int = 5,
    norm: str = "scaled",
    controller: str | None = None,
    newton: str = "modern",
    newton_kappa: float | None = None,
    fixed_step: float | None = None,
    fixed_order: int = 0,
    events: Events | None = None,
    stops: npt.ArrayLike = (),
    linear: LinearSolver | None = None,
    sparsity: npt.ArrayLike | None = None,
    observer: Any = None,
    accumulator: npt.ArrayLike | None = None,
    store: bool = True,
    time_limit: float | None = None,
    history: npt.ArrayLike | None = None,
    progress: Callable[[float], object] | None = None,
) -> Solution:
    """Integrate y' = f(t, y) from t_span[0] to t_span[1].

    Parameters
    ----------
    rhs : jitted ``rhs(t, y, params, out)``
        Writes f(t, y) into ``out``; returns None, or a status (0 = well). A non-zero status or a non-finite value
        fails the stage: the step is halved, and the run stops with that status when this does not help.
    t_span : (float, float)
        Start and end; the end may lie before the start.
    y0 : (n,) array_like
        Initial state.
    params : any type numba knows
        Handed to `rhs` untouched.
    method : str
        A name in `railsweep.kernels.integrate.METHODS`, or ``"auto"`` (an explicit and an implicit one in turn).
    rtol, atol : float, float or (n,) array_like
        The error of a step is kept below atol + rtol*|y| in the chosen norm.
    jacobian : jitted ``jacobian(t, y, params, out)``, optional
        Writes df/dy into the (n, n) array ``out``; differences otherwise (grouped when `sparsity` is given).
    t_eval : array_like, optional
        Times at which to sample, by dense output of the method. Default: every accepted step.
    first_step, max_step, min_step : float, optional
        Step sizes. max_steps, max_rhs : int. Limits on attempted steps and on evaluations (0: none).
    max_order : int
        Highest order of `bdf`, highest column of the extrapolation methods.
    norm : {"scaled", "maximum", "published"}
    controller : {"elementary", "pi", "h211b", "predictive", "published_elementary", "published_pi"}, optional
        Of the Runge-Kutta methods; `bdf`, `bsimp` and `seulex` choose order and step together and refuse one.
    newton : {"modern", "published"}
        Rules of Newton's iteration in the ESDIRK methods; see spec 3.5 for the published ones.
    fixed_step, fixed_order, history
        Constant step without error control, constant order, and a Nordsieck history to start `bdf` from: for
        convergence studies.
    events : Events, optional
    stops : array_like
        Points no step may cross; the run restarts there (ends of transitions, breaks of an input).
    linear : LinearSolver, optional
        Structure of the Newton matrix, see `body_tree_solver`; dense by default.
    observer : jitted ``observer(t, y, params, accumulator)``, optional
        Called at every sample. With ``store=False`` the samples themselves are not kept.
    time_limit : float, optional
        Wall-clock seconds.
    progress : callable, optional
        ``progress(t)`` with the time reached, called from a thread of its own ten times a second while the run goes on.

    Returns
    -------
    Solution
    """
    start = checked_state("y0", y0)
    options = Options(
        method=method,
        rtol=rtol,
        atol=atol,
        jacobian=jacobian,
        t_eval=t_eval,
        first_step=first_step,
        max_step=max_step,
        min_step=min_step,
        max_steps=max_steps,
        max_rhs=max_rhs,
        max_order=max_order,
        norm=norm,
        controller=controller,
        newton=newton,
        newton_kappa=newton_kappa,
        fixed_step=fixed_step,
        fixed_order=fixed_order,
        events=events,
        stops=stops,
        linear=linear,
        sparsity=sparsity,
        observer=observer,
        accumulator=accumulator,
        store=store,
        time_limit=time_limit,
        history=history,
    )
    return run_plan(make_plan(rhs, t_span, start.size, numba.typeof(params), options), start, params, progress)
