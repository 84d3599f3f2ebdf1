// How long the end of the program waits at most, in ns. It may come in a signal handler, whose thread
// was interrupted with a lock that the library needs, and CUPTI may wait for a thread that waits for
// us: then the dump ends without a last flush, or not at all.
#pragma once
#include <cstdint>

namespace flame {

#ifndef FLAME_PATIENCE_MS  // longer in a build that a sanitizer makes slow
#define FLAME_PATIENCE_MS 10000
#endif
constexpr uint64_t kMillisecond = 1000000;
constexpr uint64_t kLeastWork = kMillisecond;  // of a thread that does something
constexpr uint64_t kFinishTimeout = FLAME_PATIENCE_MS * kMillisecond;
constexpr uint64_t kIdleTimeout = kFinishTimeout * 3 / 10;  // so long the helper does nothing
constexpr uint64_t kLockTimeout = kFinishTimeout / 100;
// For CUPTI, less than for the helper, which then still has a dump to end.
constexpr uint64_t kLastFlushTimeout = kFinishTimeout * 8 / 10;
constexpr uint64_t kLastFlushIdleTimeout = kFinishTimeout * 2 / 10;
constexpr uint64_t kWorkIdleTimeout = kFinishTimeout * 2 / 10;  // likewise, what a client asks for
constexpr uint64_t kFlushTimeout = kFinishTimeout / 20;  // then it goes on without the helper

}  // namespace flame
