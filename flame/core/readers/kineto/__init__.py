"""Reader of PyTorch profiler (Kineto) traces: Chrome trace JSON, plain or gzipped."""

from flame.core.readers.kineto.reader import looks_like, read

__all__ = ["looks_like", "read"]
