"""The folder as it is now, and nothing beside it."""

from __future__ import annotations

import os
import shutil
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import anyio
import pytest

import partita as pt
from partita.public.file import load
from partita.service.errors import Refusal
from partita.service.reading import catalogue as catalogue_module
from partita.service.reading.catalogue import Catalogue, open_regular_file
from partita.service.reading.work import WorkerPool

from .conftest import Client

HOSTILE = [
    "..",
    "%2e%2e",
    "%2e%2e%2fpeople",
    "..%2fpeople",
    "people%00",
    "people%2f..",
    ".people",
    "-people",
    "people%20",
    "people%0a",
    "a" * 101,
    "a" * 5_000,
    "pe%C3%B6ple",
    "~root",
    "people.release.parquet",
    "C:people",
]
"""Names that none has, some of which are paths; all are well-formed in an address."""

TWINS = [".json", "/count", "/view.json?x=age", "/file", "/report.txt", "/ask?q=count"]


def names(client: Client) -> dict[str, str]:
    """Every release in the catalogue, and its state."""
    return {each["name"]: each["state"] for each in client.get("/index.json").json()["releases"]}


def test_the_catalogue_lists_what_is_there(client: Client) -> None:
    """With the promise of each in numbers and in words."""
    people = next(each for each in client.get("/index.json").json()["releases"] if each["name"] == "people")

    assert names(client) == {"asked": "ready", "people": "ready"}
    assert people["columns"] == ["age", "salary", "seen", "town"]
    assert (people["guarantee"]["epsilon"], people["guarantee"]["factor"]) == ("4", "54.6")
    assert people["guarantee"]["words"].startswith("epsilon 4, pure, for adding or removing one row.")


def test_a_release_in_rho_says_so(fresh: Client, folder: Path) -> None:
    """Its guarantee and its views state rho, exactly; of others it is null."""
    rows = {"age": [30, 41], "town": ["a", "b"]}
    schema: dict[str, Any] = {"age": pt.Integer(0, 9), "town": pt.Category(["a", "b"])}
    views: dict[str, Any] = {"views": ["age", "town"], "mechanism": "histogram"}
    pt.publish(rows, schema, rho="1/8", **views).save(folder / "rho.release.parquet")

    told = fresh.get("/releases/rho.json").json()
    listed = {each["name"]: each["guarantee"] for each in fresh.get("/index.json").json()["releases"]}

    assert told["guarantee"]["rho"] == listed["rho"]["rho"] == "1/8"
    assert told["guarantee"]["words"].startswith("epsilon 0.71")
    assert all(0 < Fraction(view["rho"]) <= Fraction(1, 16) for view in told["views"])
    assert listed["people"].get("rho") is None


def test_a_declared_guarantee_is_called_that(fresh: Client, folder: Path) -> None:
    """Counts that were imported say so in the list, in their description and in their report."""
    promise = pt.Guarantee(epsilon=1)
    where = folder / "wards.release.parquet"
    pt.import_view(
        [3, 4], {"ward": pt.Category(["A", "B"])}, scale=1, guarantee=promise, source="me", path=where
    )

    listed = next(each for each in fresh.get("/index.json").json()["releases"] if each["name"] == "wards")
    about = fresh.get("/releases/wards.json").json()

    said = "declared by the caller, not checked by Partita"
    assert said in listed["guarantee"]["words"]
    assert said in about["guarantee"]["words"]
    assert said in about["views"][0]["why"]
    assert said in about["report"]


def test_new_replaced_and_removed_files_are_noticed(fresh: Client, folder: Path) -> None:
    """At once, by the same process."""
    assert fresh.get("/releases/people/count").status_code == 200
    shutil.copy(folder / "asked.release.parquet", folder / "new.release.parquet")
    os.replace(folder / "asked.release.parquet", folder / "people.release.parquet")

    assert names(fresh) == {"new": "ready", "people": "ready"}
    assert fresh.get("/releases/people.json").json()["queries"]["number"] == 5_050
    assert fresh.get("/releases/asked/count").status_code == 404


def test_a_file_that_is_written_anew_is_read_anew(fresh: Client, folder: Path) -> None:
    """Another release under the same name has another tag, and its own answers."""
    path = folder / "people.release.parquet"
    before = fresh.get("/releases/people/count", where="age < 50")
    path.unlink()
    pt.publish({"age": [30] * 50}, {"age": pt.Integer(0, 99)}, epsilon=1, path=path)

    after = fresh.get("/releases/people/count", where="age < 50")

    assert after.json()["value"] == load(path).count({"age": (None, 50)}, closed="left").value
    assert after.headers["etag"] != before.headers["etag"]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a release" * 1_000])
def test_a_damaged_file_is_listed_as_damaged(fresh: Client, folder: Path, content: bytes) -> None:
    """It answers nothing, and the others answer."""
    (folder / "broken.release.parquet").write_bytes(content)

    answers = [fresh.get(f"/releases/broken{twin}") for twin in TWINS]

    assert names(fresh) == {"asked": "ready", "broken": "damaged", "people": "ready"}
    assert {(each.status_code, each.json()["error"]["kind"]) for each in answers} == {(409, "DamagedRelease")}
    assert fresh.get("/releases/people/count").status_code == 200


