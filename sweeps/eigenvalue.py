"""The quantity "spectrum": eigenvalues at the equilibrium of every case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from railsweep.engine.document import Section
from railsweep.kernels.status import Status
from railsweep.sweeps.quantity import CaseResult, Dimension, ReadFile, Variable, no_options

if TYPE_CHECKING:
    from railsweep.engine.model import Model
    from railsweep.sweeps.study import Study

LOWEST_CONTACT_HZ = 50.0  # wheel-rail contact modes lie above, running and suspension modes below


class Eigenvalues:
    """The [observe] modes with the largest real parts, and the least damped of the running modes."""

    @classmethod
    def read_options(cls, section: Section, read_file: ReadFile) -> None:
        """None: [observe] says everything."""
        no_options(section)

    def __init__(self, study: Study, model: Model) -> None:
        from railsweep.engine.crossing import NEUTRAL_RATIO

        self.modes, self.neutral_ratio = study.observation.modes, NEUTRAL_RATIO
        mode = (Dimension(name="mode", length=self.modes),)
        self.variables = (
            Variable(name="eigenvalue_real", unit="1/s", title="real parts, largest first", dimensions=mode),
            Variable(name="eigenvalue_imag", unit="rad/s", title="imaginary parts, >= 0", dimensions=mode),
            Variable(name="damping_ratio", unit="1", title="least damping ratio below 50 Hz, neutral modes left out"),
            Variable(name="frequency_hz", unit="Hz", title="frequency of the least damped mode"),
            Variable(name="unstable_modes", unit="1", title="modes with growing amplitude", dtype="int64"),
        )

    def __call__(self, model: Model, seed: int) -> CaseResult:
        """Eigenvalues of one case."""
        # without eigenvectors, which nothing here needs and which take as long as all the rest
        eigenvalues = np.linalg.eigvals(model.jacobian(0.0, model.equilibrium())).astype(np.complex128)
        if not np.isfinite(eigenvalues).all():
            return CaseResult(status=int(Status.NOT_FINITE), reason="an eigenvalue is not finite")
        kept = eigenvalues[eigenvalues.imag >= 0.0]
        kept = kept[np.lexsort((kept.imag, -kept.real))]
        first = np.full(self.modes, np.nan + 0j)
        first[: min(self.modes, kept.size)] = kept[: self.modes]
        size = np.abs(kept)
        damped = (np.abs(kept.real) > self.neutral_ratio * size) & (size >= 1e-6)
        running = damped & (kept.imag > 0.0) & (kept.imag < 2.0 * np.pi * LOWEST_CONTACT_HZ)
        numbers: dict[str, Any] = {
            "eigenvalue_real": first.real,
            "eigenvalue_imag": first.imag,
            "unstable_modes": int((damped & (kept.real > 0.0)).sum()),
        }
        if running.any():
            ratio = -kept.real[running] / size[running]
            worst = int(np.argmin(ratio))
            numbers["damping_ratio"] = float(ratio[worst])
            numbers["frequency_hz"] = float(kept.imag[running][worst] / (2.0 * np.pi))
        return CaseResult(status=int(Status.OK), numbers=numbers)
