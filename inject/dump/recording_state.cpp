// Holds the state of the recording.
#include "dump/recording_state.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace flame {
namespace {

// On a page of its own that the kernel empties in every child: pthread_atfork hears of fork() only,
// and the child of a bare clone() would write into the dump of its parent.
std::atomic<uint32_t>& state_on_own_page() {
  static std::atomic<uint32_t> without_page{kOff};
  const size_t size = size_t(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return without_page;
  madvise(page, size, MADV_WIPEONFORK);
  return *new (page) std::atomic<uint32_t>{kOff};
}

}  // namespace

std::atomic<uint32_t>& recording_state = state_on_own_page();

}  // namespace flame
