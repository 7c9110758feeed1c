"""Spectra and realisations: conventions by band-limited rms, densities by periodogram, a quarter car on them."""

import numba
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, kstest

from railsweep.engine import InputError, realise, solve
from railsweep.engine.assessment_spectrum import welch
from railsweep.engine.irregularity import CHANNELS
from railsweep.engine.irregularity_spectrum import SPECTRA, Realisation, Spectrum, Tabulated, find_spectrum

# Published band-limited rms [mm] of the FRA form between 0.024 and 0.333 cycle/m: class, channel, value.
PUBLISHED_RMS_MM = [
    (5, "lateral", 3.06242),
    (5, "vertical", 5.07784),
    (6, "lateral", 2.04262),
    (6, "vertical", 2.04262),
]
BAND = {"shortest_m": 1.0 / 0.333, "longest_m": 1.0 / 0.024}

ERRI = {"erri-low": (4.032e-7, 2.119e-7, 5.32e-8), "erri-high": (1.08e-6, 6.125e-7, 1.032e-7)}


def published_density(name, channel, omega):
    """One-sided density over rad/m, written down anew from the published forms."""
    if name in ERRI:
        vertical, lateral, gauge = ERRI[name]
        c, r, s = 0.8246, 0.0206, 0.4380
        base = c**2 / ((omega**2 + r**2) * (omega**2 + c**2))
        return {
            "vertical": vertical * base,
            "lateral": lateral * base,
            "cross_level": vertical / 0.75**2 * base * omega**2 / (omega**2 + s**2),
            "gauge": gauge * base * omega**2 / (omega**2 + s**2),
        }[channel]
    number = int(name[-1]) - 1
    vertical = 1e-4 * (1.2107, 1.0181, 0.6816, 0.5376, 0.2095, 0.0339)[number]
    lateral = 1e-4 * (3.3634, 1.2107, 0.4128, 0.3027, 0.0762, 0.0339)[number]
    s = (0.6046, 0.9308, 0.8520, 1.1312, 0.8209, 0.4380)[number]
    c = 0.8245
    if channel in ("vertical", "lateral"):
        return 0.25 * (vertical if channel == "vertical" else lateral) * c**2 / (omega**2 * (omega**2 + c**2))
    difference = 4 * 0.25 * vertical * c**2 / ((omega**2 + c**2) * (omega**2 + s**2))
    return difference / 1.5**2 if channel == "cross_level" else difference


