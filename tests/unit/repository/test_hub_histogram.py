"""The hub's own histogram of starts, which `benchmarks.user_seconds` holds the recorder against."""

import pytest

from benchmarks.user_seconds import SPAWNS, quantile, spawns

METRICS = f"""
{SPAWNS}_bucket{{le="1.0",status="success"}} 3.0
{SPAWNS}_bucket{{le="1.5",reason="",status="success"}} 4.0
{SPAWNS}_bucket{{le="+Inf",status="failure"}} 9.0
{SPAWNS}_sum{{status="success"}} 3.25
"""


def test_a_quantile_lies_evenly_within_its_bucket_and_what_is_missing_is_named() -> None:
    buckets, total = spawns(METRICS)
    assert ([number for _, number in buckets], total) == ([3, 4], 3.25)
    assert [quantile(buckets, share) for share in (0.25, 0.75, 1.0)] == [
        pytest.approx(1 / 3),
        1.0,
        1.5,
    ]
    for missing in ("bucket", "sum"):
        with pytest.raises(ValueError, match=f"the hub's metrics lack {SPAWNS}_{missing}"):
            spawns(METRICS.replace(f"_{missing}", "_other"))
