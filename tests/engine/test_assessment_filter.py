"""Filters, sliding statistics, percentiles and spectral estimators on signals with known answers."""

import numpy as np
import pytest
from scipy.stats import chi2

from railsweep.engine import InputError
from railsweep.engine.assessment_filter import (
    band_pass,
    extreme,
    low_pass,
    percentile,
    rms,
    sample_rate,
    sliding_mean,
    sliding_rms,
    weighted,
)
from railsweep.engine.assessment_spectrum import transfer_function, welch

RATE = 400.0
T = np.arange(0.0, 60.0, 1.0 / RATE)


def sine(f, amplitude=1.0):
    return amplitude * np.sin(2 * np.pi * f * T)


def late(values):
    """The second half, whole periods of any whole frequency."""
    return values[values.size // 2 :]


@pytest.mark.parametrize("f", [1.0, 5.0, 10.0, 20.0, 30.0, 40.0])
def test_low_pass_is_a_butterworth_of_fourth_order(f):
    gain = rms(late(low_pass(sine(f), RATE, 20.0))) * np.sqrt(2.0)
    # the bilinear transform maps f to tan(pi f / rate), with the corner kept in its place
    warped = np.tan(np.pi * f / RATE) / np.tan(np.pi * 20.0 / RATE)
    assert gain == pytest.approx(1.0 / np.sqrt(1.0 + warped**8), rel=1e-6)


def test_low_pass_starts_in_the_steady_state_and_keeps_constants():
    assert np.abs(low_pass(np.full(500, 7.0), RATE, 20.0) - 7.0).max() < 1e-9
    assert np.abs(band_pass(np.full(500, 7.0), RATE, 0.4, 10.0)).max() < 1e-9


@pytest.mark.parametrize("f", [0.2, 0.4, 1.0, 4.0, 10.0, 15.0])
def test_band_pass_gain(f):
    gain = rms(late(band_pass(sine(f), RATE, 0.4, 10.0))) * np.sqrt(2.0)
    x = np.tan(np.pi * f / RATE)
    low, high = np.tan(np.pi * 0.4 / RATE) / x, x / np.tan(np.pi * 10.0 / RATE)
    assert gain == pytest.approx(1.0 / np.sqrt((1.0 + low**8) * (1.0 + high**8)), rel=2e-3)


def test_filters_refuse_what_the_samples_cannot_hold():
    with pytest.raises(InputError, match="sample_s"):
        low_pass(T, 40.0, 20.0)
    with pytest.raises(InputError, match="uniform"):
        sample_rate(np.array([0.0, 0.1, 0.2, 0.35, 0.4, 0.5, 0.6, 0.7]))
    with pytest.raises(InputError, match="samples"):
        sample_rate(np.arange(3.0))
    assert sample_rate(T) == pytest.approx(RATE)


def test_weighting_in_the_frequency_domain_is_the_closed_form():
    """A first-order low-pass answers a step of a sine as the differential equation says, transient and all."""
    f, tau = 3.0, 0.2
    found = weighted(sine(f), RATE, lambda x: 1.0 / (1.0 + 2j * np.pi * x * tau))
    w = 2 * np.pi * f
    exact = (np.sin(w * T) - w * tau * np.cos(w * T) + w * tau * np.exp(-T / tau)) / (1.0 + (w * tau) ** 2)
    assert np.abs(found - exact).max() < 2e-3
    assert rms(late(found)) == pytest.approx(1.0 / np.sqrt(2.0 * (1.0 + (w * tau) ** 2)), rel=1e-5)


def test_sliding_mean_and_rms_are_exact_for_lines_and_known_for_sines():
    x = np.cumsum(np.random.default_rng(1).uniform(0.05, 0.2, 400))
    mean = sliding_mean(x, 3.0 * x - 1.0, 2.0, 0.5)
    starts = x[0] + 0.5 * np.arange(mean.size)
    np.testing.assert_allclose(mean, 3.0 * (starts + 1.0) - 1.0, rtol=1e-12)
    assert starts[-1] + 2.0 <= x[-1] < starts[-1] + 2.5
    # mean over a window of a sine: sinc(window / wavelength) times the sine at its middle
    s = 0.05 * np.arange(2000)
    mean = sliding_mean(s, np.sin(2 * np.pi * s / 7.0), 2.0, 0.5)
    middle = 0.5 * np.arange(mean.size) + 1.0
    np.testing.assert_allclose(mean, np.sinc(2.0 / 7.0) * np.sin(2 * np.pi * middle / 7.0), atol=5e-4)
    np.testing.assert_allclose(sliding_rms(s, 2.0 * np.sin(2 * np.pi * s / 5.0), 10.0, 1.0), np.sqrt(2.0), rtol=1e-3)
    with pytest.raises(InputError, match="longer record"):
        sliding_mean(s, s, 1e3, 1.0)


def test_percentiles_of_a_ramp_and_of_a_sine():
    assert percentile(np.linspace(0.0, 1.0, 1001), 99.85) == pytest.approx(0.9985)
    # a sine spends the fraction p below sin(pi (p - 1/2))
    wave = np.sin(2 * np.pi * (np.arange(100_000) + 0.5) / 100_000)
    for percent in (0.15, 50.0, 95.0, 99.85):
        assert percentile(wave, percent) == pytest.approx(np.sin(np.pi * (percent / 100 - 0.5)), abs=1e-4)
    assert extreme(wave - 0.5, 99.85) == pytest.approx(0.5 + np.sin(np.pi * 0.4985), abs=1e-4)


# --- spectra ------------------------------------------------------------------------------------------------------


def test_welch_holds_the_power_of_a_sine_and_the_level_of_noise():
    psd = welch(sine(7.0, 3.0), RATE, 4.0)
    assert psd.band_rms(6.0, 8.0) == pytest.approx(3.0 / np.sqrt(2.0), rel=1e-3)
    noise = np.random.default_rng(2).standard_normal(200_000)
    psd = welch(noise, RATE, 2.0)
    assert psd.segments == (noise.size - 400) // 400
    assert psd.density[1:-1].mean() == pytest.approx(2.0 / RATE, rel=0.02)
    low, high = psd.confidence(0.95)
    inside = (psd.density[1:-1] * low < 2.0 / RATE) & (psd.density[1:-1] * high > 2.0 / RATE)
    # 399 lines, neighbours share the Hann window: about a third as many are independent
    assert 0.95 - 4 * np.sqrt(0.95 * 0.05 / 133) < inside.mean() <= 1.0
    assert welch(noise[:800], RATE, 2.0).confidence(0.9)[0] == pytest.approx(2.0 / chi2.ppf(0.95, 2))


def test_transfer_function_of_a_filter_with_noise_at_either_end():
    """With noise in the output H1 is right and H2 too large by 1 + noise/signal; the coherence says how much."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(400_000)
    clean = 0.8 * x + 0.6 * np.roll(x, 1)
    noise = 0.5 * rng.standard_normal(x.size)
    found = transfer_function(x, clean + noise, RATE, 1.0)
    exact = 0.8 + 0.6 * np.exp(-2j * np.pi * found.frequency / RATE)
    inside = (found.frequency > 5.0) & (found.frequency < 150.0)
    gamma = np.abs(exact) ** 2 / (np.abs(exact) ** 2 + 0.25)
    error = np.sqrt((1.0 - gamma) / (2.0 * gamma * found.segments))  # relative, of the magnitude
    assert np.all(np.abs(found.h1 / exact - 1.0)[inside] < 6.0 * error[inside] + 0.02)
    np.testing.assert_allclose(found.coherence[inside], gamma[inside], atol=0.05)
    np.testing.assert_allclose(np.abs(found.h2 / exact)[inside], 1.0 / gamma[inside], rtol=0.08)
    np.testing.assert_allclose(found.h1 / found.h2, found.coherence, atol=1e-12)
    turned = transfer_function(x + noise, clean, RATE, 1.0)
    assert np.abs(np.abs(turned.h2 / exact)[inside] - 1.0).max() < 0.06
    assert np.median(np.abs(turned.h1 / exact)[inside]) == pytest.approx(0.8, abs=0.01)


def test_spectra_refuse_bad_shapes():
    with pytest.raises(InputError, match="segment"):
        welch(T[:100], RATE, 1.0)
    with pytest.raises(InputError, match="shape"):
        transfer_function(T, T[1:], RATE, 1.0)
