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


def test_a_rate_holds_at_every_depth():
    rates = Rates(attention=0.001)
    assert rates.prefill_s(500, 100) == 0.0, "unknown yet"
    rates.learn_prefill(2.0 * 1.05, 0, 100)
    assert rates.prefill_s(0, 100) == pytest.approx(2.1)
    assert rates.prefill_s(1000, 100) == pytest.approx(2.0 * 2.05)
    before = rates.prefill_token_s.value
    rates.learn_prefill(2.0 * 2.05, 1000, 100)
    assert rates.prefill_token_s.value == pytest.approx(before), "deep chunks do not make the machine slower"


def test_rates_outlive_the_program():
    rates = Rates()
    rates.restore(measured().state())
    assert rates.prefill_token_s.value == pytest.approx(0.01)
    assert rates.ram_byte_s.value is None
    for bad in ({}, {"values": np.zeros(3)}, {"values": np.ones(2)}, {"values": np.ones(3, np.int32)}):
        with pytest.raises(DamagedState):
            rates.restore(bad)
    assert rates.prefill_token_s.value == pytest.approx(0.01)
