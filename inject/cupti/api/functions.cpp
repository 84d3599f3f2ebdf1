// Finds the CUPTI that suits this process and looks up its functions.
#include "cupti/api/functions.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "flame.h"
#include "system/settings.h"

namespace flame {
namespace {

using Paths = std::vector<std::string>;

int collect(dl_phdr_info* object, size_t, void* paths) {
  try {
    if (object->dlpi_name && *object->dlpi_name)
      static_cast<Paths*>(paths)->emplace_back(object->dlpi_name);
  } catch (...) {
    return 1;  // out of memory: those found so far must do
  }
  return 0;
}

Paths loaded_objects() {
  Paths paths;
  dl_iterate_phdr(collect, &paths);
  return paths;
}

std::string soname(int major) { return "libcupti.so." + std::to_string(major); }

// Major version of the CUDA runtime that is loaded, 0 when there is none (or a static one).
int runtime_major(const Paths& objects) {
  constexpr char kName[] = "/libcudart.so.";
  for (const std::string& path : objects) {
    size_t at = path.rfind(kName);
    if (at != std::string::npos) return atoi(path.c_str() + at + sizeof kName - 1);
  }
  return 0;
}

int driver_major() {
  auto version = reinterpret_cast<decltype(&::cuDriverGetVersion)>(
      driver_function("cuDriverGetVersion"));
  int value = 0;
  return version && version(&value) == CUDA_SUCCESS ? value / 1000 : 0;
}

// A CUPTI newer than the driver does not run, so the runtime's or driver's own comes first.
std::vector<int> majors(const Paths& objects) {
  int runtime = runtime_major(objects), driver = driver_major();
  int first = runtime ? runtime : driver;
  return first == 12 ? std::vector<int>{12, 13} : std::vector<int>{13, 12};
}

// NVIDIA's wheels lie in one folder, wherever the libraries of one of them have been loaded from.
void add_wheel_folders(const std::string& object, int major, Paths* folders) {
  constexpr const char* kMarks[][2] = {
      {"/site-packages/", "nvidia/"}, {"/dist-packages/", "nvidia/"}, {"/nvidia/", ""}};
  for (const auto& [mark, below] : kMarks) {
    size_t at = object.rfind(mark);
    if (at == std::string::npos) continue;
    std::string wheels = object.substr(0, at + strlen(mark)) + below;
    folders->push_back(wheels + "cu" + std::to_string(major) + "/lib/");
    folders->push_back(wheels + "cuda_cupti/lib/");
  }
}

// A toolkit, conda or a distribution: beside the runtime, or in the toolkit's extras.
void add_runtime_folders(const std::string& object, Paths* folders) {
  size_t at = object.rfind("/libcudart.so.");
  if (at == std::string::npos) return;
  std::string folder = object.substr(0, at);
  folders->push_back(folder + "/");
  folders->push_back(folder + "/../extras/CUPTI/lib64/");
}

void add_toolkits(const std::string& file, Paths* files) {
  for (const char* folder : {"/usr/local/cuda*/extras/CUPTI/lib64/", "/usr/local/cuda*/lib64/"}) {
    glob_t found{};
    if (!glob((folder + file).c_str(), 0, nullptr, &found))
      for (size_t i = found.gl_pathc; i-- > 0;) files->push_back(found.gl_pathv[i]);
    globfree(&found);
  }
}

Paths candidates(const Paths& objects, int major) {
  Paths folders, files{soname(major)};
  for (const std::string& object : objects) {
    add_wheel_folders(object, major, &folders);
    add_runtime_folders(object, &folders);
  }
  for (const std::string& folder : folders)
    if (!access((folder + soname(major)).c_str(), R_OK)) files.push_back(folder + soname(major));
  add_toolkits(soname(major), &files);
  return files;
}

void* open_library(const std::string& path, int flags = 0) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  log("%s: %s", path.c_str(), handle ? "CUPTI" : dlerror());
  return handle;
}

void* search() {
  Paths objects = loaded_objects();
  std::vector<int> wanted = majors(objects);
  for (int major : wanted)
    if (void* handle = open_library(soname(major), RTLD_NOLOAD)) return handle;
  for (int major : wanted)
    for (const std::string& path : candidates(objects, major))
      if (void* handle = open_library(path)) return handle;
  return nullptr;
}

void* find() {
  try {
    const char* path = settings().cupti_path;
    return *path ? open_library(path) : search();
  } catch (...) {
    return nullptr;
  }
}

// The name of a required function that is missing, null when all are there.
const char* look_up(void* handle, Cupti* functions) {
  const char* missing = nullptr;
#define FLAME_LOOK_UP(function) \
  functions->function = reinterpret_cast<decltype(&::function)>(dlsym(handle, #function));
#define FLAME_REQUIRE(function) \
  FLAME_LOOK_UP(function)       \
  if (!functions->function) missing = #function;
  FLAME_CUPTI_REQUIRED(FLAME_REQUIRE)
  FLAME_CUPTI_OPTIONAL(FLAME_LOOK_UP)
#undef FLAME_REQUIRE
#undef FLAME_LOOK_UP
  return missing;
}

Cupti* load() {
  static Cupti functions;
  void* handle = find();
  if (!handle) {
    const char* path = settings().cupti_path;
    meta("cupti", *path ? "FLAME_CUPTI_PATH is not a library that can be loaded" : "not found");
    return nullptr;
  }
  if (const char* missing = look_up(handle, &functions)) {
    char why[128];
    snprintf(why, sizeof why, "too old: no %s", missing);
    meta("cupti", why);
    return nullptr;
  }
  return &functions;
}

}  // namespace

Cupti* cupti() {
  static Cupti* const found = load();
  return found;
}

const char* result_name(CUptiResult result) {
  const char* text = nullptr;
  Cupti* api = cupti();
  if (api && api->cuptiGetResultString) api->cuptiGetResultString(result, &text);
  return text ? text : "an error without a name";
}

void* driver_function(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver ? dlsym(driver, name) : nullptr;
}

}  // namespace flame
