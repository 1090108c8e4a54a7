"""Publishing over HTTP, for admins: `partita publish` from a spec on the disk of the server."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from partita.guarantee import positive_epsilon
from partita.ledger.entries import checked_text
from partita.service.settings import NAME, Settings
from partita.service.steward.jobs import Job, Jobs, Order
from partita.service.steward.publish_process import Publisher
from partita.service.web.errors import ERRORS, not_found

__all__ = ["publishing_router"]

_ACCEPTED: Final = 202

Name = Annotated[str, Field(pattern=f"^{NAME.pattern}$")]


class Publishing(BaseModel):
    """What is to be published. Where the data are is written on the server, and cannot be asked for."""

    model_config = ConfigDict(extra="forbid")

    spec: Name = Field(description="a spec in the folder of specs, without `.toml`", examples=["people"])
    name: Name = Field(description="what the release is to be called", examples=["people-2026"])
    key: str = Field(
        description="makes the request repeatable: the same key is charged once",
        min_length=1,
        max_length=200,
        examples=["2026-11-people"],
    )
    epsilon: StrictStr | StrictInt | StrictFloat | None = Field(
        default=None, description="what it may cost; default: what the spec says", examples=["1/2", 1]
    )

    def order(self) -> Order:
        """The same, checked and exact."""
        epsilon = None if self.epsilon is None else positive_epsilon(self.epsilon)
        return Order(spec=self.spec, name=self.name, key=checked_text(self.key, "key"), epsilon=epsilon)


class JobBody(BaseModel):
    """A job of publishing; no times, since how long it takes depends on the data."""

    id: str
    spec: str
    name: str
    state: str = Field(description="queued, running, done or failed")
    phases: list[str] = Field(description="what it has begun so far: counting, drawing noise, writing")
    error: str | None = Field(description="why it failed")

    @staticmethod
    def of(job: Job) -> JobBody:
        return JobBody(
            id=job.id,
            spec=job.order.spec,
            name=job.order.name,
            state=job.state,
            phases=list(job.phases),
            error=job.error,
        )


class JobsBody(BaseModel):
    """Every job that the process remembers, the oldest first."""

    jobs: list[JobBody]


def publishing_router(settings: Settings, *, jobs: Jobs | None = None) -> APIRouter:
    """The addresses of publishing; the guard lets in admins only."""
    publisher = Publisher(settings)
    jobs = jobs or Jobs(publisher.run, settings.limits.jobs)
    router = APIRouter(tags=["publishing"], responses=_errors())

    @router.post("/releases", status_code=_ACCEPTED, summary="Publish a release from a spec of the server")
    def publish(publishing: Publishing, response: Response) -> JobBody:
        order = publishing.order()
        publisher.check(order.spec)
        job, new = jobs.submit(order)
        response.status_code = _ACCEPTED if new else 200
        return JobBody.of(job)

    @router.get("/jobs", summary="Every job")
    def listed() -> JobsBody:
        return JobsBody(jobs=[JobBody.of(job) for job in jobs.all()])

    @router.get("/jobs/{id}", summary="One job")
    def one(id: str) -> JobBody:
        job = jobs.get(id)
        if job is None:
            raise not_found("job")
        return JobBody.of(job)

    return router


def _errors() -> dict[int | str, dict[str, Any]]:
    return {200: {"model": JobBody, "description": "The job of the same request, made before"}, **ERRORS}
