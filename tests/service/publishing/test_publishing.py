"""Publishing over HTTP: from specs of the server only, charged once, told without times and folders."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from partita.errors import KeyReused
from partita.public.contributions import USUAL
from partita.service.errors import Refusal
from partita.service.settings import Limits, ServiceSettings
from partita.service.steward import publishing
from partita.service.steward.publishing import (
    JobQueue,
    Publisher,
    PublishOrder,
    PublishRequest,
    TerminalOutput,
    publishing_router,
)
from partita.service.tokens import TokenFile
from partita.service.web import secure
from tests.service.web.client import CANARY, Client, Clock, kind

ORDER = PublishOrder(spec="people", name="people-2026", key="k1")
BODY = {"spec": "people", "name": "people-2026", "key": "k1"}


@pytest.fixture
def settings(tmp_path: Path) -> ServiceSettings:
    """A service that may publish one spec."""
    for name in ("public", "specs"):
        (tmp_path / name).mkdir()
    (tmp_path / "specs" / "people.toml").write_text("")
    (tmp_path / "specs" / "people.job.toml").write_text('data = ["a.parquet", "-b.parquet"]')
    return ServiceSettings(
        folder=tmp_path / "public",
        specs=tmp_path / "specs",
        tokens=tmp_path / "tokens.json",
        ledger=str(tmp_path / "budget.db"),
        limits=Limits(jobs=2),
    )


def done(order: PublishOrder, phase: Callable[[str], None]) -> None:
    """A job that goes well."""
    phase("counting age")
    phase("drawing noise")


def admin(settings: ServiceSettings, jobs: JobQueue, *, scope: str = "admin") -> Client:
    """Somebody who asks a steward's app, with a token of one scope."""
    built = FastAPI()
    built.include_router(publishing_router(settings, jobs=jobs))
    assert settings.tokens is not None
    token = TokenFile(settings.tokens, Clock()).create(scope, scopes=[scope])
    return Client(secure(built, settings, side="steward", now=Clock()), token)


def test_a_job_tells_its_phases_and_its_end(settings: ServiceSettings) -> None:
    """And no time at all: how long it took depends on the data."""
    jobs = JobQueue(done, 2)
    client = admin(settings, jobs)

    answer = client("POST", "/releases", json=BODY)
    jobs.join()
    told = client.get(f"/jobs/{answer.json()['id']}").json()

    assert answer.status_code == 202
    assert told == {
        "id": answer.json()["id"],
        "spec": "people",
        "name": "people-2026",
        "state": "done",
        "phases": ["counting age", "drawing noise"],
        "error": None,
    }
    assert client.get("/jobs").json() == {"jobs": [told]}


@pytest.mark.parametrize("scope", ["read", "feed"])
def test_only_admins_publish(settings: ServiceSettings, scope: str) -> None:
    """And only they see what was published how."""
    client = admin(settings, JobQueue(done, 2), scope=scope)

    assert kind(client("POST", "/releases", json=BODY)) == (403, "Forbidden")
    assert kind(client.get("/jobs")) == (403, "Forbidden")


