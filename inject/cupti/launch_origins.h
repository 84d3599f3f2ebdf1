// Remembers where GPU work comes from: from the driver call until its record arrives.
#pragma once
#include <cstdint>

namespace flame {

struct Origin {
  uint32_t tid, python, nvtx;  // tid 0: the call was not seen, or too long ago
};

void remember_origin(uint32_t correlation, const Origin& origin);
Origin origin_of(uint32_t correlation);

}  // namespace flame
