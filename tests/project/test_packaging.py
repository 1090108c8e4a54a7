"""What is installed is what the project says, and the documents tell the truth about it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import import_module, metadata
from pathlib import Path

import pytest

import partita

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"duckdb", "numba", "pandas", "scipy"}
PIN = re.compile(r'[a-z0-9-]+==[0-9][0-9a-z.]*( ; python_version (<|>=) "3\.1[0-9]")?')
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINS = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
STUBS = sorted((ROOT / "src").rglob("__init__.pyi"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def normal(requirement: str) -> str:
    """The name in a requirement, spelled as registries spell it."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name.group()).lower()


# --- constraints ------------------------------------------------------------------------------


@pytest.mark.parametrize("line", PINS)
def test_a_constraint_is_a_name_and_a_version(line: str) -> None:
    """No address, path, hash or range: `name==version`, with a Python version where needed."""
    assert PIN.fullmatch(line)


def test_every_declared_dependency_is_pinned() -> None:
    """Core, extras and the build backend all have their version in constraints.txt."""
    project = PYPROJECT["project"]
    extras = [name for names in project["optional-dependencies"].values() for name in names]
    declared = {*project["dependencies"], *extras, *PYPROJECT["build-system"]["requires"]}

    assert {normal(name) for name in declared} - {normal(pin) for pin in PINS} == set()


def test_everything_that_comes_along_is_pinned() -> None:
    """What a pinned and installed package requires on this Python is pinned too."""
    pinned = {normal(pin) for pin in PINS}
    installed = [dist for dist in metadata.distributions() if normal(dist.name) in pinned]
    required = {normal(need) for dist in installed for need in dist.requires or [] if applies(need)}

    assert required - pinned == set()


def applies(requirement: str) -> bool:
    """Whether a requirement has no condition but those that hold on every supported Python."""
    _, _, condition = requirement.partition(";")
    if "extra ==" in condition:
        return False
    return not condition.strip() or condition.strip().startswith("platform_python_implementation != ")


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_name_has_one_version_per_python(version: str) -> None:
    """Markers split the Python versions without gap or overlap."""
    names = [normal(pin) for pin in PINS if covers(pin, version)]

    assert sorted(set(names)) == sorted(names)
    assert set(names) == {normal(pin) for pin in PINS}


def covers(pin: str, version: str) -> bool:
    marker = re.search(r'python_version (<|>=) "3\.(\d+)"', pin)
    if not marker:
        return True
    newer = int(version.partition(".")[2]) >= int(marker.group(2))
    return newer == (marker.group(1) == ">=")


# --- the package ------------------------------------------------------------------------------


def test_all_is_honest() -> None:
    """`__all__` is sorted, free of repeats, and every name in it can be had."""
    assert sorted(set(partita.__all__)) == sorted(partita.__all__)
    assert [name for name in partita.__all__ if not hasattr(partita, name)] == []


@pytest.mark.parametrize("package", [".".join(path.parent.relative_to(ROOT / "src").parts) for path in STUBS])
def test_stubs_are_split_as_they_would_be_parsed(package: str) -> None:
    """Every line of a stub is one name, under that name, and the package has them all."""
    found = import_module(package)
    stub = ast.parse(Path(str(found.__file__)).with_suffix(".pyi").read_text())
    lines = [node for node in stub.body if isinstance(node, ast.ImportFrom)]

    assert all(alias.asname == alias.name for line in lines for alias in line.names)
    homes = {alias.name: line.module for line in lines for alias in line.names}
    assert set(found.__all__) - {"__version__"} == homes.keys() - {"local", "noise", "pan"}
    for name, home in homes.items():
        module = import_module(str(home))
        defined = getattr(module, name) if name in found.__all__ else import_module(f"{home}.{name}")
        assert getattr(found, name) is defined or getattr(found, name) == defined


def test_names_that_do_not_exist_are_attribute_errors() -> None:
    """The error names package and name."""
    with pytest.raises(AttributeError, match="module 'partita' has no attribute 'gaussian'"):
        partita.gaussian  # type: ignore[attr-defined]  # noqa: B018


def test_dir_shows_every_public_name() -> None:
    """Lazy names show up in completion."""
    assert set(partita.__all__) <= set(dir(partita))


def test_versions_agree() -> None:
    """The package, its metadata and the citation name one version; the changelog knows it."""
    assert partita.__version__ == metadata.version("partita")
    assert f"version: {partita.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## [{partita.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_package_is_typed() -> None:
    """Type checkers find the marker next to the package."""
    assert (Path(partita.__file__).parent / "py.typed").exists()


def modules_after(code: str) -> set[str]:
    report = f"{code}\nimport sys\nprint(*sys.modules)"
    return set(subprocess.check_output([sys.executable, "-c", report], text=True).split())


def test_import_loads_nothing_heavy() -> None:
    """`import partita` loads no numba, scipy, pandas or duckdb."""
    assert modules_after("import partita") & HEAVY == set()


def test_public_names_load_nothing_heavy() -> None:
    """Reaching for every public name does not load them either: they are imported where used."""
    code = "import partita\nfor name in partita.__all__: getattr(partita, name)"

    assert modules_after(code) & HEAVY == set()


# --- documents --------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link points at a file of the project."""
    links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text())
    local = [link for link in links if not re.match(r"[a-z]+:", link)]

    assert [link for link in local if not (page.parent / link).exists()] == []


def test_references_have_every_key() -> None:
    """Every paper that code or a page of the project names by a key is in docs/references.md."""
    known = set(re.findall(r"\*\*\[(\w+)\]\*\*", (ROOT / "docs" / "references.md").read_text()))
    texts = [path.read_text() for path in [*PAGES, *(ROOT / "src").rglob("*.py")]]
    groups = [group for text in texts for group in re.findall(r"\[([A-Z][A-Za-z]*\d\d\b[^\]\n]*)\]", text)]
    named = {key for group in groups for key in re.findall(r"\b[A-Z][A-Za-z]*\d\d\b", group)}

    assert {"DNRR15", "BT09", "OC15"} <= named
    assert named - known == set()


def test_make_help_lists_every_stage() -> None:
    """`make` names each stage of scripts/run_stages.py."""
    stages = re.findall(r'Stage\(\s*"(\w+)"', (ROOT / "scripts" / "run_stages.py").read_text())
    shown = subprocess.check_output(["make", "-s", "-C", ROOT, "help"], text=True)

    assert stages
    assert [stage for stage in stages if f"make test-{stage} " not in shown] == []


@pytest.mark.faults
def test_the_first_answers_of_the_readme_make_sense(tmp_path: Path) -> None:
    """The median of people in their thirties lies near the true one, which the README prints."""
    page = (ROOT / "README.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)

    shown = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, text=True)

    assert "32,461" in page
    assert 30_000 < int(shown.splitlines()[1]) < 35_000


@pytest.mark.faults
def test_the_demo_runs_to_its_end(tmp_path: Path) -> None:
    """The demo shows its five chapters in at most 100 columns."""
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "5. Four mistakes" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
