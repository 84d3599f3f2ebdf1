// Defines the dump format: a header, then chunks of one record type each. Every reader takes the
// layout of the records from the JSON schema in the header, which is made of the same lists as the
// structs.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace flame {

constexpr char kMagic[8] = {'F', 'L', 'A', 'M', 'E', 'D', 'M', 'P'};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kHeaderSize = 64 * 1024;
constexpr uint32_t kChunkSize = 64 * 1024;
constexpr uint32_t kChunkMagic = 0x4b484346;  // "FCHK"
constexpr uint32_t kSchemaOffset = 4096;
constexpr size_t kSegmentSize = 16u << 20;  // by so much the file grows at most at a time
constexpr uint32_t kMaxText = 32 * 1024;    // longer texts are cut

enum State : uint32_t { kRunning = 0, kEnded = 1 };  // kEnded: everything has been written
enum HeaderFlag : uint32_t {
  kFull = 1,     // the disk (or FLAME_MAX_MB) is full: recording has stopped, drops are counted
  kStopped = 2,  // FLAME_DURATION_MS is over, or it was asked for: recording has stopped
};

struct Header {
  char magic[8];
  uint32_t version, header_size, chunk_size, pid;
  uint64_t start_unix;  // ns since 1970 when `start_monotonic` was; FLAME_CLOCK makes it exact
  uint64_t start_monotonic;
  std::atomic<uint64_t> tail;     // file offset behind the last chunk
  std::atomic<uint64_t> dropped;  // records that could not be written
  uint32_t schema_offset, schema_size;
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> flags;
  // When recording ended or stopped; before that every flush_ms anew, or 0: a reader knows for how
  // long what is open has been so.
  std::atomic<uint64_t> end_monotonic;
};
static_assert(sizeof(Header) == 80);

// One thread writes to a chunk at a time: first the record, then `committed` with release. A chunk
// that a thread leaves half full may be given to another one: records say themselves whose they are.
struct Chunk {
  std::atomic<uint32_t> magic;  // kChunkMagic, stored last
  uint16_t type;
  uint16_t record_size;  // 0: of varying size, see Text
  uint32_t size;         // with this header
  uint32_t tid;          // of the first writer
  std::atomic<uint32_t> committed;  // bytes of whole records behind this header
  std::atomic<uint32_t> sealed;     // nothing more will come
  uint64_t start;                   // monotonic time at which it was made
  uint64_t reserved[4];
};
static_assert(sizeof(Chunk) == 64);

enum Type : uint16_t {
  kText = 1,       // {u4 id, u4 size, bytes, padded to a multiple of 8}
  kFrame = 2,      // a Python code position
  kRangeName = 3,  // what an NVTX range is called
  kNode = 4,       // a stack: a frame or range below another node
  kLaunch = 5,     // a CUDA API call that puts work on a GPU
  kKernel = 6,     // a kernel that ran
  kMemop = 7,      // a copy or set that ran
  kRange = 8,      // an NVTX range or mark that has ended
  kOpenRange = 9,  // NVTX ranges that are open: rewritten in place, `committed` falls as well
  kGraphNode = 10,  // a node of a CUDA graph was made
  kName = 11,       // a name for a number
  kMeta = 12,       // a fact about the process
  kDrop = 13,       // records were lost
  kModule = 14,     // a loaded cubin
  kSample = 15,     // PC samples
  kCall = 16,       // another CUDA API call, which may block its thread
  kModuleEnd = 17,  // a module is about to be unloaded
  kGraphExec = 18,  // a CUDA graph was made executable
  kGraphRun = 19,   // a CUDA graph that ran, told of as a whole
  kMemory = 20,     // memory that was given out or taken back, or a pool of it
  kTypes = 21,
};

// Ids are per dump, begin at 1 and are never used twice; 0 is "none". A text, frame or node may be
// written again under another id: caches in the process are bounded. All times are ns of
// CLOCK_MONOTONIC. A record is committed after all records that it refers to.

#define FLAME_FRAME(F) \
  F(uint32_t, id) F(uint32_t, function /*text*/) F(uint32_t, file /*text*/) F(uint32_t, line)

