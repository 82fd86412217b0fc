"""Claims as pages show them: what each says, what is stored of it, what it says at another setting."""

from __future__ import annotations

import shlex
import threading
import warnings
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from pathlines.claim import CLAIMS, Outcome
from pathlines.claim.base import Claim
from pathlines.draw.report import card_html
from pathlines.foundation.bounds import growth
from pathlines.foundation.errors import ArgumentError, PathlinesWarning
from pathlines.foundation.marks import standing
from pathlines.foundation.setting import Setting
from pathlines.foundation.typeset import as_html
from pathlines.store.results import Store
from pathlines.sweep.verify import Job, claims_aside, recalled, verify_aside
from pathlines.view.site.sheet import with_word, words_of

MOST_SECONDS = 60.0
"""What a claim may be expected to take on a page."""
PATIENCE = 90.0
"""When it is ended all the same."""
UNMEASURED = 6.0
"""Seconds that a claim is taken to cost at quick size if nobody measured it; the longest takes 40."""
SET = "set."
"""Before the names of settings in an address."""
PRESENT = ("claim", "verdict", "words", "family")
"""What an address may say beside them."""
_DRAWING = threading.Lock()
"""Matplotlib's style is of the whole process."""
ASIDE = claims_aside()


@cache
def entries() -> list[dict[str, Any]]:
    """All claims, by family and paper; what they state is markup made here, and nothing else is."""
    printed = defaultdict(list)
    for id, claim in CLAIMS.items():
        if claim.corrected_by:
            printed[claim.corrected_by].append(id)
    found = [_entry(claim) | {"printed": printed[id]} for id, claim in CLAIMS.items()]
    return sorted(found, key=lambda e: (e["family"], e["year"], e["paper"], e["id"]))


def _entry(claim: Claim[Any]) -> dict[str, Any]:
    return {
        "id": claim.id,
        "family": claim.id.split("/")[0],
        "paper": claim.paper.citation,
        "arxiv": claim.paper.arxiv,
        "year": claim.paper.year,
        "label": as_html(claim.label),
        "statement": as_html(claim.statement),
        "where": as_html(claim.where),
        "standing": as_html(standing(claim.marks, claim.convention)),
        "expected": claim.expected,
        "corrected_by": claim.corrected_by,
        "alias_of": claim.alias_of,
    }


def verdicts() -> dict[str, str]:
    """Of the claims whose outcome at quick size is stored."""
    store = Store()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PathlinesWarning)
        found = {id: recalled(store, Job(id, "quick", {})) for id in CLAIMS}
    return {id: outcome.verdict for id, outcome in found.items() if outcome is not None}


def claim_of(asked: Mapping[str, str]) -> tuple[Claim[Any], Setting]:
    """The claim of an address and its setting; unknown names and what is not allowed are errors in one line."""
    claim = CLAIMS[asked.get("claim", "")[:80]]
    setting: Any = claim.quick
    for name, text in asked.items():
        if name.startswith(SET):
            setting = with_word(setting, name[len(SET) :][:80], text)
        elif name not in PRESENT:
            raise ArgumentError(f"This page has no setting `{name[:80]}`; those of a claim begin with {SET}")
    return claim, setting


def job_of(claim: Claim[Any], setting: Setting) -> Job:
    """What `pathlines verify` would do."""
    names = words_of(setting, claim.quick)
    return Job(claim.id, "quick", {name: msgspec.to_builtins(getattr(setting, name)) for name in names})


def check_cost(claim: Claim[Any], setting: Setting) -> float:
    """The seconds it is expected to take, or an error where they are too many."""
    cost = claim.cost("quick")
    seconds = (UNMEASURED if cost is None else max(cost.seconds, 0.1)) * growth(claim.quick, setting)
    if seconds > MOST_SECONDS:
        raise ArgumentError(
            f"Claim {claim.id} at this setting would take some {seconds:.2g} s, but a page waits {MOST_SECONDS:g} s; "
            f"`pathlines verify {claim.id}` has no such limit."
        )
    return seconds


def stored(claim: Claim[Any], setting: Setting) -> dict[str, Any]:
    """What is stored at that setting, or that nothing is."""
    job = job_of(claim, setting)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PathlinesWarning)
        outcome = recalled(Store(), job)
    return said(claim, setting, outcome)


def run(claim: Claim[Any], setting: Setting) -> dict[str, Any]:
    """The same, computed where nothing is stored."""
    finished = verify_aside(job_of(claim, setting), ASIDE, Store(), PATIENCE)
    if finished.outcome is None:
        raise ArgumentError(f"Claim {claim.id} did not run: {finished.failure.partition(': ')[2] or finished.failure}.")
    return said(claim, setting, finished.outcome, seconds=None if finished.stored else finished.outcome.seconds)


def said(claim: Claim[Any], setting: Setting, outcome: Outcome | None, seconds: float | None = None) -> dict[str, Any]:
    """A claim at a setting, with its outcome where there is one."""
    cost = claim.cost("quick")
    return {
        "id": claim.id,
        "html": "" if outcome is None else _card(outcome),
        "verdict": "" if outcome is None else outcome.verdict,
        "seconds": seconds,
        "cost": None if cost is None else cost.seconds,
        "tolerances": [[name, t.kind, t.reason] for name, t in claim.within.items()],
        "command": command(claim, setting),
        "python": python(claim, setting),
    }


def _card(outcome: Outcome) -> str:
    with _DRAWING:
        return card_html(outcome, lambda id: f"/theory?claim={id}")


def command(claim: Claim[Any], setting: Setting) -> str:
    """A line for a shell: the same numbers."""
    own = [w for k, v in words_of(setting, claim.quick).items() for w in ("--set", f"{k}={v}")]
    return shlex.join(["pathlines", "verify", claim.id, *own])


def python(claim: Claim[Any], setting: Setting) -> str:
    """Lines of Python: the same numbers."""
    own = {name: msgspec.to_builtins(getattr(setting, name)) for name in words_of(setting, claim.quick)}
    more = f", changes={own!r}" if own else ""
    return f"import pathlines as pl\n(done,) = pl.verify({claim.id!r}{more})\ndone.outcome.verdict, done.outcome.checks"
