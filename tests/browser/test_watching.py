"""The tests themselves notice what must not happen: a page that complains, or that talks to others."""

from __future__ import annotations

import pytest

from .conftest import Open

pytestmark = pytest.mark.browser

_SCRIPT = """const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script)"""


def test_an_error_on_the_console_is_noticed(opened: Open) -> None:
    """A planted error is among the complaints, and so is an exception."""
    opening = opened()
    page = opening.go("/")
    page.evaluate("console.error('planted'); setTimeout(() => { throw new Error('thrown'); })")
    page.wait_for_timeout(100)

    assert opening.complaints == ["planted", "thrown"]
    opening.complaints.clear()


def test_a_request_to_elsewhere_is_noticed_and_refused(opened: Open) -> None:
    """The policy of the service stops what is asked of another host, and the tests hear of it."""
    opening = opened()
    page = opening.go("/")
    refused = page.evaluate("fetch('http://127.0.0.2:9/').then(() => false, () => true)")

    assert refused
    assert any("Content Security Policy" in complaint for complaint in opening.complaints)
    opening.complaints.clear()


def test_a_script_in_the_document_does_not_run(opened: Open) -> None:
    """Inline script is refused by the policy."""
    opening = opened()
    page = opening.go("/")
    page.evaluate(_SCRIPT)

    assert page.evaluate("window.ran") is None
    assert opening.complaints != []
    opening.complaints.clear()
