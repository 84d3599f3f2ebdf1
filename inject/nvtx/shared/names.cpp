// Keeps what NVTX programs name once: domains, categories and registered strings.
#include "nvtx/shared/names.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "flame.h"
#include "nvtx/shared/lock.h"
#include "nvtx/shared/table.h"

namespace flame::nvtx {
namespace {

// What a program names must not fill its memory: what it names beyond this shares one name, and is
// counted. Each thread keeps 8 bytes for each domain.
constexpr size_t kMaxDomains = 4096;
constexpr size_t kMaxBytes = 64u << 20;  // of all names
constexpr size_t kOverhead = 256;        // of one: what it is kept in, entries of tables
constexpr std::string_view kFurtherDomains = "[further domains]";
constexpr std::string_view kFurtherStrings = "[further strings]";

struct Names {
  // Keys are in what they name, which lives for ever.
  std::unordered_map<std::string_view, const Domain*> domains;
  std::unordered_map<std::string_view, const RegisteredString*> strings;
  std::unordered_set<const void*> handles;  // of `strings`
  std::map<std::pair<uint32_t, uint32_t>, std::string> categories;  // by domain and category
  uint64_t forgotten_categories = 0;
  size_t bytes = 0;  // of all of that

  bool has_room(std::string_view value) const {
    return bytes + kOverhead + value.size() <= kMaxBytes;
  }
};

std::atomic<uint32_t> named_generation{0};  // of the dump that has the names of all domains

void write_names(const Names& all) {
  for (const auto& [value, domain] : all.domains) name(kDomain, 0, domain->id, value);
  for (const auto& [key, value] : all.categories) name(kCategory, key.first, key.second, value);
  dropped(kNameLimit, kName, all.forgotten_categories);
  named_generation.store(generation(), std::memory_order_release);
}

template <class Table>
auto find(const Table& table, std::string_view value) {
  const auto found = table.find(value);
  return found == table.end() ? nullptr : found->second;
}

// Neither is given back where there is no memory for its entry in a table: one may be there already.

const Domain* add_domain(Names* all, std::string_view value) {
  const auto id = static_cast<uint32_t>(all->domains.size() + 1);
  const auto* made = new Domain{id, std::string(value)};
  all->domains.emplace(made->name, made);
  all->bytes += kOverhead + value.size();
  name(kDomain, 0, id, value);
  return made;
}

const RegisteredString* add_string(Names* all, std::string_view value) {
  const auto* made = new RegisteredString{std::string(value)};
  all->handles.insert(made);
  all->strings.emplace(made->value, made);
  all->bytes += kOverhead + value.size();
  return made;
}

// For the dump of a forked child; this one has the name itself.
void keep_category(Names* all, std::pair<uint32_t, uint32_t> key, std::string_view value) {
  const auto found = all->categories.find(key);
  if (found != all->categories.end()) {
    all->bytes -= found->second.size() + kOverhead;
    all->categories.erase(found);
  }
  if (!all->has_room(value)) {
    all->forgotten_categories++;
    return;
  }
  all->categories.emplace(key, value);
  all->bytes += kOverhead + value.size();
}

}  // namespace

const Domain* domain_named(std::string_view value) {
  ready();
  Names& all = the<Names>();
  TableLock guard;
  if (const Domain* known = find(all.domains, value)) return known;
  if (all.domains.size() < kMaxDomains && all.has_room(value)) return add_domain(&all, value);
  dropped(kNameLimit, kName, 1);
  const Domain* further = find(all.domains, kFurtherDomains);
  return further ? further : add_domain(&all, kFurtherDomains);
}

const RegisteredString* registered(std::string_view value) {
  Names& all = the<Names>();
  TableLock guard;
  if (const RegisteredString* known = find(all.strings, value)) return known;
  if (all.has_room(value)) return add_string(&all, value);
  dropped(kNameLimit, kText, 1);
  const RegisteredString* further = find(all.strings, kFurtherStrings);
  return further ? further : add_string(&all, kFurtherStrings);
}

bool is_registered(const void* handle) {
  Names& all = the<Names>();
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
  Names& all = the<Names>();
  TableLock guard;
  keep_category(&all, {domain, category}, value);
  name(kCategory, domain, category, value);
}

bool ready() {
  if (!recording()) return false;
  if (named_generation.load(std::memory_order_acquire) == generation()) return true;
  const Names& all = the<Names>();
  TableLock guard;
  write_names(all);
  return true;
}

}  // namespace flame::nvtx
