"""Stores at a URL: a copy that lacks blocks but is never torn, from which any machine goes on."""

import json
import shutil
from pathlib import Path
from typing import Any

import fsspec
import pytest
import xarray
from sample_study import SPECTRUM, bits, computed, ledger, write_study

from railsweep.app.cli import main
from railsweep.cluster.serial import SerialExecutor
from railsweep.engine.errors import InputError
from railsweep.sweeps import StudyStore, load_study, open_or_create, open_store, run_session
from railsweep.sweeps.remote import Publisher, Remote, open_anywhere
from railsweep.sweeps.repair import examine
from railsweep.sweeps.study import check_url


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> StudyStore:
    """A finished store of four blocks."""
    return computed(tmp_path_factory.mktemp("finished"), SPECTRUM)


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place of each kind: with and without folders of its own."""
    return (
        f"memory://{tmp_path.name}/deep/modes.zarr"
        if request.param == "memory"
        else f"file://{tmp_path}/far/modes.zarr"
    )


class CutOff(Exception):  # noqa: N818 - the network is gone
    """Raised by a file system after some files."""


def cut_after(remote: Remote, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only so many files through."""
    put, done = remote.files.put_file, []

    def counted(source: str, target: str, **options: Any) -> None:
        if len(done) == count:
            raise CutOff("the network is gone")
        done.append(target)
        put(source, target, **options)

    monkeypatch.setattr(remote.files, "put_file", counted)


def test_a_stranger_opens_the_url_and_a_fetched_copy_is_the_same(
    finished: StudyStore, url: str, tmp_path: Path
) -> None:
    remote = Remote(url)
    assert not remote.exists()
    assert remote.publish(finished) == 4
    assert remote.publish(finished) == 0
    assert remote.published() == {0, 1, 2, 3}
    with xarray.open_zarr(url) as far, finished.dataset() as near:
        assert far.identical(near)
    copy = remote.fetch(tmp_path / "copy.zarr")
    assert bits(copy.path) == bits(finished.path)
    assert ledger(copy.path) == ledger(finished.path)
    assert not examine(copy, mend=False)
    assert bits(open_anywhere(url).path) == bits(finished.path)


def test_a_copy_cut_off_at_any_file_is_whole_and_goes_on(
    finished: StudyStore, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = Remote(url)
    files, blocks = 0, []
    while True:
        with monkeypatch.context() as patch:
            cut_after(remote, files, patch)
            if remote.exists():
                remote.files.rm(remote.root, recursive=True)
            said: list[str] = []
            whole = Publisher(remote, finished, said.append).now()
        if whole:
            break
        assert "the network is gone" in said[0]
        if remote.exists():
            copy = remote.fetch(tmp_path / f"copy-{files}.zarr")
            assert not examine(copy, mend=False).blocks
            blocks.append(len(ledger(copy.path)))
            # The next attempt brings what is missing.
            if files % 5 == 0:
                assert remote.publish(finished) == 4 - blocks[-1]
                assert run_session(copy, SerialExecutor()).outcome == "finished"
                assert bits(copy.path) == bits(finished.path)
        files += 3
    assert sorted(blocks) == blocks
    assert set(blocks) >= {0, 1, 2, 3}


def test_a_place_that_holds_something_else_is_refused(finished: StudyStore, url: str, tmp_path: Path) -> None:
    remote = Remote(url)
    remote.files.makedirs(remote.root, exist_ok=True)
    remote.files.pipe_file(f"{remote.root}/thesis.doc", b"precious")
    with pytest.raises(InputError, match=r"holds 'thesis\.doc'"):
        remote.publish(finished)
    remote.files.rm(f"{remote.root}/thesis.doc")
    other = computed(tmp_path, SPECTRUM, block_cases="3")
    remote.publish(other)
    with pytest.raises(InputError, match="other blocks"):
        remote.publish(finished)
    assert bits(remote.fetch(tmp_path / "copy.zarr").path) == bits(other.path)
    with pytest.raises(InputError, match="exists already"):
        remote.fetch(tmp_path / "copy.zarr")


def test_the_command_line_publishes_goes_on_elsewhere_and_reads_a_url(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run on one machine is cut off; another machine has only the URL."""
    url = f"file://{tmp_path}/bucket/modes.zarr"
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    study = load_study(write_study(here, SPECTRUM.replace("[output]", f'[output]\nstore = "{url}"')))
    assert (study.output.store, study.output.remote) == ("modes.zarr", url)
    store, _ = open_or_create(study, here, here / "modes.zarr", 1)
    run_session(store, SerialExecutor())
    store.ledger.forget(1)
    Remote(url).publish(store)
    shutil.rmtree(here)
    assert main(["status", url, "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["outcome"], status["done"]) == ("pending", 5)
    here.mkdir()
    study_file = write_study(here, SPECTRUM)
    assert main(["run", str(study_file), "--store", url, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["outcome"], facts["computed"], facts["remote"]) == ("finished", 1, url)
    assert Remote(url).published() == {0, 1, 2, 3}
    assert bits(open_store(here / "modes.zarr").path) == bits(open_anywhere(url).path)
    monkeypatch.chdir(there)
    assert main(["resume", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["computed"] == 0
    assert bits(there / "modes.zarr") == bits(here / "modes.zarr")


def test_urls_carry_no_secrets_and_no_tricks(tmp_path: Path) -> None:
    assert check_url("store", "s3://bucket/a/b-c.zarr") == "s3://bucket/a/b-c.zarr"
    for wrong in (
        "s3://user:secret@bucket/x.zarr",
        "s3://bucket/../x.zarr",
        "simplecache::s3://bucket/x.zarr",
        "s3://bucket/x.zarr?versionId=1",
        "s3://bucket/x",
        "file:///tmp/$(x).zarr",
    ):
        with pytest.raises(InputError, match="without user, password or query"):
            load_study(write_study(tmp_path, SPECTRUM.replace("[output]", f'[output]\nstore = "{wrong}"')))
    with pytest.raises(InputError, match="cannot be reached"):
        Remote("nonsense://bucket/x.zarr")
    with pytest.raises(InputError, match="is not a railsweep store"):
        Remote("memory://nowhere/x.zarr").fetch(tmp_path / "x.zarr")
    assert "memory" in fsspec.available_protocols()
