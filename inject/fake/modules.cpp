// Modules and functions. The double's own image is a text: "flame-fake 1" and a script (scripts.cpp).
// A cubin has the functions that it says. Of other images (PTX, fatbin) every function that is named
// in it exists, and the whole image is what is told as the cubin (the real driver compiles PTX, and
// takes one out of a fatbin). What FAKE_SAMPLES does not tell of runs as long as a hash of its name
// says. Functions whose names begin with fail_ cannot be launched.
#include <cstdio>
#include <cstdlib>

#include "fake/fake.h"

namespace fake {
namespace {

constexpr std::string_view kOwnImage = "flame-fake 1\n";
std::atomic<uint32_t> modules{0};

uint64_t hashed_duration(std::string_view name) {
  return 2000 + hash_of(name.data(), name.size()) % 58000;
}

CUfunction add_function(CUmodule module, std::string_view name, const CUfunc_st* known,
                        uint64_t size = 0) {
  auto function = known ? std::make_unique<CUfunc_st>(*known) : std::make_unique<CUfunc_st>();
  if (!known) function->duration = hashed_duration(name);
  function->name = intern(name);
  function->module = module;
  function->size = size;
  function->fails = name.substr(0, 5) == "fail_";
  CUfunction result = function.get();
  module->functions.emplace(std::string(name), std::move(function));
  return result;
}

bool add_scripted(CUmodule module) {
  Script script;
  if (!read_script(module->image.substr(kOwnImage.size()), &script)) return false;
  for (const auto& [name, known] : script) add_function(module, name, &known);
  return true;
}

// A script that was written for another cubin is a mistake of the test's.
const CUfunc_st* scripted_within(const ImageFunction& function) {
  const CUfunc_st* known = scripted(function.name);
  for (const auto& sample : known ? known->samples : std::vector<CUfunc_st::Sample>()) {
    if (sample.offset < function.size) continue;
    fprintf(stderr, "FAKE_SAMPLES: %s is shorter\n", function.name.c_str());
    abort();
  }
  return known;
}

bool add_functions(CUmodule module) {
  bool own = module->image.compare(0, kOwnImage.size(), kOwnImage) == 0;
  module->complete = own || is_cubin(module->image);
  if (own) return add_scripted(module);
  if (!module->complete) return true;
  for (const ImageFunction& one : functions_in(module->image))
    add_function(module, one.name, scripted_within(one), one.size);
  return !module->functions.empty();
}

CUresult load(CUmodule* result, const void* image, uint32_t cbid) {
  if (CUresult error = usable()) return error;
  Call call(cbid);
  CUcontext context = current_context();
  if (!context) return call.done(CUDA_ERROR_INVALID_CONTEXT);
  if (!result || !image) return call.done(CUDA_ERROR_INVALID_VALUE);
  auto module = std::make_unique<CUmod_st>();
  module->context = context;
  module->image = image_at(image);
  module->crc = checksum_of(module->image.data(), module->image.size());
  if (!add_functions(module.get())) return call.done(CUDA_ERROR_INVALID_IMAGE);
  module->id = ++modules;
  *result = module.release();  // never freed: records and graphs refer to its functions
  truth_module(**result);
  tell_module(CUPTI_CBID_RESOURCE_MODULE_LOADED, *result);
  return call.done(CUDA_SUCCESS);
}

CUresult unload(CUmodule module, uint32_t cbid) {
  if (CUresult error = usable()) return error;
  Call call(cbid);
  if (!module) return call.done(CUDA_ERROR_INVALID_HANDLE);
  tell_module(CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, module);
  return call.done(CUDA_SUCCESS);
}

CUresult find(CUfunction* result, CUmodule module, const char* name, uint32_t cbid) {
  if (CUresult error = usable()) return error;
  Call call(cbid);
  if (!result || !module || !name) return call.done(CUDA_ERROR_INVALID_VALUE);
  std::lock_guard<std::mutex> lock(module->mutex);
  auto found = module->functions.find(name);
  if (found != module->functions.end()) {
    *result = found->second.get();
    return call.done(CUDA_SUCCESS);
  }
  if (module->complete || module->image.find(name) == std::string::npos) {
    return call.done(CUDA_ERROR_NOT_FOUND);
  }
  *result = add_function(module, name, scripted(name));
  return call.done(CUDA_SUCCESS);
}

CUmodule module_of(CUlibrary library) { return reinterpret_cast<CUmodule>(library); }
CUfunction function_of(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

}  // namespace
}  // namespace fake

using namespace fake;

FAKE_API CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load(module, image, CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData);
}

FAKE_API CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*,
                                     void**) {
  return load(module, image, CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx);
}

FAKE_API CUresult cuModuleUnload(CUmodule module) {
  return unload(module, CUPTI_DRIVER_TRACE_CBID_cuModuleUnload);
}

FAKE_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return find(function, module, name, CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction);
}

FAKE_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  *mode = CU_MODULE_EAGER_LOADING;
  return usable();
}

// Libraries are loaded at once into the current context (the real one does it lazily, in each).

FAKE_API CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                                    unsigned, CUlibraryOption*, void**, unsigned) {
  return load(reinterpret_cast<CUmodule*>(library), code,
              CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData);
}

FAKE_API CUresult cuLibraryUnload(CUlibrary library) {
  return unload(module_of(library), CUPTI_DRIVER_TRACE_CBID_cuLibraryUnload);
}

FAKE_API CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return find(reinterpret_cast<CUfunction*>(kernel), module_of(library), name,
              CUPTI_DRIVER_TRACE_CBID_cuLibraryGetKernel);
}

FAKE_API CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  *module = module_of(library);
  return usable();
}

FAKE_API CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  *function = function_of(kernel);
  return usable();
}

FAKE_API CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  *name = function_of(kernel)->name;
  return usable();
}

FAKE_API CUresult cuFuncGetName(const char** name, CUfunction function) {
  if (!name || !function) return CUDA_ERROR_INVALID_VALUE;
  *name = function->name;
  return usable();
}

FAKE_API CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  *module = function->module;
  return usable();
}

FAKE_API CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return usable(); }
FAKE_API CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return usable(); }

FAKE_API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                     CUfunction function) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = int(function->registers); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = int(function->static_shared); break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = int(function->local); break;
    default: *value = 0;
  }
  return usable();
}

FAKE_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int,
                                                              size_t) {
  *blocks = 2;
  return usable();
}