#define FLAME_RANGE_NAME(F) \
  F(uint32_t, id) F(uint32_t, text) F(uint32_t, domain /*NVTX domain, 0: default*/) \
  F(uint32_t, category)

// kind 0: `item` is a Frame, kind 1: a RangeName. The parent is nearer to the root, 0 for none.
// flags 1: the stack was deeper than kMaxDepth: outermost frames are missing above this one
#define FLAME_NODE(F) \
  F(uint32_t, id) F(uint32_t, parent) F(uint32_t, item) F(uint16_t, kind) F(uint16_t, flags)

// `python` and `nvtx` are nodes; `api` is the driver API callback id, see Name kApi; `symbol` is the
// kernel's mangled name (0: none). flags: see LaunchFlag.
#define FLAME_LAUNCH(F) \
  F(uint64_t, start) F(uint64_t, end) F(uint32_t, correlation) F(uint32_t, tid) \
  F(uint32_t, python) F(uint32_t, nvtx) F(uint32_t, symbol) F(uint32_t, api) \
  F(uint32_t, context) F(uint32_t, flags)

// A call that waits for a GPU, allocates, frees or loads code; which of them `api` tells. Calls of a
// thread do not overlap, but launches may lie within them: see kWithin. `result`: what it returned.
// Only where the meta "calls" is "recorded", and then all of them.
#define FLAME_CALL(F) \
  F(uint64_t, start) F(uint64_t, end) F(uint32_t, tid) F(uint32_t, python) F(uint32_t, nvtx) \
  F(uint32_t, api) F(uint32_t, context) F(uint32_t, result)

// `python`, `nvtx` and `tid` are those of the launch with `correlation`; tid 0: that was not seen.
// `graph_node`: of work of a graph, the node that ran or, where CUPTI tells it, the one it came from.
#define FLAME_KERNEL(F) \
  F(uint64_t, start) F(uint64_t, end) F(uint64_t, graph_node) F(uint32_t, correlation) \
  F(uint32_t, symbol) F(uint32_t, python) F(uint32_t, nvtx) F(uint32_t, tid) F(uint32_t, device) \
  F(uint32_t, context) F(uint32_t, stream) F(uint32_t, graph) F(uint32_t, grid_x) \
  F(uint16_t, grid_y) F(uint16_t, grid_z) F(uint16_t, block_x) F(uint16_t, block_y) \
  F(uint16_t, block_z) F(uint16_t, registers) F(uint32_t, static_shared) \
  F(uint32_t, dynamic_shared) F(uint32_t, local) F(uint8_t, cluster_x) F(uint8_t, cluster_y) \
  F(uint8_t, cluster_z) F(uint8_t, flags) F(uint32_t, reserved)

// kind 0: copy, 1: set; copy_kind, source, target as in CUPTI (CUpti_ActivityMemcpyKind, MemoryKind)
#define FLAME_MEMOP(F) \
  F(uint64_t, start) F(uint64_t, end) F(uint64_t, graph_node) F(uint64_t, bytes) \
  F(uint32_t, correlation) F(uint32_t, python) F(uint32_t, nvtx) F(uint32_t, tid) \
  F(uint32_t, device) F(uint32_t, context) F(uint32_t, stream) F(uint32_t, graph) \
  F(uint8_t, kind) F(uint8_t, copy_kind) F(uint8_t, source) F(uint8_t, target) \
  F(uint32_t, reserved)

// In place of all kernels, copies and sets of one launch: FLAME_GRAPHS=whole.
#define FLAME_GRAPH_RUN(F) \
  F(uint64_t, start) F(uint64_t, end) F(uint32_t, correlation) F(uint32_t, python) \
  F(uint32_t, nvtx) F(uint32_t, tid) F(uint32_t, device) F(uint32_t, context) F(uint32_t, stream) \
  F(uint32_t, graph)