def test_a_byte_that_is_changed_is_damage(fresh: Client, folder: Path) -> None:
    """A release is checked from the first byte to the last before anything of it is believed."""
    whole = bytearray((folder / "people.release.parquet").read_bytes())
    whole[len(whole) // 2] ^= 1
    (folder / "turned.release.parquet").write_bytes(whole)

    assert fresh.get("/releases/turned/count").status_code == 409


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_name_is_not_there(client: Client, name: str) -> None:
    """It is 404 in our words, whatever it would be as a path."""
    answers = [client.send("GET", f"/releases/{name}{twin}") for twin in TWINS]

    assert {(answer.status_code, answer.json()["error"]["kind"]) for answer in answers} == {(404, "NotFound")}


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a\0", "people\n", "", "a" * 101, "öl"])
def test_what_is_no_name_does_not_reach_the_disk(
    shelf: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No path is made of it, so nothing is looked at."""
    catalogue, made = Catalogue(shelf, WorkerPool()), list[str]()
    monkeypatch.setattr(catalogue_module, "_path", lambda folder, name: made.append(name))

    with pytest.raises(Refusal, match="there is no such release"):
        anyio.run(catalogue.get, name)

    assert open_regular_file(shelf, name) is None
    assert made == []


def test_options_and_columns_without_special_cells_are_served(fresh: Client, folder: Path) -> None:
    """A release with options states them; one that a class made has no special cells to show."""
    ages = {"age": pt.Integer(0, 99)}
    rows = {"age": [row % 100 for row in range(1000)]}
    path = folder / "options.release.parquet"
    pt.publish(rows, ages, epsilon=1, mechanism="tree", options={"branching": 10}, path=path)
    tree = pt.Tree(size=100, epsilon=1).release(pt.Histogram.from_cells(sorted(rows["age"]), size=100))
    pt.as_release(tree, ages).save(folder / "bare.release.parquet")

    stated, bare = (fresh.get(f"/releases/{name}.json") for name in ("options", "bare"))
    assert stated.json()["options"] == {"branching": "10"}
    assert bare.json()["options"] == {}
    assert bare.json()["columns"][0]["specials"] == {}
    assert fresh.get("/releases/bare/count", where="age > 50").status_code == 200
    shown = fresh.get("/releases/bare/view.json?x=age")
    assert (shown.status_code, shown.json()["specials"]) == (200, [])


def test_no_link_is_followed(fresh: Client, folder: Path, shelf: Path) -> None:
    """Neither out of the folder nor inside of it, and nothing that is no file is opened."""
    (folder / "out.release.parquet").symlink_to(shelf / "people.release.parquet")
    (folder / "inside.release.parquet").symlink_to("people.release.parquet")
    (folder / "folder.release.parquet").mkdir()
    os.mkfifo(folder / "pipe.release.parquet")

    found = [fresh.get(f"/releases/{name}/count") for name in ("out", "inside", "folder", "pipe")]

    assert [each.status_code for each in found] == [404] * 4
    assert names(fresh) == {"asked": "ready", "people": "ready"}


def test_other_files_are_not_served(fresh: Client, folder: Path) -> None:
    """A name is that of a release file: nothing else of the folder has an address."""
    (folder / "notes.txt").write_text("secret")
    (folder / ".hidden.release.parquet").write_text("secret")

    assert names(fresh) == {"asked": "ready", "people": "ready"}
    assert [fresh.get(f"/releases/{name}.json").status_code for name in ("notes.txt", ".hidden")] == [
        404,
        404,
    ]


def test_a_folder_that_is_gone_has_no_releases(fresh: Client, folder: Path) -> None:
    """It may come back: nothing fails."""
    shutil.rmtree(folder)

    assert names(fresh) == {}
    assert fresh.get("/releases/people/count").status_code == 404


def test_releases_are_kept_as_long_as_there_is_room(shelf: Path) -> None:
    """With room for one, the one that was used last is kept; what is kept is not loaded again."""
    catalogue = Catalogue(shelf, WorkerPool(), room=2**20)

    async def used() -> list[bool]:
        people, again = await catalogue.get("people"), await catalogue.get("people")
        await catalogue.get("asked")
        return [people is again, people is await catalogue.get("people")]

    assert anyio.run(used) == [True, False]


def test_many_who_ask_at_once_wait_for_one_to_load(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that takes long to load is loaded once."""
    loaded: list[str] = []
    real = catalogue_module._load_entry

    def counting(folder: Path, name: str) -> object:
        loaded.append(name)
        return real(folder, name)

    monkeypatch.setattr(catalogue_module, "_load_entry", counting)
    catalogue = Catalogue(shelf, WorkerPool())

    async def all_at_once() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(catalogue.get, "people")

    anyio.run(all_at_once)

    assert loaded == ["people"]


def test_too_much_work_is_refused_and_not_queued_for_ever() -> None:
    """Beyond the queue a request is told to come again."""
    threads, begin = WorkerPool(most=1, waiting=1), threading.Event()

    async def crowded() -> list[str]:
        done: list[str] = []

        async def asks(name: str) -> None:
            try:
                await threads.run(begin.wait)
                done.append(name)
            except Refusal as refusal:
                done.append(f"{name}: {refusal.status}")
                begin.set()

        async with anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(asks, name)
        return done

    assert anyio.run(crowded) == ["c: 429", "a", "b"]
