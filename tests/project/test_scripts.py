"""Setting up the environment and running stages, on machines that lack something."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
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
    return load("run_stages")


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


# --- what is installed ------------------------------------------------------------------------


@pytest.fixture
def commands(setup_env: Any, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The words of each command of an installation, which is only recorded."""
    seen: list[list[str]] = []
    monkeypatch.setattr(setup_env, "run", lambda command: seen.append([str(word) for word in command]))
    return seen


@pytest.mark.parametrize("extras", [[], ["dev"], ["dev", "spark"]])
def test_nothing_but_the_named_packages_is_built(
    setup_env: Any, commands: list[list[str]], extras: list[str]
) -> None:
    """Every installation takes wheels only; what has none is named, and is built with its own build tools."""
    setup_env.install(extras)

    built = [command for command in commands if any(word.startswith("--no-binary") for word in command)]
    assert all("--only-binary=:all:" in command for command in commands)
    assert [command[-2:] for command in built] == [["--no-binary=pyspark", "pyspark"]] * ("spark" in extras)
    assert not any("--no-build-isolation" in command for command in built)
    assert commands[-1][-1].startswith(str(setup_env.ROOT))


# --- stages -----------------------------------------------------------------------------------


def stage(stages: Any, name: str, *scripts: str) -> Any:
    return stages.Stage(name, (), tuple(("sh", "-c", script) for script in scripts))


@pytest.fixture
def run_all(stages: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run groups of stages in place of the real ones, with nothing to install."""
    really = stages.run_command

    def command(words: Sequence[str], **options: Any) -> Any:
        return (0, 0.0, 0.0) if "setup_env.py" in " ".join(words) else really(words, **options)

    def run(*groups: tuple[Any, ...]) -> int:
        monkeypatch.setattr(stages, "QUICK", groups)
        monkeypatch.setattr(stages, "SLOW", ())
        monkeypatch.setattr(stages, "STAGES", {each.name: each for group in groups for each in group})
        return int(stages.main([]))

    monkeypatch.setattr(stages, "run_command", command)
    monkeypatch.setattr(stages.signal, "signal", lambda *_: None)
    return run


def test_a_failing_stage_does_not_hide_the_others(
    stages: Any, run_all: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    """All of them run, the table has a row for each, and the status says that something failed."""
    groups = [
        (stage(stages, "bad", "exit 3", "echo after"), stage(stages, "good", "true")),
        (stage(stages, "last", "true"),),
    ]

    assert run_all(*groups) == 1
    shown = capfd.readouterr().out
    assert "[bad] after" in shown
    assert re.search(r"^ *bad +1 +1 +0 ", shown, re.MULTILINE)
    assert re.search(r"^ *good +1 +0 +0 ", shown, re.MULTILINE)
    assert re.search(r"^ *last +1 +0 +0 ", shown, re.MULTILINE)
    assert "3 passed, 1 failed, 0 skipped" in shown


def test_stages_that_pass_return_zero(stages: Any, run_all: Callable[..., int]) -> None:
    """Without a failure the status is 0."""
    assert run_all((stage(stages, "good", "true"),)) == 0


def test_a_stage_of_tests_counts_tests(
    stages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Passed, failed and skipped tests are told apart, and the reason of a skip is shown."""
    (tmp_path / "test_three.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert False\n"
        "def test_skipped(): pytest.skip('there is no Java')\n"
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(stages, "REPORTS", tmp_path)
    monkeypatch.setattr(stages, "PATHS", ("", str(tmp_path)))
    (tmp_path / "test_whole.py").write_text(
        "import pytest\npytest.importorskip('nothing', reason='nothing is there')"
    )
    result = stages.run_stage(stages.Stage("three", (), marker="not faults"))

    assert (result.passed, result.failed) == (1, 1)
    assert sorted(result.skipped) == ["nothing is there", "there is no Java"]
    assert "skipped 1: there is no Java" in list(stages.left_out(["three"], [result]))
    capfd.readouterr()


def test_a_stage_without_a_report_has_failed(
    stages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If pytest does not even start, or finds no test, the stage fails."""
    (tmp_path / "test_nothing.py").write_text("")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(stages, "REPORTS", tmp_path)
    monkeypatch.setattr(stages, "PATHS", ("", str(tmp_path)))

    assert stages.run_stage(stages.Stage("empty", (), marker="not faults")).failed == 1


def test_what_hangs_is_killed_with_its_children(stages: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """After the guard nothing of the command is left, or the pipe that its children hold would stay open."""
    status, _, _ = stages.run_command(("sh", "-c", "sleep 600 & sleep 600"), label="slow", guard=0.2)

    assert status == -signal.SIGKILL
    assert "taken to hang" in capfd.readouterr().out


@pytest.mark.parametrize(("wait", "lines"), [(-1.0, ["..", "...", "end"]), (3600.0, [".....", "end"])])
def test_dots_of_a_long_line_are_shown_after_a_while(
    stages: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    wait: float,
    lines: list[str],
) -> None:
    """Whoever watches two stages at once sees that both go on."""
    monkeypatch.setattr(stages, "SIGN_OF_LIFE", wait)
    stages.relay([b"..", b"...\nend"], "two")

    assert capsys.readouterr().out.splitlines() == [f"[two] {line}" for line in lines]


def test_a_missing_program_is_named_with_what_brings_it(stages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines after the table say what to install and which stage to run then."""
    absent = stages.Program("Chromium", ("no-such-program",), "chromium", "browser")
    monkeypatch.setattr(stages, "PROGRAMS", (absent,))

    [first, *_] = stages.left_out(list(stages.STAGES), [])
    assert first == "Chromium is missing: apt-get install chromium, then make test-browser runs what needs it"


def test_every_marker_has_its_stage(stages: Any) -> None:
    """A test with a marker of its own stage runs in exactly one stage, one without in the fast one."""
    slow = [
        each.marker.removesuffix(" and not sample") for group in stages.SLOW for each in group if each.marker
    ]

    assert sorted(slow) == sorted(stages.MARKED)


def test_an_unknown_stage_is_refused(stages: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The message lists the stages there are."""
    assert stages.main(["nonsense"]) == 2
    assert "types, lint, contracts, fast" in capsys.readouterr().err
