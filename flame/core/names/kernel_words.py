"""Say which words in the names of kernels tell what ran, and which are but its wrapping.

These tables are all there is to know of libraries: `kernel_terms` reads names by them. A word is
matched in full, by the first table that has it; what is in none of them tells.
"""

from __future__ import annotations

import re

from flame.core.lazy_regex import lazy_regex

GENERIC = lazy_regex(
    r"Kernel|Kernel2|kernel|device_kernel|_?kernel_agent|kentry|kernel_entry|universal_kernel"
)
"""Functions that run whatever their template argument is: CUTLASS, thrust, Composable Kernel."""

SILENT = frozenset({"void", "const", "auto", "operator", "lambda", "decltype", "nullptr", "type"})
"""Words of C++ that are never told."""

PLUMBING = lazy_regex(
    r"Array|array|tuple|pair|optional|Params|Arguments|Traits|null_type|use_default"
    # at::native: how elements are found, loaded and stored
    r"|TensorIterator(?:Base)?|TensorBase|Tensor|Scalar|ScalarType|ArrayRef|TensorInfo|OpType"
    r"|\w*OffsetCalculator|LoadWith\w+|StoreWith\w+|TensorList\w*Metadata|GeluType|ClampLimits"
    r"|CatArrInputTensorMetadata|TensorSizeStride|OpaqueType|\w*GeneratorImpl|\w*Accessor"
    r"|RestrictPtrTraits|curandStatePhilox\w*|KernelParams|function_traits|result_type"
    # cub, thrust: how work is cut, and the wrappings of pointers
    r"|\w*Policy\w*|Policy\d+|\w*TileState|NullType|KeyValuePair|identity_decomposer_t"
    r"|\w*_?[iI]terator\w*|device_ptr|\w*_tag|always_true_predicate|\w*GridEvenShare"
    r"|\w*MemBoundScaling|integral_constant|Dispatch\w*|Equality"
    # cuBLAS, cuDNN, CUTLASS, flash-attention, Composable Kernel: how operands are passed
    r"|cublas\w+|cudnn\w+|cask\w*|\w*[pP]arams\w*|\w*Arguments|\w*_traits|enable_sm\d+\w*"
    r"|Layout|RowMajor|ColumnMajor|C|Int|Shape|Stride|Underscore|sequence|\w*Pipeline\w*"
    r"|\w*Problem|\w*Shape|\w*Traits|\w*Epilogue|\w*Enum|Kargs"
)
"""Words that say nothing of what is computed."""

TELLING = lazy_regex(r"\w*SoftMax\w*Epilogue|Mma(?:Pipelined|Multistage|Singlestage)\w*")
"""Words that tell although they look like `PLUMBING`."""

WRAPPERS = lazy_regex(
    r"[AB]?Unary(?:Op)?Functor|Binary(?:Op)?Functor"
    r"|(?:Unary|Binary|Ternary|Pointwise|ZeroOp)Op\w*Functor"
    r"|ReduceOp|func_wrapper_t|gpu_\w*kernel\w*|\w+_and_transform|distribution_nullary_kernel"
    r"|_?cuda_scatter_gather_internal_kernel|ParallelForAgent|\w*_transform_f|DeviceReduceKernel"
)
"""Words around what tells: they are told where it is not enough."""

TYPES = {
    "float": "float",
    "double": "double",
    "bool": "bool",
    "char": "char",
    "short": "short",
    "int": "int",
    "long": "long",
    "long long": "long long",
    "signed char": "int8",
    "unsigned char": "uint8",
    "unsigned short": "uint16",
    "unsigned int": "uint",
    "unsigned": "uint",
    "unsigned long": "ulong",
    "unsigned long long": "ulong long",
    "__nv_bfloat16": "bf16",
    "__nv_bfloat162": "bf16x2",
    "__hip_bfloat16": "bf16",
    "__bfloat": "bf16",
    "bfloat16_t": "bf16",
    "BFloat16": "bf16",
    "bf16": "bf16",
    "__half": "half",
    "__half2": "half2",
    "half_t": "half",
    "half": "half",
    "Half": "half",
    "tfloat32_t": "tf32",
    "Float8_e4m3fn": "e4m3",
    "Float8_e4m3fnuz": "e4m3",
    "Float8_e5m2": "e5m2",
    "Float8_e5m2fnuz": "e5m2",
    "__nv_fp8_e4m3": "e4m3",
    "__nv_fp8_e5m2": "e5m2",
    "float_e4m3_t": "e4m3",
    "float_e5m2_t": "e5m2",
    "float2": "float2",
    "float4": "float4",
    "int8_t": "int8",
    "uint8_t": "uint8",
    "complex": "complex",
}
"""Types of elements, as they are told in short."""

SUFFIX = lazy_regex(
    r"(?:_cuda_out|CUDAKernelImpl|_?kernel_impl|_kernel_cuda|_kernel|_impl|_?[fF]unctor)\Z"
)
"""What is left out at the end of a word that tells."""

BASE_SUFFIX = lazy_regex(r"(?:_kernel|(?<=[a-z0-9])Kernel)\Z")
"""What is left out at the end of a function's name where an argument follows."""

ABBREVIATED = (
    lazy_regex(r"(Cijk_[A-Za-z]+_[A-Za-z]+_[A-Za-z0-9]+)_.*?(MT\d+x\d+x\d+)_(.*)", re.DOTALL),
    lazy_regex(r"(sm\d+_xmma_.*?)_(tilesize[\dx]+)_(.*)", re.DOTALL),
)
"""Long names without arguments: what is told of them, and in the last group what else there is.

Of rocBLAS and hipBLASLt (Tensile), and of cuBLAS and cuDNN (XMMA): operands and size of the tile.
"""
