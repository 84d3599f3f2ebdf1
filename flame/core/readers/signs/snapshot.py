"""Recognize memory snapshots by how they begin."""

from __future__ import annotations

from flame.core.lazy_regex import lazy_regex

# PROTO, perhaps FRAME, then a dictionary or a list, perhaps kept in the memo.
_PICKLE = lazy_regex(rb"\x80[\x02-\x05](?:\x95.{8})?[\]}]", 16)

_JSON = lazy_regex(
    rb'\s*\{\s*"(?:segments|device_traces|allocator_settings|external_annotations)"\s*:'
    rb'|\s*\[\s*\{[^{}\[\]]*"(?:total_size|segment_type)"\s*:'
)


def is_snapshot(head: bytes) -> bool:
    """Tell whether a file that begins with ``head`` may be a memory snapshot, or another pickle."""
    return bool(_PICKLE.match(head) or _JSON.match(head))
