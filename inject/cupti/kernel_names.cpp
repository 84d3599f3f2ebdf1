// Keeps kernel names with the ids of their texts.
#include "cupti/kernel_names.h"

#include <cstdlib>
#include <cstring>

#include "flame.h"
#include "system/own_use.h"

namespace flame {

void KernelNames::clear() {
  for (Entry& entry : entries_) {
    free(entry.copy);
    entry = Entry{};
  }
}

KernelNames::~KernelNames() { clear(); }

uint32_t KernelNames::text_of(const char* symbol) {
  if (!symbol) return 0;
  const OwnUse use(used_);
  if (!use.alone) return text(symbol);
  if (generation_ != generation()) {
    clear();
    generation_ = generation();
  }
  uint64_t hash = reinterpret_cast<uintptr_t>(symbol) * 0x9e3779b97f4a7c15u;
  Entry& entry = entries_[hash >> 58];
  static_assert(kEntries == 1 << (64 - 58));
  if (entry.address == symbol && entry.copy && !strcmp(entry.copy, symbol)) return entry.text;
  uint32_t fresh = text(symbol);
  free(entry.copy);
  entry = {symbol, fresh ? strdup(symbol) : nullptr, fresh};
  return fresh;
}

}  // namespace flame
