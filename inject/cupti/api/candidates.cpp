// Looks for CUPTI in NVIDIA's wheels, beside the CUDA runtime, on the loader's path, in toolkits.
#include "cupti/api/candidates.h"

#include <cuda.h>
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "cupti/api/functions.h"
#include "system/settings.h"

namespace flame {
namespace {

using Paths = std::vector<std::string>;

constexpr char kRuntime[] = "/libcudart.so.";

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
  for (const std::string& path : objects) {
    size_t at = path.rfind(kRuntime);
    if (at != std::string::npos) return atoi(path.c_str() + at + sizeof kRuntime - 1);
  }
  return 0;
}

// A CUPTI newer than the driver does not run, so the runtime's or driver's own comes first.
std::vector<int> majors(const Paths& objects) {
  int runtime = runtime_major(objects), driver = driver_major();
  int first = runtime ? runtime : driver;
  return first == 12 ? std::vector<int>{12, 13} : std::vector<int>{13, 12};
}

void add_wheels(const std::string& folder, int major, Paths* folders) {
  folders->push_back(folder + "cu" + std::to_string(major) + "/lib/");
  folders->push_back(folder + "cuda_cupti/lib/");
}

// NVIDIA's wheels lie in one folder, wherever the libraries of one of them have been loaded from.
void add_wheels_near(const std::string& object, int major, Paths* folders) {
  constexpr const char* kMarks[][2] = {
      {"/site-packages/", "nvidia/"}, {"/dist-packages/", "nvidia/"}, {"/nvidia/", ""}};
  for (const auto& [mark, below] : kMarks) {
    size_t at = object.rfind(mark);
    if (at != std::string::npos)
      add_wheels(object.substr(0, at + strlen(mark)) + below, major, folders);
  }
}

// A toolkit, conda or a distribution: beside the runtime, or in the toolkit's extras.
void add_runtime_folders(const std::string& object, Paths* folders) {
  std::string folder = object.substr(0, object.rfind(kRuntime));
  folders->push_back(folder + "/");
  folders->push_back(folder + "/../extras/CUPTI/lib64/");
}

bool is_runtime(const std::string& object) { return object.find(kRuntime) != std::string::npos; }

// This library, as it was loaded; empty where the loader does not say.
std::string own_path() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&cupti_candidates), &info) || !info.dli_fname) return "";
  return info.dli_fname;
}

// Wheels that were installed with flame, which lies beside them: SITE/flame/libflameinject.so.
void add_own_wheels(const std::string& own, int major, Paths* folders) {
  size_t package = own.rfind('/');
  size_t site = package && package != std::string::npos ? own.rfind('/', package - 1) : own.npos;
  if (site != std::string::npos) add_wheels(own.substr(0, site + 1) + "nvidia/", major, folders);
}

// A bare name gives no second library of that name, so the folders are asked one by one.
void add_loader_folders(Paths* folders) {
  void* program = dlopen(nullptr, RTLD_NOW);
  Dl_serinfo size;
  if (!program || dlinfo(program, RTLD_DI_SERINFOSIZE, &size)) return;
  std::vector<char> room(size.dls_size);
  auto found = reinterpret_cast<Dl_serinfo*>(room.data());
  if (dlinfo(program, RTLD_DI_SERINFOSIZE, found) || dlinfo(program, RTLD_DI_SERINFO, found)) return;
  for (unsigned i = 0; i < found->dls_cnt; i++)
    if (*found->dls_serpath[i].dls_name == '/')
      folders->push_back(std::string(found->dls_serpath[i].dls_name) + "/");
}

Paths folders_to_search(const Paths& objects, int major) {
  Paths folders;
  for (const std::string& object : objects) {
    if (!is_runtime(object)) continue;
    add_runtime_folders(object, &folders);
    add_wheels_near(object, major, &folders);
  }
  const std::string own = own_path();
  for (const std::string& object : objects)
    if (!is_runtime(object) && object != own) add_wheels_near(object, major, &folders);
  add_own_wheels(own, major, &folders);
  add_loader_folders(&folders);
  return folders;
}

void add_toolkits(const std::string& file, std::vector<Candidate>* found) {
  for (const char* folder : {"/usr/local/cuda*/extras/CUPTI/lib64/", "/usr/local/cuda*/lib64/"}) {
    glob_t matches{};
    if (!glob((folder + file).c_str(), 0, nullptr, &matches))
      for (size_t i = matches.gl_pathc; i-- > 0;) found->push_back({matches.gl_pathv[i], false});
    globfree(&matches);
  }
}

void add_all(const Paths& objects, int major, std::vector<Candidate>* found) {
  const std::string file = soname(major);
  for (const std::string& folder : folders_to_search(objects, major))
    if (!access((folder + file).c_str(), R_OK)) found->push_back({folder + file, false});
  found->push_back({file, false});  // what the loader's cache knows besides
  add_toolkits(file, found);
}

}  // namespace

std::vector<Candidate> cupti_candidates() {
  if (*settings().cupti_path) return {{settings().cupti_path, false}};
  std::vector<Candidate> found;
  Paths objects = loaded_objects();
  const std::vector<int> wanted = majors(objects);
  for (int major : wanted) found.push_back({soname(major), true});
  for (int major : wanted) add_all(objects, major, &found);
  return found;
}

int driver_major() {
  auto version = reinterpret_cast<decltype(&::cuDriverGetVersion)>(
      driver_function("cuDriverGetVersion"));
  int value = 0;
  return version && version(&value) == CUDA_SUCCESS ? value / 1000 : 0;
}

}  // namespace flame
