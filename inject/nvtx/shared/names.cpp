// Keeps what NVTX programs name once: domains, categories and registered strings.
#include "nvtx/shared/names.h"

#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "flame.h"
#include "nvtx/shared/lock.h"

namespace flame::nvtx {
namespace {

constexpr size_t kMaxCategories = 64 * 1024;

struct Names {
  std::unordered_map<std::string, const Domain*> domains;
  std::unordered_map<std::string, const RegisteredString*> strings;
  std::unordered_set<const void*> handles;  // of `strings`
  std::map<std::pair<uint32_t, uint32_t>, std::string> categories;  // by domain and category
};

// Never destroyed: threads may still use NVTX while the process ends.
Names& names() {
  static Names& all = *new Names;
  return all;
}

std::atomic<uint32_t> named_generation{0};  // of the dump that has the names of all domains

void write_names(const Names& all) {
  for (const auto& [value, domain] : all.domains) name(kDomain, 0, domain->id, value);
  for (const auto& [key, value] : all.categories) name(kCategory, key.first, key.second, value);
  named_generation.store(generation(), std::memory_order_release);
}

}  // namespace

const Domain* domain_named(std::string_view value) {
  ready();
  Names& all = names();
  TableLock guard;
  const std::string key(value);
  const auto found = all.domains.find(key);
  if (found != all.domains.end()) return found->second;
  auto made = std::make_unique<Domain>(Domain{static_cast<uint32_t>(all.domains.size() + 1), key});
  const Domain* domain = all.domains.emplace(key, made.get()).first->second;
  name(kDomain, 0, domain->id, value);
  return made.release();
}

const RegisteredString* registered(std::string_view value) {
  Names& all = names();
  TableLock guard;
  const std::string key(value);
  const auto found = all.strings.find(key);
  if (found != all.strings.end()) return found->second;
  auto made = std::make_unique<RegisteredString>();
  made->value = key;
  all.handles.insert(made.get());
  all.strings.emplace(key, made.get());
  return made.release();
}

bool is_registered(const void* handle) {
  Names& all = names();
  TableLock guard;
  return all.handles.count(handle) != 0;
}

uint32_t text_of(const RegisteredString& string) {
  const uint64_t dump = generation();
  const uint64_t known = string.text.load(std::memory_order_acquire);
  if (known >> 32 == dump && static_cast<uint32_t>(known)) return static_cast<uint32_t>(known);
  const uint32_t id = text(string.value);
  if (id) string.text.store(dump << 32 | id, std::memory_order_release);
  return id;
}

void name_category(uint32_t domain, uint32_t category, std::string_view value) {
  ready();
  Names& all = names();
  TableLock guard;
  const auto key = std::make_pair(domain, category);
  if (all.categories.size() < kMaxCategories || all.categories.count(key))
    all.categories[key] = value;
  name(kCategory, domain, category, value);
}

bool ready() {
  if (!recording()) return false;
  if (named_generation.load(std::memory_order_acquire) == generation()) return true;
  const Names& all = names();
  TableLock guard;
  write_names(all);
  return true;
}

}  // namespace flame::nvtx
