"""Programs to be recorded: code for ``python -c``. Those for a GPU run on the test double."""

from __future__ import annotations

RANGES = """
import nvtx, time
with nvtx.annotate("outer"):
    for _ in range(3):
        with nvtx.annotate("inner"):
            time.sleep(0.01)
"""

KERNELS = """
import ctypes, sys, time

cuda = ctypes.CDLL("libcuda.so.1")
IMAGE = b"flame-fake 1\\nkernel gemm 100000\\nkernel softmax 20000\\n"


def call(function, *arguments):
    code = getattr(cuda, function)(*arguments)
    assert code == 0, f"{function}: {code}"


def function_of(name):
    found = ctypes.c_void_p()
    call("cuModuleGetFunction", ctypes.byref(found), module, name)
    return found


def launch(function):
    call("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, None, None, None)


call("cuInit", 0)
context, module = ctypes.c_void_p(), ctypes.c_void_p()
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), IMAGE)
gemm, softmax = function_of(b"gemm"), function_of(b"softmax")
for _ in range(10):
    launch(gemm)
    launch(softmax)
call("cuCtxSynchronize")
"""
"""10 gemm of 100 us and 10 softmax of 20 us; `cuda`, `call`, `launch` and `gemm` are left."""

MEMORY = (
    KERNELS
    + """
def allocate(size, function="cuMemAlloc_v2", *more):
    made = ctypes.c_void_p()
    call(function, ctypes.byref(made), ctypes.c_size_t(size), *more)
    return made


def load_weights():
    return allocate(3_000_000)


def activations():
    return [allocate(500_000, "cuMemAllocAsync", None) for _ in range(2)]


weights = load_weights()
for one in activations():
    call("cuMemFreeAsync", one, None)
"""
)
"""After `KERNELS`: 4,000,000 bytes of the GPU at the peak, 3,000,000 of them until the end."""

FLUSHED = """
import glob, os
from pathlib import Path
from flame.attach.library.control import Control

(dump,) = map(Path, glob.glob(f"{os.environ['FLAME_DIR']}/{os.getpid()}-*.fdump"))
while not (control := Control.open(dump)):
    time.sleep(0.01)
while not control.flush():
    time.sleep(0.01)
control.close()
"""
"""After `KERNELS`: returns when all is written that CUPTI still holds."""

PATIENT = """
import os, signal, sys, time

heard = []
for name in sys.argv[1].split(","):
    signal.signal(getattr(signal, name), lambda number, frame: heard.append(number))
print("ready", flush=True)
end = time.monotonic() + 60
while not heard and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.5)  # A second one would come now.
print("heard", *[signal.Signals(number).name for number in heard], flush=True)
sys.exit(9)
"""
"""Says which of the named signals it gets, once it has got one."""