// Memory that was given out or taken back (what 0), or a pool of it that was created, destroyed or
// trimmed to `bytes` (what 1): FLAME_MEMORY_EVENTS=1. operation, kind and pool_type as in CUPTI
// (CUpti_ActivityMemoryOperationType or CUpti_ActivityMemoryPoolOperationType, MemoryKind,
// MemoryPoolType), 255: beyond. `pool` is the address of the pool, 0: none; what it holds, and of
// that has given out, right after, in bytes: of local pools alone. context, stream ~0: none.
// `python`, `nvtx` and `tid` are those of the call with `correlation`; tid 0: that was not seen.
#define FLAME_MEMORY(F) \
  F(uint64_t, time) F(uint64_t, address) F(uint64_t, bytes) F(uint64_t, pool) \
  F(uint64_t, pool_size) F(uint64_t, pool_used) F(uint32_t, correlation) F(uint32_t, python) \
  F(uint32_t, nvtx) F(uint32_t, tid) F(uint32_t, device) F(uint32_t, context) \
  F(uint32_t, stream) F(uint8_t, what) F(uint8_t, operation) F(uint8_t, kind) \
  F(uint8_t, pool_type)

// kind 0: push/pop, 1: start/end, 2: mark. `name` is a RangeName, `node` the path with it (push/pop
// only). payload_type as in NVTX (0: none), `payload` its bits; payload_text: an extended payload
// as JSON (a text, 0: none). tid: where it began; end_tid: where it ended.
#define FLAME_RANGE(F) \
  F(uint64_t, start) F(uint64_t, end) F(uint64_t, payload) F(uint32_t, tid) F(uint32_t, end_tid) \
  F(uint32_t, name) F(uint32_t, node) F(uint32_t, color) F(uint32_t, payload_text) \
  F(uint16_t, payload_type) F(uint16_t, kind) F(uint32_t, reserved)

#define FLAME_OPEN_RANGE(F) \
  F(uint64_t, start) F(uint32_t, tid) F(uint32_t, name) F(uint32_t, node) F(uint32_t, reserved)

// original 0: made by capture or by hand at `time`, with these stacks; else cloned from that node
#define FLAME_GRAPH_NODE(F) \
  F(uint64_t, node) F(uint64_t, original) F(uint64_t, time) F(uint32_t, tid) F(uint32_t, python) \
  F(uint32_t, nvtx) F(uint32_t, graph)

// `exec` was made of `graph`. Both are in the upper halves of their nodes' ids; the lower half of a
// node is that of the node it was cloned from, as others found: it stands in for a clone not told of.
#define FLAME_GRAPH_EXEC(F) F(uint32_t, exec) F(uint32_t, graph)

// kind: see NameKind; `scope` and `id` as it says; `text` is the name
#define FLAME_NAME(F) F(uint32_t, kind) F(uint32_t, scope) F(uint32_t, id) F(uint32_t, text)

#define FLAME_META(F) F(uint32_t, key /*text*/) F(uint32_t, value /*text*/)

// `cause`: see DropCause; `count` records of type `type` (0: unknown) since the last such record
#define FLAME_DROP(F) F(uint64_t, time) F(uint64_t, count) F(uint32_t, cause) F(uint32_t, type)

// Loaded at `time` as `module` of `context` (0: not known). `crc` is CUPTI's of the cubin: all that
// samples tell of it, and the same for many cubins. `hash` is of its whole content (XXH64), 0: older
// dumps do not tell. `path`: a text relative to the dump, 0: not saved. Once more with its path, and
// otherwise the same, where the cubin was saved later.
#define FLAME_MODULE(F) \
  F(uint64_t, crc) F(uint64_t, size) F(uint64_t, time) F(uint64_t, hash) F(uint32_t, path) \
  F(uint32_t, context) F(uint32_t, module) F(uint32_t, reserved)

#define FLAME_MODULE_END(F) F(uint64_t, time) F(uint32_t, context) F(uint32_t, module)

