"""The quantity "assessment": one time history per case and its figures of running behaviour, comfort and wear.

The figures are those of `railsweep.engine.assessment`, over [solver] window_s at the end of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from railsweep.engine.document import Section
from railsweep.sweeps.quantity import ReadFile, Variable
from railsweep.sweeps.time_history import WORK, TimeHistory

if TYPE_CHECKING:
    from railsweep.engine.model import Model
    from railsweep.engine.simulation import Trajectory
    from railsweep.sweeps.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessmentOptions:
    """[assessment]: names of figures; empty: all that the vehicle has."""

    figures: tuple[str, ...] = ()


class AssessedRun(TimeHistory):
    """Figures of a time history."""

    @classmethod
    def read_options(cls, section: Section, read_file: ReadFile) -> AssessmentOptions:  # type: ignore[override]
        """The key `figures`."""
        from railsweep.engine.assessment import FIGURES

        return AssessmentOptions(figures=tuple(section.words("figures", [], choices=tuple(FIGURES))))

    def __init__(self, study: Study, model: Model) -> None:
        from railsweep.engine.assessment import FIGURES, assessment_channels, places_of

        super().__init__(study, model)
        self.recorded = assessment_channels(model)
        frames = bool(places_of(model).frames)
        self.names = study.options.figures or tuple(n for n, f in FIGURES.items() if frames or f.needs != "frames")
        self.variables = (
            *(Variable(name=name, unit=FIGURES[name].unit, title=FIGURES[name].title) for name in self.names),
            *WORK,
        )

    def figures(self, run: Trajectory, model: Model) -> dict[str, Any]:
        """The figures of a run that reached its end."""
        from railsweep.engine.assessment import assess

        return dict(assess(run, model, self.names)) if run.success else {}
