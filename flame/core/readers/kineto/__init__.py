"""Read PyTorch profiler (Kineto) traces: Chrome trace JSON, plain or gzipped, from 2021 on."""
