// Reads memory page by page.
#include "python/memory.h"

#include "system/foreign_memory.h"

namespace flame::python {

bool Checked::works() {
  char any = 1, same = 0;
  return read_foreign(reinterpret_cast<uintptr_t>(&any), &same, 1) == 1 && same == any;
}

// Null: it is not there.
const char* Checked::page_at(uintptr_t address) const {
  const uintptr_t number = address / kPage + 1;
  Page& page = pages_[number % kPages];
  if (page.number == number) return page.bytes;
  page.number = 0;
  if (read_foreign((number - 1) * kPage, page.bytes, kPage) != kPage) return nullptr;
  page.number = number;
  return page.bytes;
}

void Checked::read(uintptr_t address, void* to, size_t size) const {
  char* place = static_cast<char*>(to);
  for (size_t done = 0; done < size;) {
    const size_t within = (address + done) % kPage;
    const size_t part = std::min(size - done, kPage - within);
    const char* page = page_at(address + done);
    if (!page) {
      failed_ = true;
      memset(place, 0, size);
      return;
    }
    memcpy(place + done, page + within, part);
    done += part;
  }
}

}  // namespace flame::python
