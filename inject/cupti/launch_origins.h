// Remembers where GPU work comes from: from the driver call until its record arrives.
#pragma once
#include <cstdint>

namespace flame {

struct Origin {
  uint32_t tid, python, nvtx;  // tid 0: the call was not seen, or too long ago
};

// Of the latest calls; `time` in ns, kept as far as needed to tell what came first within a minute.
void remember_start(uint32_t correlation, uint64_t time);
bool started_before_call(uint32_t correlation, uint64_t time);  // false: the call is not known

void remember_origin(uint32_t correlation, const Origin& origin);
Origin origin_of(uint32_t correlation);

// What records of all that a call has done have in common.
template <class Record>
void set_origin(uint32_t correlation, const Origin& origin, Record* to) {
  to->correlation = correlation;
  to->python = origin.python;
  to->nvtx = origin.nvtx;
  to->tid = origin.tid;
}

}  // namespace flame
