// Keeps records and names of one input. Ids are checked where they are used: a record never refers
// to what is not there.
#include "recorder.h"

#include <cstring>

#include "input.h"

namespace recorder {
namespace {

using flame::Type;

struct Dump {
  std::vector<Written> written;
  std::map<std::string, uint32_t> texts;
  std::vector<std::string> values{""};
  std::map<std::string, uint32_t> frames, range_names, nodes;  // by their fields, as bytes
};
Dump dump;
uint32_t generations = 1;
char place[256];
flame::OpenRange open[100];
flame::Local* locals[flame::kSlots];
std::vector<void (*)(bool)> works;
void (*apart)(flame::Flush why);

uint32_t id_in(std::map<std::string, uint32_t>& ids, std::initializer_list<uint32_t> fields) {
  std::string key(reinterpret_cast<const char*>(fields.begin()), fields.size() * 4);
  return ids.emplace(key, uint32_t(ids.size() + 1)).first->second;
}

void check_text(uint32_t id) { require(id < dump.values.size(), "a text id is known"); }
void check_node(uint32_t id) { require(id <= dump.nodes.size(), "a node id is known"); }

}  // namespace

void begin() {
  dump = Dump();
  generations++;
}

void end_thread() {
  for (flame::Local*& each : locals) {
    delete each;
    each = nullptr;
  }
}

void flush(bool last) {
  for (auto work : works) work(last);
  if (apart) apart(last ? flame::Flush::kDetach : flame::Flush::kNow);
}

const std::vector<Written>& written() { return dump.written; }

const std::string& text_of(uint32_t id) {
  check_text(id);
  return dump.values[id];
}

}  // namespace recorder

namespace flame {

using namespace recorder;

bool start(const char*) { return true; }
void stop() {}
bool recording() { return true; }
uint32_t generation() { return generations; }
bool began_late() { return false; }
void at_flush(void (*work)(bool last)) { works.push_back(work); }
void at_fork_child(void (*)()) {}
void at_flush_apart(void (*work)(Flush why), bool (*)()) { apart = work; }
Apart do_apart(void (*work)(uint64_t), uint64_t argument) { return work(argument), Apart::kDone; }
void made_progress() {}
void calling(const char*) {}
void count(Counter counter, uint64_t) { require(counter < kCounters, "a counter is one"); }
void count_most(Counter counter, uint64_t value) { count(counter, value); }

uint32_t thread_id() { return 1; }
void name_thread() {}
Local*& local(Slot slot) { return locals[slot]; }

char* reserve(Type, uint32_t size) {
  require(size <= sizeof place, "a record has a fixed, small size");
  return place;
}

void commit(Type type, uint32_t size) {
  dump.written.push_back({type, std::string(place, size)});
  if (type != kRange) return;
  Range range;
  memcpy(&range, place, sizeof range);
  require(range.name <= dump.range_names.size(), "a range's name is known");
  check_node(range.node);
  check_text(range.payload_text);
}

OpenRange* open_ranges(uint32_t* capacity) {
  *capacity = sizeof open / sizeof *open;
  return open;
}

void set_open(uint32_t depth) { require(depth <= sizeof open / sizeof *open, "open ranges fit"); }

void dropped(DropCause, Type, uint64_t) {}

uint32_t text(std::string_view value) {
  if (value.empty()) return 0;
  std::string kept(value.substr(0, kMaxText));
  const auto [found, fresh] = dump.texts.emplace(kept, uint32_t(dump.values.size()));
  if (fresh) dump.values.push_back(kept);
  return found->second;
}

uint32_t frame(std::string_view function, std::string_view file, uint32_t line) {
  return id_in(dump.frames, {text(function), text(file), line});
}

uint32_t range_name(uint32_t text, uint32_t domain, uint32_t category) {
  check_text(text);
  return id_in(dump.range_names, {text, domain, category});
}

uint32_t node(uint32_t parent, uint32_t item, NodeKind kind, uint16_t flags) {
  check_node(parent);
  require(item && item <= (kind == kPythonNode ? dump.frames : dump.range_names).size(),
          "a node's item is known");
  return id_in(dump.nodes, {parent, item, uint32_t(kind), flags});
}

void name(NameKind, uint32_t, uint32_t, std::string_view value) { text(value); }
void meta(std::string_view, std::string_view value) { text(value); }
void note(std::string_view value) { text(value); }

// Parts that a target does without.
__attribute__((weak)) bool start_cupti() { return false; }
__attribute__((weak)) void start_python() {}
__attribute__((weak)) uint32_t python_stack() { return 0; }
__attribute__((weak)) uint32_t nvtx_path() { return 0; }
__attribute__((weak)) bool reads_python() { return false; }
__attribute__((weak)) bool reads_cupti() { return false; }
__attribute__((weak)) SamplingAnswer switch_sampling(std::string_view) { return {}; }

}  // namespace flame