@pytest.mark.parametrize(("number", "channel", "rms_mm"), PUBLISHED_RMS_MM)
def test_band_limited_rms_is_the_published_one(number, channel, rms_mm):
    track = realise(f"fra-{number}", seed=number, length_m=3000.0, **BAND)
    values = track.at(np.arange(0.0, track.length_m, 0.2), fade=False)[:, CHANNELS[channel]]
    assert 1e3 * values.std() == pytest.approx(rms_mm, rel=1e-3)
    assert 1e3 * track.realisation.spectrum.band_rms(channel, **BAND) == pytest.approx(rms_mm, rel=1e-5)


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("name", SPECTRA)
def test_realisation_has_the_density_and_the_variance_of_its_spectrum(name, channel):
    recipe = Realisation(spectrum=find_spectrum(name), seed=11, length_m=20_000.0, amplitudes="gaussian")
    n, column = recipe.nodes, CHANNELS[channel]
    samples = recipe.samples()[:, column]
    line = np.arange(1, n // 2)
    f = line / recipe.length_m
    # periodogram of whole periods, one-sided over cycle/m: no leakage, so that every line is density times Exp(1)
    estimate = 2.0 * np.abs(np.fft.rfft(samples)[1 : n // 2] / n) ** 2 * recipe.length_m
    inside = (f > 0.0101) & (f < 0.3330)
    assert estimate[~inside & ((f < 0.0099) | (f > 0.3335))].max() < 1e-20
    ratio = estimate[inside] / (2.0 * np.pi * published_density(name, channel, 2.0 * np.pi * f[inside]))
    groups = np.array_split(ratio, 60)
    low, high = gamma.ppf([1e-5, 1 - 1e-5], len(groups[0])) / len(groups[0])
    means = [g.mean() for g in groups]
    assert low < min(means) <= max(means) < high
    assert kstest(ratio, "expon").pvalue > 1e-4
    target = quad(lambda o: published_density(name, channel, o), 2 * np.pi / 100.0, 2 * np.pi / 3.0, limit=200)[0]
    fixed = Realisation(spectrum=find_spectrum(name), seed=5, length_m=777.0).samples()[:, column]
    assert fixed.var() == pytest.approx(target, rel=1e-6)
    # the same table two-sided over rad/m, one-sided over cycle/m, and so on
    omega = np.geomspace(2 * np.pi / 120.0, 2 * np.pi / 2.0, 400)
    for frequency, sides in (("angular", 1), ("angular", 2), ("spatial", 1), ("spatial", 2)):
        per = 1.0 if frequency == "angular" else 2.0 * np.pi
        points = tuple(zip(omega / per, published_density(name, channel, omega) * per / sides, strict=True))
        table = Spectrum(
            name="table", densities=((channel, Tabulated(points=points, frequency=frequency, sides=sides)),)
        )
        assert table.band_rms(channel, 3.0, 100.0) ** 2 == pytest.approx(target, rel=1e-3)


@pytest.mark.parametrize("name", SPECTRA)
def test_welch_estimate_lies_in_its_confidence_band(name):
    track = realise(name, seed=21, length_m=50_000.0, amplitudes="gaussian")
    values = track.at(track.step_m * np.arange(track.coefficients.shape[0]), fade=False)
    for channel, column in CHANNELS.items():
        psd = welch(values[:, column], 1.0 / track.step_m, 1000.0)
        f = psd.frequency
        inside = (f > 0.012) & (f < 0.33)
        target = 2.0 * np.pi * published_density(name, channel, 2.0 * np.pi * f[inside])
        low, high = psd.confidence(0.95)
        covered = (psd.density[inside] * low <= target) & (target <= psd.density[inside] * high)
        # 318 lines of which a third are independent under the Hann window
        assert covered.mean() > 0.95 - 4.0 * np.sqrt(0.95 * 0.05 / 106)


def test_realisations_are_reproducible_and_independent():
    a, b, c = (
        realise("erri-low", seed=s, length_m=4000.0).at(np.arange(0.0, 4000.0, 0.5), fade=False) for s in (1, 1, 2)
    )
    assert np.array_equal(a, b)
    channels = np.corrcoef(np.hstack([a, c]).T)
    off = channels[~np.eye(8, dtype=bool)]
    # few independent long waves: bandwidth of the vertical channel about 0.02 cycle/m, so some 80 samples in 4 km
    assert np.abs(off).max() < 4.0 / np.sqrt(80.0)
    recipe = realise("erri-low", seed=1, length_m=4000.0).realisation
    assert recipe.with_seed(2).irregularity() is recipe.with_seed(2).irregularity()
    only = realise("erri-low", seed=1, length_m=4000.0, channels=("lateral",)).at([1234.5], fade=False)[0]
    whole = realise("erri-low", seed=1, length_m=4000.0).at([1234.5], fade=False)[0]
    assert only[CHANNELS["lateral"]] == pytest.approx(whole[CHANNELS["lateral"]], abs=1e-16)
    assert np.count_nonzero(only) == 1


def test_spline_is_the_sum_of_cosines_between_the_nodes_too():
    track = realise("erri-high", seed=2, length_m=300.0)
    recipe = track.realisation
    j, low, high = recipe.lines()
    s = np.linspace(-10.0, 700.0, 997)  # also before the beginning and beyond one period
    for name, column in CHANNELS.items():
        stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(2, spawn_key=(column,))))
        phase = stream.uniform(0.0, 2.0 * np.pi, j.size)
        a = np.sqrt(2.0 * recipe.spectrum.variance(name, low, high))
        k = 2.0 * np.pi * j / recipe.length_m
        argument = np.outer(s, k) + phase
        for derivative, exact in enumerate(
            (np.cos(argument) @ a, -np.sin(argument) @ (a * k), -np.cos(argument) @ (a * k * k))
        ):
            found = track.at(s, derivative, fade=False)[:, column]
            assert np.abs(found - exact).max() < (1e-5, 1e-5, 1e-3)[derivative] * np.abs(exact).max()


def test_provenance_tells_how_to_make_it_again():
    facts = realise("fra-4", seed=9, length_m=640.0, shortest_m=2.0, amplitudes="gaussian").provenance
    assert facts["seed"] == 9
    assert facts["frequency_step_1pm"] == 1 / 640.0
    assert (facts["first_line"], facts["last_line"]) == (6, 320)
    assert facts["step_m"] * facts["nodes"] == pytest.approx(640.0)
    again = realise(facts["spectrum"], **{k: facts[k] for k in ("seed", "length_m", "shortest_m", "amplitudes")})
    assert again.provenance == facts


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"seed": True}, "seed"),
        ({"length_m": 50.0}, "length_m"),
        ({"shortest_m": 200.0}, "longest_m"),
        ({"fade_m": float("nan")}, "fade_m"),
        ({"amplitudes": "loud"}, "amplitudes"),
        ({"channels": ("verticle",)}, "vertical"),
        ({"length_m": 1e7, "shortest_m": 0.02}, "length_m"),
    ],
)
def test_bad_settings_are_named(settings, word):
    with pytest.raises(InputError, match=word):
        realise("erri-low", **settings)


