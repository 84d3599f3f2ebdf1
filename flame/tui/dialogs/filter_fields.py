"""List all kinds of filters as a user edits them: as a text, or as a list to choose from."""

from __future__ import annotations

from flame.tui.dialogs.list_fields import (
    DEVICE_FIELD,
    KINDS_FIELD,
    PROCESS_FIELD,
    STREAM_FIELD,
    THREAD_FIELD,
    ListField,
)
from flame.tui.dialogs.steps import STEPS_FIELD, StepsField
from flame.tui.dialogs.text_fields import (
    FRAMEWORK_FIELD,
    KERNEL_FIELD,
    MOMENT_FIELD,
    PHASES_FIELD,
    RANGE_FIELD,
    RANKS_FIELD,
    SHARE_FIELD,
    STACK_FIELDS,
    TIME_FIELD,
    TextField,
)

Field = TextField | ListField | StepsField

FIELDS: tuple[Field, ...] = (
    *STACK_FIELDS,
    FRAMEWORK_FIELD,
    TIME_FIELD,
    MOMENT_FIELD,
    STEPS_FIELD,
    RANKS_FIELD,
    RANGE_FIELD,
    PHASES_FIELD,
    DEVICE_FIELD,
    STREAM_FIELD,
    PROCESS_FIELD,
    THREAD_FIELD,
    KERNEL_FIELD,
    KINDS_FIELD,
    SHARE_FIELD,
)
"""All kinds of filters in the order of the dialog."""
