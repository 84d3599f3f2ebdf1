"""Sort kernels by what they compute, after their names."""

from __future__ import annotations

from functools import lru_cache

from flame.core.lazy_regex import lazy_regex
from flame.core.names.kernel_terms import Rank, terms_of

MATRIX = "matrix product"
ATTENTION = "attention"
NORMALISATION = "normalisation and reduction"
ELEMENTWISE = "elementwise"
INDEXING = "indexing and sorting"
COMMUNICATION = "communication"
COPY = "copy"
OTHER = "other"

CATEGORIES = (
    MATRIX,
    ATTENTION,
    NORMALISATION,
    ELEMENTWISE,
    INDEXING,
    COMMUNICATION,
    COPY,
    OTHER,
)
"""All categories, in the order in which they are listed."""

RULES: tuple[tuple[str, str], ...] = (
    (
        COMMUNICATION,
        r"nccl|rccl|mscclpp|nvshmem|multimem|\ball ?reduce\b|\ball ?gather\b"
        r"|\breduce ?scatter\b|\ball ?to ?all|cross device reduce|\b(?:one|two) shot\b"
        r"|userbuffers|deep ep\b",
    ),
    # What compilers call by the shape of its loops: torch.compile, nvFuser
    (ELEMENTWISE, r"^triton poi\b|^nvfuser pointwise\b|elementwise kernel with index"),
    (NORMALISATION, r"^triton (?:red|per)\b|^nvfuser (?:\w+ )?(?:persistent|reduction)\b"),
    (COPY, r"^nvfuser transpose\b|reshape and cache|\bkv cache\b|^concat and cache"),
    (
        ATTENTION,
        r"\bflash (?:fwd|bwd|attn|attention)|fmha|attention|\battn\b|\bsdpa\b|\bmla\b"
        r"|^reduce segments|batch (?:prefill|decode)|single (?:prefill|decode)|mem eff",
    ),
    # Convolutions are matrix products, and so is what prepares and finishes both.
    (
        MATRIX,
        r"(?<!fb)gemm|gemv|xmma|nvjet|cutlass \d|matmul|^cijk\b|^bmm\b|\bb?mm\b|fused moe|marlin"
        r"|\bgptq|\bawq|conv(?:olve|olution|\d|\b)|cudnn \d|scudnn|winograd|[dw]grad|fprop"
        r"|split ?kreduce|compute (?:\w+ )*\w*offsets kernel|global kernel epilogue|trsm|syrk|trmm"
        r"|^triton tem\b|ck tile gemm|collective mma|\b[ih]mma\b|\bwv split",
    ),
    # Which expert gets which token, and putting the results together
    (OTHER, r"\bmoe\b|routing|experts?\b|topk gating|bitmatrix|^topk forward"),
    (
        COPY,
        r"\b(?:mem)?copy\b|memcpy|memset|(?<!masked )\bfill\b|\bcat array|transpose|permute"
        r"|nchw to nhwc|nhwc to nchw|\bconcat\b|\bpad\b|contiguous",
    ),
    (ELEMENTWISE, r"rotary|\brope\b"),
    (
        INDEXING,
        r"\bindex|\bindices\b|gather|scatter|embedding|\bsort|radix|bitonic|top ?k\b|searchsorted"
        r"|to dense|offsets range|\bunique\b|nonzero|device (?:select|compact|partition)|histogram"
        r"|masked select",
    ),
    (
        NORMALISATION,
        r"norm(?:s|\d\w*|alization)?\b|soft ?max|reduce|reduction|\bbn (?:fw|bw)|\bsum\b|\bmean\b"
        r"|arg ?m(?:ax|in)\b|pool\b|\bloss\b|criterion|cross ?entropy|welford|gamma beta|cumsum"
        r"|\bcu ?compute grad"
        r"|\bscan\b|\bvar\b|\bdot\b",
    ),
    (
        ELEMENTWISE,
        r"elementwise|pointwise|functor|multi tensor apply|\bact and mul\b|silu|gelu|relu|swiglu"
        r"|dropout|\bquant|dequant|\badd\d?\b|\bsub(?:tract)?\b|\bmul(?:tiply)?\b|divide|\bcast\b"
        r"|convert|\badam|\bsgd\b|\blamb\b|optimizer|\bscale|distribution|\brandom|\bbias\b|activation"
        r"|parallel for agent|transform|clamp|sigmoid|\btanh\b|\bexp\b|\bsqrt\b|\babsolute\b|axpy",
    ),
)
"""Categories by patterns of names, the first that matches anywhere in the name counts.

A name is the function's own and the words that tell of its arguments, then its namespaces; all in
small letters, with a blank between words: ``device radix sort onesweep kernel cub``.
"""

_RULES = tuple((category, lazy_regex(pattern)) for category, pattern in RULES)
_BOUNDARY = lazy_regex(r"(?<=[a-z\d])(?=[A-Z])|[^A-Za-z\d]+")
_MOST_WORDS = 3
_LONGEST = 512


@lru_cache(4096)
def category_of(base: str, demangled: str) -> str:
    """Choose the category of a kernel; ``demangled`` is empty where only ``base`` is known."""
    terms = terms_of(base, demangled)
    words = [terms.base, *terms.telling[:_MOST_WORDS], *terms.terms[Rank.SCOPE]]
    text = _BOUNDARY.sub(" ", " ".join(words)[:_LONGEST]).strip().lower()
    return next((category for category, rule in _RULES if rule.search(text)), OTHER)
