import numpy as np
import pytest

from core.engine.rates import Rates
from core.errors import DamagedState


def measured():
    rates = Rates()
    rates.prefill_token_s.learn(1.0, 100)
    rates.ssd_byte_s.learn(1.0, 1000)
    return rates


def test_what_loading_saves():
    rates = measured()
    assert rates.saved_share(rates.ssd_byte_s, 100, 100) == pytest.approx(0.9)
    assert rates.saved_share(rates.ssd_byte_s, 5000, 100) == 0.0
    assert rates.saved_share(rates.ram_byte_s, 5000, 100) == 1.0, "unknown yet"
    assert rates.loading_pays(rates.ssd_byte_s, 100, 100)
    assert not rates.loading_pays(rates.ssd_byte_s, 5000, 100)


def test_rates_outlive_the_program():
    rates = Rates()
    rates.restore(measured().state())
    assert rates.prefill_token_s.value == pytest.approx(0.01)
    assert rates.ram_byte_s.value is None
    for bad in ({}, {"values": np.zeros(3)}, {"values": np.ones(2)}, {"values": np.ones(3, np.int32)}):
        with pytest.raises(DamagedState):
            rates.restore(bad)
    assert rates.prefill_token_s.value == pytest.approx(0.01)
