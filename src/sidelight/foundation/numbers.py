"""Numbers as people read them. Nothing here changes a figure, it only rounds and words it."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context

_DIGITS = 6
_ROUNDING = 5e-10  # half of what an audit allows
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def significant(value: float | str, infinite: str = "inf") -> str:
    """Write a number in four digits; a text stays as it is.

    >>> significant(0.6201145), significant("R1"), significant(8.89e-5), significant(math.inf, "no end")
    ('0.6201', 'R1', '8.89e-05', 'no end')
    """
    if isinstance(value, str):
        return value
    return infinite if value == math.inf else f"{value:.4g}"


def decimals(value: float, infinite: str = "∞") -> str:
    """Write a leakage figure in a column of figures: three decimals, whatever its size.

    >>> decimals(1.43378), decimals(-0.0), decimals(-1e-17), decimals(math.inf)
    ('1.434', '0.000', '0.000', '∞')
    """
    return f"{value:.3f}".replace("-0.000", "0.000") if math.isfinite(value) else infinite


def nats(value: float, digits: int = 3) -> str:
    """Write a leakage figure.

    >>> nats(1.43378), nats(39.8997), nats(0.0002), nats(0.0), nats(math.inf), nats(1.43378, digits=1)
    ('1.434', '39.90', 'below 0.001', '0', '∞', '1.4')
    """
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    if value < 10**-digits:
        return f"below {10**-digits:g}"
    return f"{value:.{digits}f}" if value < 10 else f"{value:.{digits - 1}f}"


def factor(value: float) -> str:
    """Write e to the power of a leakage figure: the factor on odds.

    >>> factor(1.0), factor(12.08), factor(39.9), factor(math.inf), factor(2000.0)
    ('2.72', '176,000', '2.13 × 10¹⁷', '∞', '3.88 × 10⁸⁶⁸')
    """
    if math.isinf(value):
        return "∞"
    if value < math.log(1e6):
        number = math.exp(value)
        return f"{number:.2f}" if number < 10 else f"{float(f'{number:.3g}'):,.0f}"
    exponent, rest = divmod(value / math.log(10), 1)
    return f"{10**rest:.2f} × 10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def certainty(value: float, before: float = 0.5) -> str:
    """Write what a chance, fifty-fifty or another, becomes when its odds are multiplied by e to the `value`.

    >>> certainty(1.0), certainty(40.0), certainty(math.inf), certainty(1.0, 0.1)
    ('73.1 %', 'over 99.9 %', '100 %', '23.2 %')
    """
    odds = value + math.log(before / (1 - before))
    # Only infinite leakage is certainty; a double would take 37 for it as well.
    return share(1 / (1 + math.exp(-odds)) if odds < 20 or math.isinf(odds) else 1 - 1e-9)


def share(value: float) -> str:
    """Write a probability in percent; what is not certain is never rounded to certainty.

    >>> share(0.677), share(0.99999), share(1.0), share(0.0001)
    ('67.7 %', 'over 99.9 %', '100 %', 'below 0.1 %')
    """
    if value in (0.0, 1.0):
        return f"{value:.0%}".replace("%", " %")
    if value >= 0.9995:  # one decimal would show 100.0 %
        return "over 99.9 %"
    return f"{100 * value:.1f} %" if value >= 0.001 else "below 0.1 %"


def whole(value: float) -> str:
    """Write a whole number with separators.

    >>> whole(202599)
    '202,599'
    """
    return f"{value:,.0f}"


def at_least(value: float) -> str:
    """Write a whole number that must be reached: in two digits, rounded up.

    >>> at_least(1234), at_least(97), at_least(9_991)
    ('1,300', '97', '10,000')
    """
    unit = 10 ** max(len(str(math.ceil(value))) - 2, 0)
    return whole(math.ceil(value / unit) * unit)


def of_people(count: str) -> str:
    """Write a number of people.

    >>> of_people("1"), of_people(at_least(1234))
    ('1 person', '1,300 people')
    """
    return f"{count} {'person' if count == '1' else 'people'}"


def roughly(value: float) -> str:
    """Write an estimated count in three digits.

    >>> roughly(38_304.2), roughly(12.6), roughly(0.2)
    ('38,300', '13', '1')
    """
    return whole(max(1.0, float(f"{value:.3g}")))


def points(value: float) -> str:
    """Write a difference of frequencies in percentage points, in two digits.

    >>> points(0.0312), points(0.01), points(0.25), points(0.00001)
    ('3.1 percentage points', '1 percentage point', '25 percentage points', '0.001 percentage points')
    """
    number = hundredths(value)
    return f"{number} percentage point{'' if number == '1' else 's'}"


def hundredths(value: float) -> str:
    """Write a difference of frequencies as a number of percentage points, in two digits.

    >>> hundredths(0.0312), hundredths(0.25), hundredths(1e-17), hundredths(math.inf)
    ('3.1', '25', '0', '∞')
    """
    if math.isinf(value):
        return "∞"
    rounded = float(f"{100 * value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:.6f}".rstrip("0").rstrip(".")


def budget(value: float) -> str:
    """Write a budget so that whoever types it in keeps the limits: six digits, rounded down.

    What is less than a rounding error below a round number is written as that.

    >>> budget(1.0), budget(0.9999999996), budget(0.61598796), budget(0.0000123456789), budget(math.inf)
    ('1', '1', '0.615987', '1.23456e-05', '∞')
    """
    if math.isinf(value):
        return "∞"
    nearest = float(f"{value:.{_DIGITS}g}")
    if nearest > value * (1 + _ROUNDING):
        nearest = float(Context(prec=_DIGITS, rounding=ROUND_FLOOR).create_decimal_from_float(value))
    return f"{nearest:.{_DIGITS}g}"


def error(value: float) -> str:
    """Write an expected error; NaN where a mechanism states none.

    >>> error(0.0253123), error(1072.6), error(math.nan)
    ('0.0253', '1,070', 'not stated')
    """
    if math.isnan(value):
        return "not stated"
    return f"{value:.3g}" if value < 999.5 else f"{float(f'{value:.3g}'):,.0f}"  # no exponents
