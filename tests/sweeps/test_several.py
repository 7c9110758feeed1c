"""Several quantities of one case."""

from pathlib import Path

import numpy as np
import pytest

from railsweep.cluster.serial import SerialExecutor
from railsweep.engine.errors import InputError
from railsweep.sweeps import load_study, open_or_create, run_session

STUDY = """
name = "both"
quantity = "{quantity}"
[vehicle]
name = "cooperrider"
[observe]
modes = 2
[several]
quantities = ["linear_critical_speed", "spectrum"]
[several.linear_critical_speed]
from_mps = 80.0
to_mps = 120.0
[[axis]]
parameter = "secondary_yaw.damping"
name = "damping"
values = [1.2e5, 1.7e5]
[output]
block_cases = 2
"""


def test_the_numbers_are_those_of_each_alone(tmp_path: Path) -> None:
    found = {}
    for name in ("several", "spectrum", "linear_critical_speed"):
        text = STUDY.format(quantity=name)
        if name != "several":
            head, _, tail = text.partition("[several]")
            options = "[linear_critical_speed]\nfrom_mps = 80.0\nto_mps = 120.0\n" if name.startswith("linear") else ""
            text = head + options + "[[axis]]" + tail.partition("[[axis]]")[2]
        path = tmp_path / f"{name}.toml"
        path.write_text(text)
        store, _ = open_or_create(load_study(path), tmp_path, tmp_path / f"{name}.zarr", 1)
        assert run_session(store, SerialExecutor()).failed == 0
        found[name] = {v.name: np.asarray(store.arrays[v.name][:]) for v in store.variables if v.dtype == "float64"}
    alone = found["spectrum"] | found["linear_critical_speed"]
    assert alone.keys() == found["several"].keys()
    for name, values in alone.items():
        assert np.array_equal(found["several"][name], values)


@pytest.mark.parametrize("names", ['["spectrum"]', '["spectrum", "several"]', '["spectrum", "simulatoin"]'])
def test_wrong_lists_are_refused(names: str, tmp_path: Path) -> None:
    text = STUDY.format(quantity="several").replace('["linear_critical_speed", "spectrum"]', names)
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(InputError, match="quantities"):
        load_study(tmp_path / "study.toml")
