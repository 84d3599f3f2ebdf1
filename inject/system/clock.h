// Reads the one clock of all records.
#pragma once
#include <cstdint>
#include <ctime>

namespace flame {

inline uint64_t read_clock(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return uint64_t(time.tv_sec) * 1000000000u + uint64_t(time.tv_nsec);
}

inline uint64_t now() { return read_clock(CLOCK_MONOTONIC); }

// Unix time minus monotonic time, ns: of several looks the one that took the least time.
inline int64_t look_at_clocks() {
  uint64_t best = UINT64_MAX;
  int64_t offset = 0;
  for (int look = 0; look < 16; look++) {
    uint64_t before = now(), unix_time = read_clock(CLOCK_REALTIME), after = now();
    if (after - before >= best) continue;
    best = after - before;
    offset = int64_t(unix_time) - int64_t(before + best / 2);
  }
  return offset;
}

}  // namespace flame
