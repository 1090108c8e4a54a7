"""The libraries that are measured: pinned versions, what each is asked, and with which settings."""

from __future__ import annotations

from dataclasses import dataclass

NUMPY = "numpy==2.4.6"


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A method of a worker that answers a question."""

    question: str
    method: str
    title: str
    settings: str
    releases: int = 5


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A library with an environment of its own, and the worker that runs in it."""

    worker: str
    title: str
    requirements: tuple[str, ...]
    imports: str
    offers: tuple[Offer, ...]
    noise: bool = False
    workers: str = "benchmarks.peers"

    @property
    def module(self) -> str:
        """What runs in its environment."""
        return f"{self.workers}.{self.worker}"

    @property
    def version(self) -> str:
        """Of the library itself, which comes first among its requirements."""
        return self.requirements[0].partition("==")[2]


OPENDP = Peer(
    worker="opendp",
    title="OpenDP",
    requirements=("opendp==0.16.0", NUMPY),
    imports="import opendp.prelude",
    noise=True,
    offers=(
        Offer(
            question="ranges",
            method="ranges",
            title="OpenDP tree",
            settings="b-ary tree with its least squares, branching by `choose_branching_factor`",
        ),
        Offer(
            question="deciles",
            method="tree-quantiles",
            title="OpenDP tree",
            settings="`make_quantiles_from_counts` of the same tree",
        ),
        Offer(
            question="deciles",
            method="quantiles",
            title="OpenDP quantile",
            settings="`make_private_quantile` among all cells, a ninth of epsilon each",
        ),
        Offer(
            question="median",
            method="quantiles",
            title="OpenDP quantile",
            settings="`make_private_quantile` among all cells",
        ),
        Offer(
            question="median",
            method="spread-median",
            title="OpenDP quantile, spread",
            settings="the same of rows spread within their cells",
            releases=10,
        ),
        Offer(
            question="sums",
            method="sums",
            title="OpenDP",
            settings="sums below its private 99% quantile for 2/5 of epsilon (the best of ten tried)",
            releases=10,
        ),
        Offer(
            question="means",
            method="means",
            title="OpenDP",
            settings="the same cap, half of the rest for sums, half for counts",
            releases=10,
        ),
    ),
)
DIFFPRIVLIB = Peer(
    worker="diffprivlib",
    title="diffprivlib",
    requirements=("diffprivlib==0.6.6", "scikit-learn==1.6.1", NUMPY),
    imports="import diffprivlib",
    noise=True,
    offers=(
        Offer(question="ranges", method="ranges", title="diffprivlib", settings="`histogram` of all cells"),
        Offer(
            question="deciles",
            method="quantiles",
            title="diffprivlib",
            settings="`quantile` of rows spread within their cells; it divides epsilon among the nine",
        ),
        Offer(
            question="median",
            method="quantiles",
            title="diffprivlib",
            settings="`quantile` of rows spread within their cells",
        ),
        Offer(question="boxes", method="boxes", title="diffprivlib", settings="`histogram2d` of all cells"),
        Offer(
            question="sums",
            method="declared-sums",
            title="diffprivlib, declared",
            settings="`sum`, declared bounds",
        ),
        Offer(
            question="sums",
            method="capped-sums",
            title="diffprivlib, capped",
            settings="`sum` below its own 99% quantile for 2/5 of epsilon (the best of ten tried)",
        ),
        Offer(
            question="means",
            method="capped-means",
            title="diffprivlib, capped",
            settings="`mean` below the same cap; the size of a group is public, and an empty one counts as 0",
        ),
    ),
)
GOOGLE = Peer(
    worker="pydp",
    title="Google (python-dp)",
    requirements=("python-dp==1.1.5", NUMPY),
    imports="import pydp.algorithms.laplacian",
    noise=True,
    offers=(
        Offer(
            question="deciles",
            method="quantiles",
            title="Google quantile tree",
            settings="height 4, branching 16 as in PipelineDP: a leaf for each cell; Laplace noise",
            releases=10,
        ),
        Offer(
            question="median",
            method="quantiles",
            title="Google quantile tree",
            settings="the same",
            releases=10,
        ),
        Offer(
            question="median",
            method="median",
            title="Google Median",
            settings="`Median`, declared bounds",
            releases=10,
        ),
        Offer(
            question="sums",
            method="sums",
            title="Google",
            settings="`BoundedSum`; it finds bounds itself, and a group without counts as 0",
        ),
        Offer(
            question="means",
            method="means",
            title="Google",
            settings="`BoundedMean`; it finds bounds itself, and a group without counts as 0",
        ),
    ),
)
SMARTNOISE_SQL = Peer(
    worker="smartnoise_sql",
    title="SmartNoise SQL",
    requirements=("smartnoise-sql==1.0.10",),
    imports="import snsql",
    offers=(
        Offer(
            question="sums",
            method="sums",
            title="SmartNoise SQL",
            settings="`SUM ... GROUP BY`, bound by its `approx_bounds` for a fifth of epsilon",
            releases=3,
        ),
        Offer(
            question="means",
            method="means",
            title="SmartNoise SQL",
            settings="`AVG ... GROUP BY`, the same bound, half of the rest for sums, half for counts",
            releases=3,
        ),
    ),
)
SMARTNOISE_SYNTH = Peer(
    worker="smartnoise_synth",
    title="SmartNoise Synthesizers",
    requirements=("smartnoise-synth==1.0.8",),
    imports="import snsynth",
    offers=(
        Offer(
            question="boxes",
            method="boxes",
            title="SmartNoise MWEM",
            settings="64 x 64 public bins, `marginal_width=1`, `add_ranges=True`, the number of rows public",
            releases=3,
        ),
    ),
)
MBI = Peer(
    worker="mbi",
    title="mbi (private-pgm)",
    requirements=("mbi==2.0.0",),
    imports="import mbi",
    offers=(
        Offer(
            question="boxes",
            method="boxes",
            title="private-pgm",
            settings="both axes and a 32 x 32 grid, a third of epsilon each, 2,000 steps of mirror descent",
            releases=3,
        ),
    ),
)
PURE_LDP = Peer(
    worker="pure_ldp",
    title="pure-ldp",
    requirements=(
        "pure-ldp==1.2.0",
        "scikit-learn==1.6.1",
        "statsmodels==0.14.6",
        "matplotlib==3.10.7",
        "xxhash==3.6.0",
        NUMPY,
    ),
    imports="import pure_ldp.frequency_oracles",
    offers=(
        Offer(
            question="frequencies",
            method="direct",
            title="pure-ldp DE",
            settings="direct encoding",
            releases=5,
        ),
        Offer(
            question="frequencies",
            method="unary",
            title="pure-ldp OUE",
            settings="optimized unary encoding",
            releases=3,
        ),
        Offer(
            question="frequencies",
            method="hashing",
            title="pure-ldp FLH",
            settings="fast local hashing, 1,000 hash functions, its optimal range",
            releases=3,
        ),
        Offer(
            question="frequencies",
            method="hadamard",
            title="pure-ldp HR",
            settings="Hadamard response",
            releases=5,
        ),
        Offer(
            question="local-ranges",
            method="ranges",
            title="pure-ldp HR, summed",
            settings="sums of the cells of Hadamard response; the library has nothing for ranges",
            releases=5,
        ),
    ),
)

PEERS = (OPENDP, DIFFPRIVLIB, GOOGLE, SMARTNOISE_SQL, SMARTNOISE_SYNTH, MBI, PURE_LDP)
