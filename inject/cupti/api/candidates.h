// Lists where the CUPTI that suits this process may be.
#pragma once
#include <string>
#include <vector>

namespace flame {

struct Candidate {
  std::string path;  // without a slash: looked up as the loader does
  bool loaded;       // only if the process has loaded it already
};

// Those that are there, the likeliest to suit first: loaded already; of the major version of the
// process's CUDA runtime or driver, then of the other one, beside the runtime and in the wheels
// that libraries of this process come from, beside flame, where the loader looks, in toolkits.
// FLAME_CUPTI_PATH names the only one. Throws std::bad_alloc.
std::vector<Candidate> cupti_candidates();

// Major version of CUDA that the driver of this process supports; 0 when there is none.
int driver_major();

}  // namespace flame
