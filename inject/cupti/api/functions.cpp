// Loads CUPTI and looks up its functions.
#include "cupti/api/functions.h"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "cupti/api/candidates.h"
#include "flame.h"
#include "system/settings.h"

namespace flame {
namespace {

Cupti functions;
Cupti* chosen = nullptr;
void* library = nullptr;  // that `functions` are of

// The name of a required function that is missing, null when all are there.
const char* look_up(void* handle) {
  const char* missing = nullptr;
  library = handle;
#define FLAME_LOOK_UP(function) \
  functions.function = reinterpret_cast<decltype(&::function)>(dlsym(handle, #function));
#define FLAME_REQUIRE(function) \
  FLAME_LOOK_UP(function)       \
  if (!functions.function) missing = #function;
  FLAME_CUPTI_REQUIRED(FLAME_REQUIRE)
  FLAME_CUPTI_OPTIONAL(FLAME_LOOK_UP)
#undef FLAME_REQUIRE
#undef FLAME_LOOK_UP
  return missing;
}

void* open_library(const Candidate& candidate) {
  int flags = RTLD_NOW | RTLD_LOCAL | (candidate.loaded ? RTLD_NOLOAD : 0);
  void* handle = dlopen(candidate.path.c_str(), flags);
  log("%s: %s", candidate.path.c_str(), handle ? "CUPTI" : dlerror());
  return handle;
}

// Where the library is that has been looked up.
std::string library_path(const std::string& otherwise) {
  Dl_info info;
  bool known = dladdr(reinterpret_cast<void*>(functions.cuptiSubscribe), &info) && info.dli_fname;
  return known ? info.dli_fname : otherwise;
}

Attempt try_library(void* handle, Attempt (*attempt)(std::string*), std::string* why) {
  if (const char* missing = look_up(handle)) {
    *why = std::string("too old: no ") + missing;
    return Attempt::kTryNext;
  }
  chosen = &functions;
  Attempt came = attempt(why);
  if (came != Attempt::kWorks) chosen = nullptr;
  return came;
}

// A driver, and nothing to record it with: as in images that are made for running alone.
void say_none() {
  if (*settings().cupti_path)
    return meta("cupti", "FLAME_CUPTI_PATH is not a library that can be loaded");
  meta("cupti", "no libcupti found");
  int driver = driver_major();
  if (!driver) return;
  std::string package = driver < 13 ? "nvidia-cuda-cupti-cu12" : "nvidia-cuda-cupti";
  note("no libcupti found: launches and kernels are not recorded, NVTX ranges are; CUDA's base and "
       "runtime images come without: pip install " + package + " beside flame or the program");
}

// Libraries that do not work stay loaded: to close one that has threads or handlers is no better.
bool choose(Attempt (*attempt)(std::string*)) {
  std::vector<void*> tried;
  std::string refused;
  for (const Candidate& candidate : cupti_candidates()) {
    void* handle = open_library(candidate);
    if (!handle || std::find(tried.begin(), tried.end(), handle) != tried.end()) continue;
    tried.push_back(handle);
    std::string why;
    Attempt came = try_library(handle, attempt, &why);
    const std::string path = library_path(candidate.path);
    if (came == Attempt::kWorks) {
      meta("cupti_path", path);
      if (!refused.empty()) meta("cupti_refused", refused);
      if (!refused.empty()) note("recorded with " + path + ", because of " + refused);
      return true;
    }
    log("%s: %s", path.c_str(), why.c_str());
    refused += (refused.empty() ? "" : "; ") + path + ": " + why;
    if (came == Attempt::kGiveUp) break;
  }
  if (tried.empty()) say_none();
  else meta("cupti", refused);
  return false;
}

}  // namespace

Cupti* cupti() { return chosen; }

bool choose_cupti(Attempt (*attempt)(std::string* why)) {
  try {
    return choose(attempt);
  } catch (...) {
    chosen = nullptr;
    return false;
  }
}

void* cupti_function(const char* name) { return library ? dlsym(library, name) : nullptr; }

const char* result_name(CUptiResult result) {
  const char* text = nullptr;
  if (chosen && chosen->cuptiGetResultString) chosen->cuptiGetResultString(result, &text);
  return text ? text : "an error without a name";
}

void* driver_function(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver ? dlsym(driver, name) : nullptr;
}

}  // namespace flame
