"""Sample feeds, one per exporter, made to the shapes that FEEDS.md describes, with the dirt that real ones have.

Every sample is the same on every machine, and comes with the list of the faults that were planted: each with the line,
the field and the reason under which a report is to name it.

``python -m tests.feed.samples.make FOLDER`` writes the files.
"""

import sys
from pathlib import Path

from tests.feed.samples.autotrader import autotrader
from tests.feed.samples.cargurus import cargurus
from tests.feed.samples.dealer_com import dealer_com
from tests.feed.samples.google import google
from tests.feed.samples.homenet import homenet_csv, homenet_xml
from tests.feed.samples.meta import meta_csv, meta_xml
from tests.feed.samples.schema_org import schema_org_graph, schema_org_page
from tests.feed.samples.sheet import Sample
from tests.feed.samples.vauto import vauto

__all__ = ["samples"]


def samples() -> list[Sample]:
    """Return every sample."""
    return [
        homenet_csv(), homenet_xml(), vauto(), dealer_com(), autotrader(), cargurus(), google(), meta_csv(), meta_xml(),
        schema_org_page(), schema_org_graph(),
    ]  # fmt: skip


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for sample in samples():
        (folder / sample.name).write_bytes(sample.data)
