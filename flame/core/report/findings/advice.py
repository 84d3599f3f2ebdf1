"""Say what to try first where a finding is told: data, by finding and framework, two lines each."""

from __future__ import annotations

from flame.core.report.findings.frameworks import Framework

ADVICE: dict[str, dict[Framework, str]] = {
    "capture-window": {
        "": "Report on the steady part alone, by --time as above; record later: after a warm-up, "
        "between cudaProfilerStart and cudaProfilerStop (nsys --capture-range=cudaProfilerApi).",
        "torch": "Report on the steady part alone, by --time as above; record later: "
        "torch.profiler.schedule(wait=…, warmup=…, active=…), or torch.cuda.profiler.start().",
        "vllm": "Report on the steady part alone, by --time as above; record later: by "
        "/start_profile and /stop_profile of the server, when requests are running.",
        "sglang": "Report on the steady part alone, by --time as above; record later: by "
        "/start_profile and /stop_profile of the server, when requests are running.",
        "megatron": "Report on the steady part alone, by --time as above; record later: --profile "
        "--profile-step-start N --profile-step-end M.",
    },
    "launch-bound": {
        "": "Launch less: capture the repeated part in a CUDA graph, fuse small kernels, or use "
        "larger batches.",
        "torch": "torch.compile(mode='reduce-overhead') or torch.cuda.graph() for the step; fused "
        "or foreach optimizers; larger batches.",
        "vllm": "Leave --enforce-eager out, so that decoding runs in CUDA graphs; raise "
        "--max-num-seqs for larger batches.",
        "sglang": "Leave --disable-cuda-graph out; raise --cuda-graph-max-bs where batches are "
        "larger than that.",
        "megatron": "Capture layers in CUDA graphs: --cuda-graph-impl; or a larger "
        "--micro-batch-size.",
    },
    "host-bound": {
        "": "Look at what the host does there, and do it beside the GPU's work or not in the loop: "
        "loading of data, logging, Python between launches.",
        "torch": "If it loads data: DataLoader(num_workers=…, prefetch_factor=…, "
        "persistent_workers=True); if it compiles or sets up, record after a warm-up; log rarely.",
        "vllm": "Prepare the next step beside the GPU's work: --async-scheduling; keep "
        "detokenizing and logging out of the engine's process.",
        "sglang": "Leave --disable-overlap-schedule out, so that the next batch is prepared beside "
        "the GPU's work.",
        "megatron": "More workers for data: --num-workers; log rarely: --log-interval; "
        "checkpoints beside training: --async-save.",
    },
    "host-bound, host unknown": {
        "": "See what the host does there: record ranges and system calls (nsys "
        "--trace=cuda,nvtx,osrt) or Python functions (flame record); then overlap it.",
    },
    "sync-drain": {
        "": "Take out synchronizations in the loop, or launch the next work before waiting.",
        "torch": "Take out .item(), .cpu(), print of tensors, torch.cuda.synchronize(): "
        "torch.cuda.set_sync_debug_mode('warn') names the lines.",
    },
    "loading": {
        "": "Warm up before measuring; CUDA_MODULE_LOADING=EAGER loads all code at the start "
        "instead.",
    },
    "alloc-in-loop": {
        "": "Allocate once and reuse, or allocate from a pool: cudaMallocAsync.",
        "torch": "Keep shapes equal, so that the caching allocator reuses blocks; where they must "
        "differ PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; no empty_cache() in the loop.",
    },
    "pageable": {
        "": "Pin the memory (cudaHostAlloc, cudaHostRegister), or make the data on the GPU.",
        "torch": "Pin the memory: tensor.pin_memory(), DataLoader(pin_memory=True); make weights "
        "on the GPU at once: torch.device('cuda') around the model.",
    },
    "sync-copies": {
        "": "cudaMemcpyAsync from pinned memory, on the stream that uses the data.",
        "torch": ".to(device, non_blocking=True) from DataLoader(pin_memory=True); gather small "
        "copies into one.",
    },
    "copies-exposed": {
        "": "Copy on a stream of its own, from pinned memory, while the step before computes.",
        "torch": "Copy the next batch with non_blocking=True on a torch.cuda.Stream of its own, "
        "from pinned memory, while this one computes.",
        "vllm": "Weights that do not fit are copied for every step: lower --cpu-offload-gb, or "
        "spread the model by --tensor-parallel-size.",
        "sglang": "Weights that do not fit are copied for every step: lower --cpu-offload-gb, or "
        "spread the model by --tp-size.",
    },
    "copies-exposed, most": {
        "": "There is too little compute to hide them: copy less, keep data on the GPU, use "
        "smaller types; if that is loading, record after it.",
        "torch": "There is too little compute to hide them: keep weights and caches on the GPU "
        "(no CPU offloading), use smaller types; if that is loading, record after it.",
        "vllm": "There is too little compute to hide them: lower --cpu-offload-gb, spread the "
        "model by --tensor-parallel-size; if that is loading, record after it.",
        "sglang": "There is too little compute to hide them: lower --cpu-offload-gb, spread the "
        "model by --tp-size; if that is loading, record after it.",
    },
    "copies-exposed, within": {
        "": "Copies within the GPU: write results where they are needed, and pass pointers.",
        "torch": "Copies within the GPU: out= and views for cat, clone(), contiguous(), .to(); in "
        "a CUDA graph copy inputs once; larger pieces than many small ones.",
    },
    "comm-exposed": {
        "": "Communicate while computing: in larger pieces, earlier, and on a stream of its own.",
        "torch": "Begin it early and wait late: async_op=True; DistributedDataParallel("
        "bucket_cap_mb=…); FSDP: forward_prefetch=True, backward_prefetch=BACKWARD_PRE.",
        "vllm": "Leave --disable-custom-all-reduce out; a smaller --tensor-parallel-size with "
        "--data-parallel-size for models that fit.",
        "sglang": "Leave --disable-custom-all-reduce out; --enable-two-batch-overlap, or a smaller "
        "--tp-size with --dp-size for models that fit.",
        "megatron": "--overlap-grad-reduce --overlap-param-gather, --tp-comm-overlap with "
        "--sequence-parallel.",
    },
    "late-rank": {
        "": "Look at what that rank does before it communicates: more data, longer sequences, a "
        "slower GPU (nvidia-smi -q -d CLOCK,PERFORMANCE) or a busy host.",
    },
    "imbalance": {
        "": "Record all ranks with one clock (nsys of one node in one session) to see who comes "
        "late; else compare what they compute: --section ranks.",
    },
    "slow-iterations": {
        "": "Look at the longest beside the one before it, by --iterations; --section iterations "
        "says by which part each is longer.",
    },
    "tail": {
        "": "See what ran beside the slow ones: other streams or processes on the GPU, copies, a "
        "lower clock (nvidia-smi -q -d CLOCK,PERFORMANCE).",
    },
    "uneven-layers": {
        "": "Compare the kernels of the longest layer with those of a usual one. Of experts: "
        "balance which get how many tokens.",
        "vllm": "Of experts: --enable-eplb balances which get how many tokens. Else compare the "
        "kernels of the longest layer with those of a usual one.",
        "sglang": "Of experts: --enable-eplb balances which get how many tokens. Else compare the "
        "kernels of the longest layer with those of a usual one.",
        "megatron": "Of experts: --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff. "
        "Else compare the kernels of the longest layer with those of a usual one.",
    },
    "routing": {
        "": "Fuse choosing, sorting and gathering of tokens into few kernels, and keep them on the "
        "GPU.",
        "megatron": "--moe-router-fusion --moe-permute-fusion.",
    },
    "below-bound": {
        "": "Larger work at a time, sizes that are multiples of 64, another type or library; "
        "--section efficiency lists the shapes.",
        "torch": "Larger batches, sizes that are multiples of 64, "
        "torch.compile(mode='max-autotune'); of attention another backend: "
        "torch.nn.attention.sdpa_kernel().",
    },
    "many-experts-kernels": {
        "": "Run the products of all experts as one grouped matrix product.",
        "megatron": "--moe-grouped-gemm runs the products of all experts as one.",
    },
    "gc": {
        "": "Collect at a time of your choice: gc.freeze() after start-up, gc.disable() in the "
        "loop, gc.collect() on all ranks together every so many steps.",
        "megatron": "--manual-gc --manual-gc-interval 100 collects on all ranks at once.",
    },
    "gil": {
        "": "Keep other Python threads away from the one that launches: data loading, tokenizing "
        "and logging in processes of their own.",
    },
    "one-kernel": {
        "": "Look into it: flame record --pc for what its instructions wait for, or ncu with flame "
        "view --ncu. Or try another implementation, type or size.",
    },
    "small-kernels": {
        "": "Fuse them with each other or into the products before and after.",
        "torch": "torch.compile fuses them with each other and into the products before and after.",
    },
    "profiler-cost": {
        "": "Record less: fewer --trace kinds, no backtraces, a shorter capture (--capture-range).",
    },
    "graph-nodes": {
        "": "Compare shares of kernels, not times of steps; record steps with graphs as a whole: "
        "nsys profile --cuda-graph-trace=graph, flame record --graphs whole.",
    },
    "hidden-graphs": {
        "": "Record each node: nsys profile --cuda-graph-trace=node, flame record --graphs node; "
        "times of graphs are then 30 to 60 % too long.",
    },
    "out-of-memory": {
        "": "See what was in use: --at oom; use smaller batches or shapes, recompute "
        "activations (torch.utils.checkpoint), drop references that are not needed any more.",
    },
    "out-of-memory, fragmented": {
        "": "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True joins free pieces; else keep shapes "
        "equal, so that blocks fit again, and call torch.cuda.empty_cache() before the request.",
    },
    "memory-growth": {
        "": "See what keeps these tensors: lists of losses or outputs (.item(), .detach()), caches "
        "without a limit, closures, hooks; snapshots of two moments show it: flame diff.",
    },
    "memory-split": {
        "": "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or max_split_size_mb; allocate what "
        "stays before what comes and goes; keep shapes equal.",
    },
    "memory-cached": {
        "": "Nothing, if the program needs it again. Else torch.cuda.empty_cache() after the phase "
        "that needed it returns it to other processes and to NCCL.",
    },
}
"""What to try by id of finding; under the empty name what holds for all programs.

Options are those of the versions of 2025; nothing promises a speed-up.
"""


def advice(id: str, framework: Framework) -> str:
    """Choose what to try first; frameworks on PyTorch take its advice where they have no own."""
    known = ADVICE[id]
    general = known[""]
    return known.get(framework, known.get("torch", general) if framework else general)