def test_unknown_spectrum_gets_a_suggestion():
    with pytest.raises(InputError, match="erri-high"):
        realise("erri-hihg")


# --- a quarter car ------------------------------------------------------------------------------------------------

MASS, STIFFNESS, DAMPING = 10_000.0, 8.0e5, 4.0e4


@numba.njit
def quarter_car(t, y, params, out):
    """m z'' = -k (z - d) - c (z' - v d'), with d the vertical channel at s = v t."""
    coefficients, step, speed = params
    n = coefficients.shape[0]
    x = speed * t / step
    x -= n * np.floor(x / n)
    i = min(int(x), n - 1)
    x -= i
    d, slope = coefficients[i, 5, 0], 0.0
    for power in range(4, -1, -1):
        slope = d + x * slope
        d = coefficients[i, power, 0] + x * d
    out[0] = y[1]
    out[1] = (-STIFFNESS * (y[0] - d) - DAMPING * (y[1] - speed * slope / step)) / MASS


def transfer(frequency_hz):
    """z / d of the quarter car."""
    s = 2j * np.pi * frequency_hz
    return (STIFFNESS + DAMPING * s) / (MASS * s * s + DAMPING * s + STIFFNESS)


@pytest.mark.parametrize("name", ["erri-low", "erri-high", "fra-4"])
@pytest.mark.parametrize("speed", [20.0, 60.0])
def test_quarter_car_answers_with_its_transfer_function(name, speed):
    """A periodic track gives a periodic answer: each of its lines is H times that of the track, not only on average."""
    track = realise(name, seed=4, length_m=1200.0)
    period = track.length_m / speed
    count = 8192
    t = 10.0 + period * np.arange(count) / count  # the free motion decays with exp(-2 t)
    run = solve(
        quarter_car,
        (0.0, t[-1]),
        [0.0, 0.0],
        params=(track.coefficients, track.step_m, speed),
        method="dop853",
        rtol=1e-10,
        atol=1e-13,
        t_eval=t,
    )
    assert run.success
    z = run.y[0]
    d = track.at(speed * t, fade=False)[:, 0]
    f = np.arange(count // 2 + 1) / period
    inside = (f / speed > 0.0105) & (f / speed < 0.33)
    response, road = np.fft.rfft(z)[inside], np.fft.rfft(d)[inside]
    assert np.abs(response / road / transfer(f[inside]) - 1.0).max() < 1e-4
    expected = quad(
        lambda f: float(track.realisation.spectrum.density("vertical", np.array(f))) * abs(transfer(f * speed)) ** 2,
        1.0 / 100.0,
        1.0 / 3.0,
        limit=400,
    )[0]
    assert z.var() == pytest.approx(expected, rel=0.01)


def test_variance_of_the_answer_over_many_seeds():
    """Gaussian realisations: the mean variance over 60 seeds lies within four standard errors of the integral."""
    speed, found = 30.0, []
    recipe = realise("erri-high", length_m=600.0, amplitudes="gaussian").realisation
    for seed in range(60):
        track = recipe.with_seed(seed).irregularity()
        t = 6.0 + 20.0 * np.arange(1000) / 1000
        run = solve(
            quarter_car,
            (0.0, t[-1]),
            [0.0, 0.0],
            params=(track.coefficients, track.step_m, speed),
            method="dopri5",
            rtol=1e-7,
            atol=1e-10,
            t_eval=t,
        )
        found.append(run.y[0].var())
    expected = quad(
        lambda f: float(recipe.spectrum.density("vertical", np.array(f))) * abs(transfer(f * speed)) ** 2,
        1.0 / 100.0,
        1.0 / 3.0,
        limit=400,
    )[0]
    assert abs(np.mean(found) - expected) < 4.0 * np.std(found) / np.sqrt(60)
    assert np.std(found) / np.sqrt(60) < 0.1 * expected
