// Modules and functions. The double's own image is a text:
//   flame-fake 1
//   kernel NAME DURATION_NS [REGISTERS STATIC_SHARED LOCAL]
//   sample NAME OFFSET REASON COUNT      PC samples that each run of NAME gives
// Functions whose names begin with fail_ cannot be launched. Of other images (PTX, cubin, fatbin)
// every function that is named in it exists, and runs as long as a hash of its name says; the whole
// image is what is told as the cubin (the real driver compiles PTX, and takes one out of a fatbin).
#include <elf.h>

#include <cstring>
#include <sstream>

#include "fake.h"

namespace fake {
namespace {

constexpr char kScript[] = "flame-fake 1";
std::atomic<uint32_t> modules{0};

bool begins(const void* image, const void* magic, size_t size) {
  return memcmp(image, magic, size) == 0;
}

size_t elf_size(const void* image) {  // the section headers are the last thing in a cubin
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  size_t sections = header.e_shoff + size_t(header.e_shnum) * header.e_shentsize;
  size_t segments = header.e_phoff + size_t(header.e_phnum) * header.e_phentsize;
  return std::max(sections, segments);
}

size_t fatbin_size(const void* image) {  // {u4 magic, u2 version, u2 header size, u8 size}
  uint16_t header;
  uint64_t rest;
  memcpy(&header, static_cast<const char*>(image) + 6, sizeof header);
  memcpy(&rest, static_cast<const char*>(image) + 8, sizeof rest);
  return header + rest;
}

std::string copy_of(const void* image) {
  constexpr unsigned char kFatbin[] = {0x50, 0xed, 0x55, 0xba};
  constexpr unsigned char kWrapper[] = {0xb1, 0x43, 0x62, 0x46};
  if (begins(image, kWrapper, 4)) {  // {u4 magic, u4 version, data, …}
    memcpy(&image, static_cast<const char*>(image) + 8, sizeof image);
  }
  size_t size = begins(image, ELFMAG, SELFMAG) ? elf_size(image)
                : begins(image, kFatbin, 4)    ? fatbin_size(image)
                                               : strlen(static_cast<const char*>(image));
  return std::string(static_cast<const char*>(image), size);
}

uint64_t hashed_duration(std::string_view name) {
  return 2000 + crc_of(name.data(), name.size()) % 58000;
}

CUfunction add_function(CUmodule module, std::string_view name, uint64_t duration) {
  auto function = std::make_unique<CUfunc_st>();
  function->name = intern(name);
  function->module = module;
  function->duration = duration;
  function->fails = name.substr(0, 5) == "fail_";
  CUfunction result = function.get();
  module->functions.emplace(std::string(name), std::move(function));
  return result;
}

bool read_line(CUmodule module, const std::string& text) {
  std::istringstream line(text);
  std::string word, name;
  if (!(line >> word) || word[0] == '#') return true;
  line >> name;
  if (word == "kernel") {
    uint64_t duration = 0;
    if (!(line >> duration)) return false;
    CUfunction function = add_function(module, name, duration);
    uint32_t registers;
    if (line >> registers) {
      function->registers = registers;
      line >> function->static_shared >> function->local;
    }
    return true;
  }
  auto found = module->functions.find(name);
  if (word != "sample" || found == module->functions.end()) return false;
  CUfunc_st::Sample sample = {};
  line >> sample.offset >> sample.reason >> sample.count;
  found->second->samples.push_back(sample);
  return bool(line);
}

bool read_script(CUmodule module) {
  std::istringstream lines(module->image);
  std::string line;
  getline(lines, line);
  module->scripted = true;
  while (getline(lines, line)) {
    if (!read_line(module, line)) return false;
  }
  return true;
}

CUresult load(CUmodule* result, const void* image, uint32_t cbid) {
  if (CUresult error = usable()) return error;
  Call call(cbid);
  CUcontext context = current_context();
  if (!context) return call.done(CUDA_ERROR_INVALID_CONTEXT);
  if (!result || !image) return call.done(CUDA_ERROR_INVALID_VALUE);
  auto module = std::make_unique<CUmod_st>();
  module->context = context;
  module->image = copy_of(image);
  module->crc = crc_of(module->image.data(), module->image.size());
  bool script = module->image.compare(0, strlen(kScript), kScript) == 0;
  if (script && !read_script(module.get())) return call.done(CUDA_ERROR_INVALID_IMAGE);
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
  if (module->scripted || module->image.find(name) == std::string::npos) {
    return call.done(CUDA_ERROR_NOT_FOUND);
  }
  *result = add_function(module, name, hashed_duration(name));
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
