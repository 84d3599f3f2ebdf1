// Scripts: which kernels there are, how long they run and what PC samples each run of them gives.
//   kernel NAME DURATION_NS [REGISTERS STATIC_SHARED LOCAL]
//   waited NAME                          runs until cuStreamSynchronize has slept for so long
//   sample NAME OFFSET REASON COUNT      REASON: an index, or a name such as long_scoreboard
// The double's own image is one; FAKE_SAMPLES names one for the functions of all other images.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "fake/fake.h"

namespace fake {
namespace {

bool read_kernel(std::istream& line, CUfunc_st* kernel) {
  if (!(line >> kernel->duration)) return false;
  uint32_t registers;
  if (line >> registers) {
    kernel->registers = registers;
    line >> kernel->static_shared >> kernel->local;
  }
  return true;
}

bool read_reason(const std::string& word, uint32_t* reason) {
  bool digits = word.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) return reason_called(word, reason);
  *reason = uint32_t(atoi(word.c_str()));
  return !word.empty();
}

bool read_sample(std::istream& line, CUfunc_st* kernel) {
  CUfunc_st::Sample sample = {};
  std::string offset, reason;
  line >> offset >> reason >> sample.count;
  sample.offset = strtoull(offset.c_str(), nullptr, 0);
  if (!line || !read_reason(reason, &sample.reason)) return false;
  kernel->samples.push_back(sample);
  return true;
}

bool read_line(const std::string& text, Script* script) {
  std::istringstream line(text);
  std::string word, name;
  if (!(line >> word) || word[0] == '#') return true;
  if (!(line >> name)) return false;
  if (word == "kernel") return read_kernel(line, &(*script)[name]);
  auto found = script->find(name);
  if (found == script->end()) return false;
  if (word == "waited") return found->second.waited = true;
  return word == "sample" && read_sample(line, &found->second);
}

Script read_file(const char* path) {
  std::ifstream file(path);
  Script script;
  std::string line;
  if (!file) {
    fprintf(stderr, "FAKE_SAMPLES: %s cannot be read\n", path);
    abort();
  }
  while (getline(file, line)) {
    if (read_line(line, &script)) continue;
    fprintf(stderr, "FAKE_SAMPLES: not understood: %s\n", line.c_str());
    abort();
  }
  return script;
}

}  // namespace

bool read_script(const std::string& text, Script* script) {
  std::istringstream lines(text);
  std::string line;
  while (getline(lines, line)) {
    if (!read_line(line, script)) return false;
  }
  return true;
}

const CUfunc_st* scripted(std::string_view name) {
  static const char* const path = getenv("FAKE_SAMPLES");
  static const Script& script = *new Script(path ? read_file(path) : Script());
  auto found = script.find(name);
  return found == script.end() ? nullptr : &found->second;
}

}  // namespace fake