def test_the_same_request_is_one_job(settings: ServiceSettings) -> None:
    """The same key again changes nothing; the same key for something else is refused."""
    jobs = JobQueue(done, 2)
    client = admin(settings, jobs)
    first, second = (client("POST", "/releases", json=BODY) for _ in range(2))
    jobs.join()

    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["id"] == second.json()["id"]
    assert kind(client("POST", "/releases", json=BODY | {"name": "other"})) == (409, "KeyReused")
    assert len(client.get("/jobs").json()["jobs"]) == 1


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"spec": "unknown"}, 404),
        ({"spec": "../people"}, 422),
        ({"spec": "people\n"}, 422),
        ({"name": "../people"}, 422),
        ({"name": "a/b"}, 422),
        ({"key": ""}, 422),
        ({"key": "a\nb"}, 400),
        ({"epsilon": 0}, 400),
        ({"epsilon": "NaN"}, 400),
        ({"epsilon": True}, 422),
        ({"rho": 0}, 400),
        ({"rho": True}, 422),
        ({"epsilon": 1, "rho": 1}, 400),
        ({"together": "age"}, 422),
        ({"together": [["age"]]}, 422),
        ({"together": [["age", ""]]}, 422),
        ({"together": [["age", "a\nb"]]}, 400),
        ({"together": [["a", "b"]] * 101}, 422),
        ({"options": [16]}, 422),
        ({"contributions": 1.5}, 422),
        ({"contributions": "--output=x"}, 400),
        ({"options": {"branching": 1.5}}, 422),
        ({"options": {"--output": "x"}}, 422),
        ({"options": {"branching": "1\n2"}}, 400),
        ({"options": {"a" + str(n): 1 for n in range(21)}}, 422),
        ({"data": f"/srv/{CANARY}"}, 422),
        ({"ledger": f"/srv/{CANARY}"}, 422),
    ],
)
def test_a_bad_request_starts_nothing(settings: ServiceSettings, said: dict[str, Any], status: int) -> None:
    """Where data and ledger are cannot be asked for."""
    jobs = JobQueue(done, 2)
    answer = admin(settings, jobs)("POST", "/releases", json=BODY | said)

    assert answer.status_code == status
    assert CANARY not in answer.text
    assert jobs.all() == []


def test_a_spec_without_data_is_refused(settings: ServiceSettings) -> None:
    """With what to write where."""
    assert settings.specs is not None
    (settings.specs / "people.job.toml").unlink()
    answer = admin(settings, JobQueue(done, 2))("POST", "/releases", json=BODY)

    assert kind(answer) == (400, "InvalidParameter")
    assert "people.job.toml" in answer.json()["error"]["message"]


def test_one_job_runs_at_a_time_and_few_wait(settings: ServiceSettings) -> None:
    """The next one waits for its end; more than may wait are refused."""
    begun, go_on, running = threading.Event(), threading.Event(), []

    def slow(order: PublishOrder, phase: Callable[[str], None]) -> None:
        running.append(order.key)
        begun.set()
        go_on.wait()

    jobs = JobQueue(slow, 2)
    jobs.submit(ORDER)
    begun.wait()
    for key in ("k2", "k3"):
        jobs.submit(PublishOrder(spec="people", name=key, key=key))

    with pytest.raises(Refusal, match="too many jobs"):
        jobs.submit(PublishOrder(spec="people", name="k4", key="k4"))
    assert [job.state for job in jobs.all()] == ["running", "queued", "queued"]
    assert running == ["k1"]
    go_on.set()
    jobs.join()
    assert running == ["k1", "k2", "k3"]


def test_a_failed_job_may_be_tried_again(settings: ServiceSettings) -> None:
    """The ledger knows whether its key was charged; an exception of the service's own is not shown."""

    def fails(order: PublishOrder, phase: Callable[[str], None]) -> str | None:
        if order.name == "broken":
            raise RuntimeError(CANARY)
        return "refused"

    jobs = JobQueue(fails, 2)
    first, _ = jobs.submit(ORDER)
    jobs.join()
    again, new = jobs.submit(ORDER)
    jobs.submit(PublishOrder(spec="people", name="broken", key="k2"))
    jobs.join()

    assert (new, again.id != first.id) == (True, True)
    assert [job.error for job in jobs.all()] == ["refused", "refused", "the job could not be started"]


def test_a_key_belongs_to_one_order() -> None:
    """An epsilon more is another order."""
    jobs = JobQueue(done, 2)
    jobs.submit(ORDER)

    with pytest.raises(KeyReused):
        jobs.submit(PublishOrder(spec="people", name="people-2026", key="k1", epsilon=Fraction(2)))


def test_the_command_is_a_list_of_arguments(settings: ServiceSettings) -> None:
    """No shell reads it, and nothing of a request can be taken for an option."""
    order = PublishOrder(spec="people", name="people-2026", key="--output=/x; rm -rf", epsilon=Fraction(1, 2))
    command = Publisher(settings).command(order)

    assert command[1:5] == ["-P", "-m", "partita", "publish"]
    assert "--key=--output=/x; rm -rf" in command
    assert "--epsilon=1/2" in command
    assert f"--ledger={settings.ledger}" in command
    assert f"--output={settings.folder}/people-2026.release.parquet" in command
    assert command[-4:] == ["--json", "--", "a.parquet", "-b.parquet"]


