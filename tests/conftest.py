"""Fixtures that every test may use."""

import os
from collections.abc import Iterator

import hypothesis
import pytest

import triton_viz
from gt.client import Client, session
from gt.server.local import LocalConnection, LocalServer

# Elsewhere hypothesis looks for new cases every time; in CI the same commit gives the same answer.
hypothesis.settings.register_profile("tapestry", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("tapestry")


@pytest.fixture(params=["pytorch", "numpy", "jax"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A GT system of its own, once per engine; `gt.*` uses it."""
    client = Client(LocalConnection(LocalServer(request.param)))
    monkeypatch.setattr(session, "_current", client)
    yield client
    client.close()


@pytest.fixture
def no_launches() -> Iterator[None]:
    """Start from no launches, and put those of other tests back."""
    before = list(triton_viz.launches)
    triton_viz.clear()
    yield
    triton_viz.launches[:] = before
