// What the double ran, as JSON lines in FAKE_TRUTH.<pid>: what a perfect recording would hold.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "fake/fake.h"

namespace fake {

struct Line {
  std::string text;

  explicit Line(const char* what) : text("{") { add("what", what); }

  void key(const char* name) {
    if (text.size() > 1) text += ',';
    text.append(1, '"').append(name).append("\":");
  }
  void add(const char* name, uint64_t value) {
    key(name);
    text += std::to_string(value);
  }
  void add(const char* name, const char* value) {
    key(name);
    text += '"';
    for (; *value; ++value) character(static_cast<unsigned char>(*value));
    text += '"';
  }
  void character(unsigned char byte) {
    char escape[8];
    snprintf(escape, sizeof escape, "\\u%04x", byte);
    if (byte < 0x20 || byte == '"' || byte == '\\') text += escape;
    else text += char(byte);
  }
};

namespace {

struct Truth {
  std::mutex mutex;
  std::string waiting;
  int file = -1;
  pid_t owner = 0;
};
Truth& truth = *new Truth;

void write_out() {  // with the lock held
  if (truth.file < 0) {
    std::string path = std::string(getenv("FAKE_TRUTH")) + "." + std::to_string(getpid());
    truth.file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    truth.owner = getpid();
  }
  size_t done = 0;
  while (done < truth.waiting.size()) {
    ssize_t count = write(truth.file, truth.waiting.data() + done, truth.waiting.size() - done);
    if (count <= 0) break;
    done += size_t(count);
  }
  truth.waiting.clear();
}

void put(Line& line) {
  line.text += "}\n";
  std::lock_guard<std::mutex> lock(truth.mutex);
  truth.waiting += line.text;
  if (truth.waiting.size() > 1 << 16) write_out();
}

__attribute__((destructor)) void last() { truth_flush(); }

uint32_t thread() { return uint32_t(syscall(SYS_gettid)); }

const char* kind_name(const Operation& operation) {
  switch (operation.work.kind) {
    case CUPTI_ACTIVITY_KIND_MEMSET: return "memset";
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return "graph";
    case CUPTI_ACTIVITY_KIND_MEMCPY:
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return "memcpy";
    case CUPTI_ACTIVITY_KIND_MEMORY2: return "memory";
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL: return "pool";
    default: return "kernel";
  }
}

void add_size(Line& line, const char* const (&names)[3], const uint32_t (&values)[3]) {
  for (int i = 0; i < 3; ++i) line.add(names[i], values[i]);
}

void add_kernel(Line& line, const Operation& operation) {
  line.add("symbol", operation.name);
  add_size(line, {"grid_x", "grid_y", "grid_z"}, operation.work.grid);
  add_size(line, {"block_x", "block_y", "block_z"}, operation.work.block);
  add_size(line, {"cluster_x", "cluster_y", "cluster_z"}, operation.work.cluster);
  line.add("registers", operation.registers);
  line.add("static_shared", operation.static_shared);
  line.add("dynamic_shared", operation.work.dynamic_shared);
  line.add("local", operation.local);
}

void add_bytes(Line& line, const Operation& operation) {
  line.add("bytes", operation.work.bytes);
  line.add("copy_kind", operation.work.copy_kind);
  line.add("source", operation.work.source);
  line.add("target", operation.work.target);
}

void add_memory(Line& line, const Operation& operation) {
  const Work& work = operation.work;
  line.add("operation", work.operation);
  line.add("kind", work.target);
  line.add("address", work.address);
  line.add("bytes", work.bytes);
  line.add("pool", work.pool);
  line.add("pool_size", work.pool_size);
  line.add("pool_used", work.pool_used);
}

bool begins_with_any(const char* api, std::initializer_list<const char*> starts) {
  return std::any_of(starts.begin(), starts.end(), [api](const char* start) {
    return !strncmp(api, start, strlen(start));
  });
}

// What a recording holds a call as, null: it does not.
const char* recorded_as(const char* api) {
  if (begins_with_any(api, {"cuLaunch", "cuGraphLaunch", "cuMemcpy", "cuMemset"})) return "launch";
  const bool blocks = begins_with_any(
      api, {"cuCtxSynchronize", "cuEventSynchronize", "cuStreamSynchronize", "cuMemAlloc",
            "cuMemFree", "cuMemHostAlloc", "cuModuleLoad", "cuModuleUnload", "cuLibraryLoad",
            "cuLibraryUnload"});
  return blocks ? "call" : nullptr;
}

}  // namespace

bool truth_wanted() {
  static const bool wanted = getenv("FAKE_TRUTH") != nullptr;
  return wanted;
}

void truth_flush() {
  // A forked child has nothing of its own here, and may have inherited a lock that nobody opens.
  if (!truth_wanted() || usable()) return;
  std::lock_guard<std::mutex> lock(truth.mutex);
  if (!truth.waiting.empty()) write_out();
}

void truth_call(const char* api, const CUpti_CallbackData& data, uint32_t cbid, bool failed,
                uint64_t start, uint64_t end) {
  const char* what = api ? recorded_as(api) : nullptr;
  if (!what) return;
  Line line(what);
  line.add("api", api);
  line.add("cbid", cbid);
  line.add("correlation", data.correlationId);
  line.add("tid", thread());
  line.add("context", data.contextUid);
  line.add("symbol", data.symbolName ? data.symbolName : "");
  line.add("failed", failed);
  line.add("start", start);
  line.add("end", end);
  put(line);
}

void truth_operation(const Operation& operation) {
  if (!truth_wanted()) return;
  Line line(kind_name(operation));
  line.add("start", operation.start);
  line.add("end", operation.end);
  line.add("correlation", operation.correlation);
  line.add("tid", thread());
  line.add("device", operation.device);
  line.add("context", operation.context);
  line.add("stream", operation.stream);
  line.add("graph", operation.graph);
  line.add("graph_node", operation.graph_node);
  if (operation.name) add_kernel(line, operation);
  else if (is_of_memory(operation.work.kind)) add_memory(line, operation);
  else add_bytes(line, operation);
  put(line);
}

void truth_lost(const char* why, const Operation& operation) {
  if (!truth_wanted()) return;
  Line line(why);
  line.add("of", kind_name(operation));
  line.add("correlation", operation.correlation);
  line.add("graph_node", operation.graph_node);
  put(line);
}

void truth_node(uint64_t node, uint64_t original, uint32_t graph, CUgraphNodeType type,
                uint64_t before) {
  if (!truth_wanted()) return;
  Line line("graph_node");
  line.add("node", node);
  line.add("original", original);
  line.add("graph", graph);
  line.add("type", type);
  line.add("tid", thread());
  line.add("start", before);
  line.add("end", now());
  put(line);
}

void truth_module(const CUmod_st& module) {
  if (!truth_wanted()) return;
  Line line("module");
  line.add("module", module.id);
  line.add("crc", module.crc);
  line.add("size", module.image.size());
  line.add("context", module.context->id);
  put(line);
}

void truth_sample(uint32_t context, const Operation& operation, const CUfunc_st::Sample& sample,
                  bool serialized) {
  if (!truth_wanted()) return;
  Line line("sample");
  line.add("crc", operation.work.function->module->crc);
  line.add("function", operation.name);
  line.add("offset", sample.offset);
  line.add("reason", sample.reason);
  line.add("samples", sample.count);
  line.add("correlation", serialized ? operation.correlation : 0);
  line.add("context", context);
  put(line);
}

}  // namespace fake
