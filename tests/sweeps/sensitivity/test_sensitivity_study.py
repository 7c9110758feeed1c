"""Studies with a [sensitivity] section: samples through plan, executor and store; failures; the verb."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

from railsweep.app import cli
from railsweep.cluster.serial import SerialExecutor
from railsweep.engine.errors import InputError
from railsweep.sweeps import load_study, open_or_create, open_store, run_session
from railsweep.sweeps.sensitivity.analysis import Survey
from railsweep.sweeps.sensitivity.choice import SensitivityChoice
from railsweep.sweeps.sensitivity.estimator import SobolIndices, sobol_indices
from railsweep.sweeps.sensitivity.expansion import fit_expansion

# Damping at 60 m/s over yaw damping and friction; curves tighter than some 2 km derail the conical wheels.
STUDY = """
name = "survey"
quantity = "spectrum"
[vehicle]
name = "cooperrider"
[operation]
speed_mps = 60.0
[observe]
modes = 1
[sensitivity]
samples = 32
replicates = 8
seed = 3
quantities = ["damping_ratio"]
{options}
[[parameter]]
name = "secondary_yaw.damping"
relative = 0.2
[[parameter]]
name = "primary_longitudinal.stiffness"
label = "guide"
kind = "normal"
relative = 0.05
{more}
[executor]
kind = "serial"
[output]
block_cases = 9
"""
CURVE = """
[[parameter]]
name = "track.curvature_1pm"
kind = "triangular"
low = 0.0
mode = 0.0
high = 2e-3
"""


def written(folder: Path, options: str = "", more: str = "") -> Path:
    path = folder / "survey.toml"
    path.write_text(STUDY.format(options=options, more=more))
    return path


def computed(path: Path) -> Any:
    study = load_study(path)
    store, _ = open_or_create(study, path.parent, path.parent / study.output.store, 1)
    assert run_session(store, SerialExecutor()).outcome == "finished"
    return open_store(store.path)


def test_samples_go_through_the_store_and_come_back_as_rows(tmp_path: Path) -> None:
    store = computed(written(tmp_path))
    survey = Survey(store)
    assert store.plan.names == ("sample",)
    assert store.plan.cases == 32 * 4
    with xarray.open_zarr(store.path) as dataset:
        values = survey.choice.values(survey.design.points(0, 128))
        assert np.array_equal(dataset["secondary_yaw_damping"].values, values[:, 0])
        assert np.array_equal(dataset["guide"].values, values[:, 1])
        assert dataset["damping_ratio"].dims == ("sample",)
        assert np.array_equal([store.plan.values((i,)) for i in (0, 57, 127)], values[[0, 57, 127]])
        direct = sobol_indices(
            dataset["damping_ratio"].values.reshape(32, 4), groups=2, replicates=8, interval="replicates"
        )
    (outcome,) = survey.outcomes()
    assert isinstance(outcome.result, SobolIndices)
    assert np.array_equal(outcome.result.total.value, direct.total.value)
    assert np.array_equal(outcome.result.first.low, direct.first.low)


def test_other_axes_multiply_the_samples(tmp_path: Path) -> None:
    axis = '[[axis]]\nparameter = "contact.friction"\nname = "friction"\nvalues = [0.1, 0.3]\n'
    store = computed(written(tmp_path, more=axis))
    assert store.plan.names == ("friction", "sample")
    outcomes = Survey(store).outcomes(trace=False)
    assert [o.place for o in outcomes] == [{"friction": 0.1}, {"friction": 0.3}]


def test_analysis_is_no_part_of_the_identity_but_samples_are(tmp_path: Path) -> None:
    plain = load_study(written(tmp_path)).digest
    assert load_study(written(tmp_path, 'estimator = "jansen"\nfailures = "drop"\nconfidence = 0.9')).digest == plain
    assert load_study(written(tmp_path, "second_order = true")).digest != plain
    wider = STUDY.replace("relative = 0.2", "relative = 0.3").format(options="", more="")
    (tmp_path / "survey.toml").write_text(wider)
    assert load_study(tmp_path / "survey.toml").digest != plain


def test_derailing_samples_are_reported_and_policies_do_what_they_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, more=CURVE)
    assert cli.main(["sensitivity", str(path)]) == 2
    message = capsys.readouterr().err
    assert "rows have no value" in message
    assert 'failures = "drop"' in message
    store = open_store(tmp_path / "survey.zarr")
    status = np.asarray(store.arrays["status"][:])
    failed = int((status != 0).sum())
    assert 0 < failed < len(status)
    assert {str(r) for r in store.arrays["reason"][:][status != 0]} != {""}
    rows = (status.reshape(32, 5) != 0).any(axis=1)
    # the same store, another policy: nothing is computed again
    written(tmp_path, 'failures = "drop"\ninterval = "asymptotic"', CURVE)
    assert cli.main(["sensitivity", str(path), "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["session"]["computed"] == 0
    (dropped,) = facts["outcomes"]
    assert dropped["failed_cases"] == failed
    assert dropped["dropped_rows"] == int(rows.sum())
    assert dropped["rows"] == 32 - int(rows.sum())
    written(tmp_path, 'failures = "fill"\nfill = "least"', CURVE)
    assert cli.main(["sensitivity", str(path), "--json"]) == 1
    (filled,) = json.loads(capsys.readouterr().out)["outcomes"]
    good = np.where(status == 0, store.arrays["damping_ratio"][:], np.nan)
    assert filled["filled_with"] == np.nanmin(good)
    assert filled["rows"] == 32


@pytest.mark.parametrize("method", ["morris", "expansion"])
def test_other_methods_and_their_pictures(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "survey.toml"
    text = STUDY.replace("replicates = 8\n", f'method = "{method}"\n').format(options="", more="")
    path.write_text(text)
    assert cli.main(["sensitivity", str(path), "--json", "--plot", str(tmp_path / "p.png")]) == 0
    (outcome,) = json.loads(capsys.readouterr().out)["outcomes"]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    if method == "morris":
        assert outcome["trajectories"] == 32
        assert set(outcome["effects"]) == {"secondary_yaw_damping", "guide"}
    else:
        assert 0.0 <= outcome["cv_error"] < 1.0
        assert 0.9 < sum(f["value"] for f in outcome["first"].values()) <= 1.0 + 1e-9


@pytest.mark.parametrize("method", ["sobol", "morris"])
def test_the_quantity_over_every_parameter(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = "".join(
        f'[[parameter]]\nname = "{name}"\nlabel = "{label}"\nrelative = 0.1\n{group}'
        for name, label, group in (
            ("primary_lateral.stiffness", "side", ""),
            ("primary_vertical.stiffness", "spring", 'group = "vertical"\n'),
            ("secondary_vertical.damping", "damper", 'group = "vertical"\n'),
            ("contact.friction", "friction", ""),
        )
    )
    path = tmp_path / "survey.toml"
    text = STUDY if method == "sobol" else STUDY.replace("replicates = 8\n", 'method = "morris"\n')
    text = text.replace('["damping_ratio"]', '["damping_ratio", "frequency_hz"]')
    path.write_text(text.format(options="", more=more))
    scatter, picture = tmp_path / "s.svg", tmp_path / "p.svg"
    assert cli.main(["sensitivity", str(path), "--scatter", str(scatter), "--plot", str(picture)]) == 0
    drawn = scatter.read_text()  # texts stand in comments
    for name in ("secondary_yaw_damping", "guide", "side", "spring", "damper", "friction"):
        assert drawn.count(f"<!-- {name} -->") == 2
    for title in ("damping_ratio", "frequency_hz"):
        assert drawn.count(f"<!-- {title} -->") == 1
    assert picture.read_text().count("<!-- damper -->") == 0  # one of a group, and the strongest only
    assert cli.main(["sensitivity", str(path), "--no-run", "--scatter", "s.txt"]) == 2
    assert "--scatter" in capsys.readouterr().err


def test_an_expansion_through_the_cases_of_a_sobol_design(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "expansion = true\nfolds = 4")
    assert cli.main(["sensitivity", str(path), "--json", "--plot", str(tmp_path / "p.png")]) == 0
    (outcome,) = json.loads(capsys.readouterr().out)["outcomes"]
    second = outcome["expansion"]
    assert 0.0 < second["cv_error"] < 0.05
    for name, one in second["total"].items():
        direct = outcome["total"][name]
        assert max(one["low"], direct["low"]) <= min(one["high"], direct["high"])
    assert cli.main(["sensitivity", str(path), "--no-run"]) == 0
    assert "on the right: polynomial chaos" in capsys.readouterr().out


def test_rows_of_a_design_stay_together_in_a_fold() -> None:
    # noise that the cases of a row share: whoever sees some of them knows the others
    width, rng = 4, np.random.default_rng(5)
    u = np.repeat(rng.random((40, 6)), width, axis=0)
    y = np.repeat(rng.standard_normal(40), width)
    torn = fit_expansion(("uniform",) * 6, u, y, degree=2, folds=5)
    whole = fit_expansion(("uniform",) * 6, u, y, degree=2, folds=5, row_cases=width)
    assert torn.cv_error < 0.5
    assert whole.cv_error > 0.9


def test_a_study_stops_when_its_indices_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "survey.toml"
    text = STUDY.replace("samples = 32", "samples = 2000").replace("block_cases = 9", "block_cases = 64")
    path.write_text(text.format(options='tolerance = 0.5\ninterval = "asymptotic"', more=""))
    assert cli.main(["sensitivity", str(path), "--json", "--plot", str(tmp_path / "p.svg")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["complete"]
    assert facts["rows"] == 64  # the first look
    assert facts["session"]["done"] < 2000
    limits = facts["outcomes"][0]["total"]["guide"]
    assert limits["high"] - limits["low"] <= 1.0


@pytest.mark.parametrize(
    ("options", "more", "word"),
    [
        ("sample = 3", "", "sample"),
        ('interval = "guess"', "", "interval"),
        ("", '[[parameter]]\nname = "secondary_yaw.damping"\nlabel = "b"\nrelative = 0.1', "one axis per parameter"),
        ("", '[[parameter]]\nname = "primary_lateral.damping"\nrelative = 0.1', "nominal value is 0"),
        ("", '[[parameter]]\nname = "primary_lateral.dmping"\nrelative = 0.1', "not a parameter"),
        ("", '[[parameter]]\nname = "contact.friction"\nlow = 0.1', "high"),
        ('quantities = ["damping"]', "", "quantities"),
    ],
)
def test_wrong_sections_are_refused_by_name(options: str, more: str, word: str, tmp_path: Path) -> None:
    path = written(tmp_path, options, more)
    if options.startswith("quantities"):
        path.write_text(path.read_text().replace('quantities = ["damping_ratio"]\n', ""))
    with pytest.raises(InputError, match=word):
        Survey(computed(path))


def test_a_group_and_its_member_are_not_independent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = '[[parameter]]\nname = "secondary_yaw.leading.left.damping"\nrelative = 0.1\n'
    assert cli.main(["sensitivity", str(written(tmp_path, more=more))]) == 2
    assert "same number" in capsys.readouterr().err


def test_millions_of_samples_are_not_written_out(tmp_path: Path) -> None:
    path = tmp_path / "survey.toml"
    path.write_text(STUDY.replace("samples = 32", "samples = 20_000_000").format(options="", more=""))
    study = load_study(path)
    assert isinstance(study.design, SensitivityChoice)
    assert study.cases == 80_000_000
    assert np.isfinite(study.axes[0].value(79_999_999))