// `samples` samples at `offset` in `function` (a text, mangled), `reason` as in Name kStallReason.
// They were taken at most `span` us before `time`; 0: that is not known.
#define FLAME_SAMPLE(F) \
  F(uint64_t, crc) F(uint64_t, time) F(uint64_t, offset) F(uint32_t, function) \
  F(uint32_t, correlation) F(uint32_t, samples) F(uint32_t, reason) F(uint32_t, context) \
  F(uint32_t, span)

#define FLAME_RECORDS(R)                                                            \
  R(Frame, frame, FLAME_FRAME, 16) R(RangeName, range_name, FLAME_RANGE_NAME, 16)   \
  R(Node, node, FLAME_NODE, 16) R(Launch, launch, FLAME_LAUNCH, 48)                 \
  R(Kernel, kernel, FLAME_KERNEL, 96) R(Memop, memop, FLAME_MEMOP, 72)              \
  R(Range, range, FLAME_RANGE, 56) R(OpenRange, open_range, FLAME_OPEN_RANGE, 24)   \
  R(GraphNode, graph_node, FLAME_GRAPH_NODE, 40) R(Name, name, FLAME_NAME, 16)      \
  R(Meta, meta, FLAME_META, 8) R(Drop, drop, FLAME_DROP, 24)                        \
  R(Module, module, FLAME_MODULE, 48) R(Sample, sample, FLAME_SAMPLE, 48)           \
  R(Call, call, FLAME_CALL, 40) R(ModuleEnd, module_end, FLAME_MODULE_END, 16)      \
  R(GraphExec, graph_exec, FLAME_GRAPH_EXEC, 8) R(GraphRun, graph_run, FLAME_GRAPH_RUN, 48) \
  R(Memory, memory, FLAME_MEMORY, 80)

#define FLAME_FIELD(type, name) type name;
#define FLAME_BYTES(type, name) +sizeof(type)
#define FLAME_STRUCT(Struct, key, FIELDS, size_)    \
  struct Struct {                                   \
    static constexpr Type kType = ::flame::k##Struct; \
    FIELDS(FLAME_FIELD)                             \
  };                                                \
  static_assert(sizeof(Struct) == size_ && 0 FIELDS(FLAME_BYTES) == size_, \
                "padding, or another size than documented");
FLAME_RECORDS(FLAME_STRUCT)
#undef FLAME_STRUCT
#undef FLAME_BYTES
#undef FLAME_FIELD

enum LaunchFlag : uint32_t {
  kFailed = 1,   // the call returned an error
  kResult = 1,   // the 15 bits from here on: which; 0 of one that failed: older dumps do not tell
  kWithin = 16,  // the bits from here on: `api` of the Call that it was made within, 0: none
};

enum NodeKind : uint16_t { kPythonNode = 0, kRangeNode = 1 };
enum NodeFlag : uint16_t { kCutAbove = 1 };
constexpr uint32_t kMaxDepth = 250;  // of Python frames and of NVTX ranges each

enum NameKind : uint32_t {
  kDomain = 1,       // id: NVTX domain
  kCategory = 2,     // scope: NVTX domain, id: category
  kThread = 3,       // id: tid; scope 0: as the program says, 1: as the system does
  kDevice = 4,       // id: CUDA ordinal
  kApi = 5,          // id: driver API callback id ("cuLaunchKernel")
  kStallReason = 6,  // id: CUPTI's stall reason index
  kStream = 7,       // scope: context, id: stream
  kContext = 8,      // scope: CUDA ordinal, id: context
  kDeviceUuid = 9,   // id: CUDA ordinal, which is a process's own; of a MIG instance its own UUID
};

enum DropCause : uint32_t {
  kDiskFull = 1,      // of the file system
  kSizeLimit = 2,     // FLAME_MAX_MB
  kCuptiDropped = 3,  // CUPTI says that it dropped activity records
  kNoMemory = 4,
  kNameLimit = 5,  // names that NVTX gave beyond what is kept: "[further domains]" and the like
  kSamplesLost = 6,  // samples that CUPTI could not give: how often, as nobody knows how many
  kUntimed = 7,    // CUPTI could not tell when the work ran
  kWildTimes = 8,  // what CUPTI told of it cannot be: another clock, or an end before the start
};

}  // namespace flame
