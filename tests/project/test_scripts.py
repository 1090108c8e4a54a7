"""Setting up the environment and running stages, on machines that lack something."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    """A fresh copy of a script as a module."""
    spec = importlib.util.spec_from_file_location(f"_script_{name}", ROOT / "scripts" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def setup_env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, told that the project lies in an empty folder."""
    module = load("setup_env")
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").write_text("[project]\n")
    (root / "constraints.txt").write_text("pip==1.0\n")
    monkeypatch.setattr(module, "ROOT", root)
    monkeypatch.setattr(module, "VENV", root / ".venv")
    monkeypatch.setattr(module, "STAMP", root / ".venv" / "partita-stamp.json")
    monkeypatch.setattr(module, "CONSTRAINTS", root / "constraints.txt")
    return module


@pytest.fixture
def stages() -> Any:
    return load("run_stage")


def program(folder: Path, name: str, script: str) -> str:
    """An executable shell script."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


# --- which Python -----------------------------------------------------------------------------


def test_the_oldest_supported_python_wins(
    setup_env: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer one earlier on PATH, an unsupported one and a shim that fails are passed over."""
    folders = [tmp_path / "shims", tmp_path / "new", tmp_path / "old"]
    program(folders[0], "python3.11", "echo 'command not found' >&2; exit 127")
    program(folders[0], "python3", "echo 3 9")
    program(folders[1], "python3.13", "echo 3 13")
    expected = program(folders[2], "python3.12", "echo 3 12")
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))

    assert setup_env.oldest_python() == expected


def test_a_failing_shim_does_not_hide_a_working_python(
    setup_env: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every folder of PATH is searched, not only the first that has the name."""
    program(tmp_path / "shims", "python3.11", "exit 127")
    expected = program(tmp_path / "bin", "python3.11", "echo 3 11")
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "shims"), str(tmp_path / "bin")]))

    assert setup_env.oldest_python() == expected


def test_the_environment_is_not_built_from_itself(setup_env: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An activated .venv does not count as a Python of the machine."""
    (setup_env.VENV).mkdir()
    inside = program(setup_env.VENV / "bin", "python3.11", "echo 3 11")
    monkeypatch.setenv("PATH", str(Path(inside).parent))

    assert list(setup_env.on_path("python3.11")) == []


def test_no_supported_python_is_said_plainly(
    setup_env: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the versions that would do."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", program(tmp_path / "bin", "python3", "echo 3 8"))

    assert setup_env.main([]) == 1
    assert "needs one of 3.11, 3.12, 3.13, 3.14" in capsys.readouterr().err


# --- pip --------------------------------------------------------------------------------------


FETCH = """
import sys, zipfile
folder = sys.argv[sys.argv.index("--dest") + 1]
with zipfile.ZipFile(f"{folder}/pip-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("pip/__init__.py", "")
    wheel.writestr("pip/__main__.py", "print('pip 1.0')")
"""


def test_pip_is_borrowed_where_ensurepip_is_missing(
    setup_env: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pip that fails is passed over; the next one fetches the wheel, which is unpacked."""
    (tmp_path / "fetch.py").write_text(FETCH)
    broken = program(tmp_path / "bin", "old-pip", "exit 1")
    (tmp_path / "ensurepip.py").write_text("raise ImportError")
    monkeypatch.setattr(setup_env, "environment", lambda: {**os.environ, "PYTHONPATH": str(tmp_path)})
    monkeypatch.setattr(setup_env, "pips", lambda: [[broken], [sys.executable, str(tmp_path / "fetch.py")]])
    setup_env.create_venv(sys.executable)

    assert setup_env.ask([setup_env.venv_python(), "-m", "pip"]) == "pip 1.0\n"


def test_no_pip_is_said_plainly(setup_env: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how to get one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", program(tmp_path / "bin", "python3", "exit 1"))

    with pytest.raises(setup_env.SetupFailed, match="no pip found that could fetch one"):
        setup_env.borrow_pip()


# --- the stamp --------------------------------------------------------------------------------


@pytest.fixture
def installs(setup_env: Any, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The extras of each installation, which is only recorded."""
    seen: list[list[str]] = []
    monkeypatch.setattr(setup_env, "install", seen.append)
    monkeypatch.setattr(setup_env, "create_venv", lambda python: setup_env.VENV.mkdir())
    monkeypatch.setattr(setup_env, "python_version", lambda python: (3, 11))
    return seen


def test_a_ready_environment_is_left_alone(setup_env: Any, installs: list[list[str]]) -> None:
    """The same wish twice installs once, and a smaller wish is met already."""
    setup_env.prepare(["dev"])
    setup_env.prepare(["dev"])
    setup_env.prepare([])

    assert installs == [["dev"]]


def test_extras_add_up(setup_env: Any, installs: list[list[str]]) -> None:
    """A new extra keeps the ones that are there."""
    setup_env.prepare(["dev"])
    setup_env.prepare(["bench"])

    assert installs == [["dev"], ["bench", "dev"]]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_file_installs_again(setup_env: Any, installs: list[list[str]], name: str) -> None:
    """The stamp knows the content of both files."""
    setup_env.prepare(["dev"])
    (setup_env.ROOT / name).write_text("# changed\n")
    setup_env.prepare([])

    assert installs == [["dev"], ["dev"]]


def test_a_broken_installation_leaves_no_stamp(
    setup_env: Any, installs: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failure the next run starts over."""
    setup_env.prepare([])
    monkeypatch.setattr(setup_env, "install", lambda extras: setup_env.run(["false"]))

    assert setup_env.main(["dev"]) == 1
    assert not setup_env.STAMP.exists()


# --- stages -----------------------------------------------------------------------------------


def test_a_stage_that_overruns_is_killed_with_its_children(stages: Any, tmp_path: Path) -> None:
    """Nothing that the stage started outlives its budget."""
    code = f"(sleep 2; touch {tmp_path / 'survived'}) & sleep 60"
    stage = stages.Stage("slow", 0.2 / 60, (("sh", "-c", code),))

    with pytest.raises(stages.StageFailed, match="slow overran its budget"):
        stages.run_stage(stage)
    time.sleep(2.5)
    assert not (tmp_path / "survived").exists()


def test_a_failing_command_ends_its_stage(stages: Any, tmp_path: Path) -> None:
    """The commands after it do not run."""
    stage = stages.Stage("bad", 1, (("sh", "-c", "exit 3"), ("touch", str(tmp_path / "ran"))))

    with pytest.raises(stages.StageFailed, match="failed with status 3"):
        stages.run_stage(stage)
    assert not (tmp_path / "ran").exists()


def test_a_passing_stage_tells_its_time(stages: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Elapsed time stands against the budget."""
    stages.run_stage(stages.Stage("good", 2, (("true",),)))

    assert re.search(r"=== stage good passed: \d+ s of 2 min 0 s", capsys.readouterr().out)


def test_an_unknown_stage_is_refused(stages: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The message lists the stages there are."""
    assert stages.main(["nonsense"]) == 2
    assert "fast, statistics, faults" in capsys.readouterr().err
