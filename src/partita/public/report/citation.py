"""What to cite: the library, and the papers behind the mechanisms of a release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from partita.public.base.kinds import ReleaseKind

PAPERS: Final[Mapping[str, str]] = {
    "DMNS06": """@inproceedings{DMNS06,
  author    = {Cynthia Dwork and Frank McSherry and Kobbi Nissim and Adam Smith},
  title     = {Calibrating Noise to Sensitivity in Private Data Analysis},
  booktitle = {Theory of Cryptography, TCC 2006},
  year      = {2006},
}""",
    "DNRR15": """@inproceedings{DNRR15,
  author    = {Cynthia Dwork and Moni Naor and Omer Reingold and Guy N. Rothblum},
  title     = {Pure Differential Privacy for Rectangle Queries via Private Partitions},
  booktitle = {Advances in Cryptology: ASIACRYPT 2015},
  year      = {2015},
}""",
    "DNPR10": """@inproceedings{DNPR10,
  author    = {Cynthia Dwork and Moni Naor and Toniann Pitassi and Guy N. Rothblum},
  title     = {Differential Privacy under Continual Observation},
  booktitle = {Symposium on Theory of Computing, STOC 2010},
  year      = {2010},
}""",
    "SU": """@misc{SU,
  author = {Adam Smith and Jonathan Ullman},
  title  = {Query release},
  note   = {Lecture notes on differential privacy},
}""",
    "DR14": """@article{DR14,
  author  = {Cynthia Dwork and Aaron Roth},
  title   = {The Algorithmic Foundations of Differential Privacy},
  journal = {Foundations and Trends in Theoretical Computer Science},
  year    = {2014},
}""",
    "HLM12": """@inproceedings{HLM12,
  author    = {Moritz Hardt and Katrina Ligett and Frank McSherry},
  title     = {A Simple and Practical Algorithm for Differentially Private Data Release},
  booktitle = {Advances in Neural Information Processing Systems 25, NIPS 2012},
  year      = {2012},
}""",
    "HLY21": """@inproceedings{HLY21,
  author    = {Ziyue Huang and Yuting Liang and Ke Yi},
  title     = {Instance-optimal Mean Estimation Under Differential Privacy},
  booktitle = {Advances in Neural Information Processing Systems 34, NeurIPS 2021},
  year      = {2021},
}""",
    "KDD22": """@inproceedings{KDD22,
  author    = {Yuan Qiu and Wei Dong and Ke Yi and Bin Wu and Feifei Li},
  title     = {Releasing Private Data for Numerical Queries},
  booktitle = {Conference on Knowledge Discovery and Data Mining, KDD 2022},
  year      = {2022},
}""",
    "CKS20": """@inproceedings{CKS20,
  author    = {Cl{\\'e}ment L. Canonne and Gautam Kamath and Thomas Steinke},
  title     = {The Discrete {G}aussian for Differential Privacy},
  booktitle = {Advances in Neural Information Processing Systems 33, NeurIPS 2020},
  year      = {2020},
}""",
}
"""BibTeX entries by their keys in docs/references.md."""

_NOISE: Final = "CKS20"


def citation(mechanisms: Iterable[str], *, version: str) -> str:
    """BibTeX entries for the library, for the papers behind the mechanisms, and for exact noise.

    The papers are those that the kinds of releases name; of an unknown mechanism there are none.

    >>> [line for line in citation(["tree"], version="0.1.0").splitlines() if line.startswith("@")]
    ['@software{partita,', '@misc{SU,', '@inproceedings{DNPR10,', '@inproceedings{CKS20,']
    """
    behind = {name: keys for kind in ReleaseKind.kinds().values() for name, keys in kind.papers.items()}
    keys = dict.fromkeys(key for name in mechanisms for key in behind.get(name, ()))
    return "\n\n".join([_library(version), *(PAPERS[key] for key in [*keys, _NOISE])]) + "\n"


def _library(version: str) -> str:
    return f"""@software{{partita,
  author  = {{{{The Partita developers}}}},
  title   = {{Partita: differentially private statistics with exact noise}},
  version = {{{version}}},
}}"""