def test_an_order_may_be_in_rho(settings: ServiceSettings) -> None:
    """It reaches the command exactly, and epsilon of the spec does not count then."""
    client = admin(settings, (jobs := JobQueue(done, 2)))
    answer = client("POST", "/releases", json={**BODY, "rho": "1/8"})
    [job] = jobs.all()

    assert answer.status_code == 202
    assert job.order.rho == Fraction(1, 8)
    assert "--rho=1/8" in Publisher(settings).command(job.order)


def test_columns_that_matter_together_are_arguments(settings: ServiceSettings) -> None:
    """Each set is one argument, as the command line reads names between commas."""
    order = replace(ORDER, together=(("age", "salary"), ("-x", 'a "large", name')))
    command = Publisher(settings).command(order)

    assert [each for each in command if each.startswith("--together")] == [
        '--together="age","salary"',
        '--together="-x","a ""large"", name"',
    ]
    jobs = JobQueue(done, 2)
    jobs.submit(ORDER)
    with pytest.raises(KeyReused):
        jobs.submit(order)


def test_options_of_the_mechanism_are_arguments(settings: ServiceSettings) -> None:
    """Each is one argument with its value as text; a job with others is another one."""
    asked = {"spec": "people", "name": "x", "key": "k", "options": {"root": False, "branching": 16}}
    order = PublishRequest.model_validate(asked).order()
    command = Publisher(settings).command(replace(ORDER, options=order.options))

    assert [each for each in command if each.startswith("--option")] == [
        "--option=branching=16",
        "--option=root=false",
    ]
    jobs = JobQueue(done, 2)
    jobs.submit(ORDER)
    with pytest.raises(KeyReused):
        jobs.submit(replace(ORDER, options=order.options))


@pytest.mark.parametrize(
    ("asked", "argument"),
    [
        (8, "8"),
        ("auto", f"auto among {','.join(map(str, USUAL))} with 1/20"),
        ("auto among 1,5 with 0.1", "auto among 1,5 with 1/10"),
    ],
)
def test_a_bound_on_rows_per_person_is_an_argument(
    settings: ServiceSettings, asked: object, argument: str
) -> None:
    """A number, or what it is chosen among; another one is another job."""
    said = {"spec": "people", "name": "x", "key": "k", "contributions": asked}
    order = PublishRequest.model_validate(said).order()
    command = Publisher(settings).command(replace(ORDER, contributions=order.contributions))

    assert f"--contributions={argument}" in command
    jobs = JobQueue(done, 2)
    jobs.submit(ORDER)
    with pytest.raises(KeyReused):
        jobs.submit(replace(ORDER, contributions=order.contributions))


def test_the_environment_of_a_job_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the service was started with gets there but where programs are."""
    monkeypatch.setenv("SECRET_OF_THE_SERVICE", CANARY)

    assert CANARY not in publishing._environment().values()
    assert "SECRET_OF_THE_SERVICE" not in publishing._environment()


@pytest.mark.parametrize(
    ("said", "phases", "words"),
    [
        (
            "partita: counting a ...... 12.3 s\r\npartita: drawing noise ...",
            ["counting a", "drawing noise"],
            None,
        ),
        (
            "partita: counting a ... stopped\r\npartita: refused: ledger '/srv/b.db' has 1/2 left\r\n",
            ["counting a"],
            "ledger 'b.db' has 1/2 left",
        ),
        ("Traceback: secret\r\n", [], "the job ended without a message; run it by hand to see why"),
    ],
)
def test_what_a_process_says_is_read_for_phases_and_last_words(
    said: str, phases: list[str], words: str | None
) -> None:
    """However it is cut into pieces; times and folders are dropped, and what is not ours is."""
    heard: list[str] = []
    told = TerminalOutput(heard.append)
    for sign in said:
        told.read(sign)

    assert heard == phases
    assert words is None or told.last_error == words
    assert "12.3" not in str(heard) + told.last_error
