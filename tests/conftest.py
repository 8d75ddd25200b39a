"""What all tests share: how hard the property tests try.

`FORECOURT_LONG=1` tries much harder. Under `CI=true` the examples are the same on every run.
"""

import os

from hypothesis import HealthCheck, settings

# Without a deadline: the properties say what is true of every value, never how long a value takes.
settings.register_profile(
    "forecourt",
    deadline=None,
    max_examples=1000 if os.environ.get("FORECOURT_LONG") == "1" else 60,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("forecourt")
