"""Samples of indexing ops."""

from tests.samples.base import Sample

SAMPLES: list[Sample] = []
