// Reads memory that may not be there, through the kernel.
#include "system/foreign_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

namespace flame {

// By the kernel, which says how far it came where a signal handler of ours would have to. Page by
// page: it reads whole pieces only.
size_t read_foreign(uint64_t address, void* to, size_t size) {
  constexpr uint64_t kPage = 4096;  // or a part of one
  constexpr size_t kPieces = 4;
  iovec pieces[kPieces];
  size_t count = 0, asked = 0;
  while (asked < size && count < kPieces) {
    const uint64_t begin = address + asked;
    const size_t length = std::min<size_t>(size - asked, kPage - begin % kPage);
    pieces[count++] = {reinterpret_cast<void*>(begin), length};
    asked += length;
  }
  const iovec place = {to, asked};
  const ssize_t got = process_vm_readv(getpid(), &place, 1, pieces, count, 0);
  return got < 0 ? 0 : static_cast<size_t>(got);
}

}  // namespace flame
