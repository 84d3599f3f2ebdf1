"""Regular expressions as users type them."""

from __future__ import annotations

import re
import warnings

from flame.core.errors import UsageError


def expression(text: str, flags: int = 0) -> re.Pattern[str]:
    """Compile ``text``; UsageError says what is wrong with it.

    What Python merely warns of (``[[`` may mean something else one day) is taken as it is: a
    warning would be printed into the app.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            return re.compile(text, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"not a regular expression: {error}") from None
