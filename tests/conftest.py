"""What all tests share."""

import pytest
from hypothesis import HealthCheck, settings

from beaver_hostspecs.testing import Canary, make_canary

# No deadline and no complaint about slowness: how fast this machine is today is not what tests are about.
settings.register_profile("beaver", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("beaver")


@pytest.fixture
def canary() -> Canary:
    """A secret that must not turn up anywhere; `canary.assert_clean(text)` proves it."""
    return make_canary()
