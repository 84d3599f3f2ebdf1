// Starts, flushes and ends the recording. Order of the locks: lifecycle, names, chunks, file; with
// those of threads and helper nothing else is locked.
#pragma once
#include <cstdint>
#include <mutex>

namespace flame {

extern std::mutex lifecycle_lock;

void run_flush_work(bool last);
void finish(uint32_t header_flags);  // last flush, then the dump is ended; once, later calls do nothing

}  // namespace flame
