// The test double of libcuda and libcupti: one object that is both. Programs run on it unchanged;
// nothing is computed, but time passes on a simulated GPU and CUPTI tells of it as documented in
// its headers. Where the headers are silent a comment says what was chosen.
//
// Environment: FAKE_TRUTH=FILE   what ran, as JSON lines in FILE.<pid> (ground_truth.cpp)
//              FAKE_DEVICES=N    number of GPUs, default 1
//              FAKE_SAMPLES=FILE how long kernels run and what PC samples they give (scripts.cpp)
//              FAKE_CUPTI=...    comma-separated faults, see Faults
#pragma once
#include <cuda.h>
#include <cupti.h>
#include <cupti_pcsampling.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#define FAKE_API extern "C" __attribute__((visibility("default")))

// The driver's opaque handles are pointers to these.

struct CUfunc_st;
namespace fake {
struct Operation;
}

struct CUmod_st {
  uint32_t id = 0;
  uint64_t crc = 0;
  CUcontext context = nullptr;
  std::string image;
  bool complete = false;  // there are no functions but those in `functions`
  std::mutex mutex;       // of `functions`
  std::map<std::string, std::unique_ptr<CUfunc_st>, std::less<>> functions;
};

struct CUfunc_st {
  struct Sample {
    uint64_t offset;
    uint32_t reason, count;
  };
  const char* name = nullptr;  // never freed: CUPTI's records point to it
  CUmodule module = nullptr;
  uint64_t duration = 0;  // ns
  uint64_t size = 0;      // bytes of its instructions, 0: not known
  uint32_t registers = 32, static_shared = 0, local = 0;
  bool fails = false;
  bool waited = false;  // runs until its stream has been waited for, `duration` long
  std::vector<Sample> samples;  // of one run
};

struct CUgraphNode_st;

struct CUstream_st {
  uint32_t id = 0;
  CUcontext context = nullptr;
  bool blocking = true;  // waits for the legacy default stream and the other way round
  uint64_t until = 0;    // when all of its work is done, by context->mutex like what follows
  CUgraph capture = nullptr;
  std::vector<CUgraphNode> frontier;  // of the capture: what the next node depends on
  bool capture_origin = false;
  std::shared_ptr<fake::Operation> held;  // runs, and ends when it has been waited for
};

struct CUctx_st {
  uint32_t id = 0;
  int device = 0;
  bool alive = true;
  std::mutex mutex;
  CUstream_st legacy;  // the null stream
  uint64_t blocking_until = 0, kernels_until = 0, until = 0;
  uint32_t next_stream = 0;
  std::vector<CUstream> capturing;
};

struct CUevent_st {
  std::mutex mutex;
  uint64_t time = 0;  // 0: not recorded
  CUgraph capture = nullptr;
  std::vector<CUgraphNode> frontier;
};

namespace fake {

// FAKE_CUPTI, for example "version:120090,drop:10"
constexpr uint32_t kNever = UINT32_MAX;
struct Faults {
  bool no_subscriber = false;     // another tool is subscribed
  bool no_init = false;           // CUPTI does not suit the driver
  bool v2_subscriber = false;     // another tool is, by the newer functions
  bool whole_for_all = false;     // that tool has graphs traced as a whole, for whoever subscribes
  bool several = false;           // another tool is, so that there can be more, and takes records
  bool late_v2 = false;           // it is found out when buffers are registered, no sooner
  bool steal_clock = false;       // who takes the records brings a clock that does not count ns
  bool no_pc_permission = false;  // PC sampling needs root
  bool no_timestamps = false;     // the timestamp callback is refused
  bool nested = false;            // the call that launches a kernel is made within another one
  bool allocating = false;        // the call that launches a kernel is made within an allocation
  bool pc_hang = false;           // whoever enables it waits for ever
  bool pc_later = false;          // PC sampling is refused in callbacks
  bool pc_lazy = false;           // what pc_memory tells is seen when a size is configured
  bool shuffle = false;           // records of a buffer come in reverse
  bool unasked = false;           // callbacks come for all driver calls, asked for or not
  bool wild_names = false;        // symbols of launches that fail or have no context are no pointers
  bool quiet_clones = false;      // calls that copy graphs have no callbacks of their own
  bool no_clones = false;         // nodes that are copies are never told of as cloned
  bool hoard = false;             // full buffers are handed over when a flush is forced, no sooner
  bool hold = false;              // a flush leaves the buffer with CUPTI while work is not over
  bool flush_hang = false;        // no flush comes back
  bool forced_hang = false;       // no forced flush comes back
  bool disable_deadlock = false;  // who disables a kind waits for ever
  uint32_t per_buffer = 0;        // records that go into a buffer, 0: as many as fit
  uint32_t pc_reasons = 0;        // so many stall reasons are told of, 0: those that there are
  uint32_t pc_more = 0;           // so many more reasons are told of at every PC than are given
  uint32_t early = 0;             // every early-th record tells of a begin that is 1 ms too early
  uint32_t stray = 0;             // every stray-th is of a call that nobody was told of
  uint32_t drop = 0;              // every drop-th activity record is lost
  uint32_t pc_drop = 0;           // samples lost by the hardware with every kernel
  uint32_t pc_oom = kNever;       // after so many kernels CUPTI has no memory for PC samples, and
                                  // gives none until sampling is disabled and enabled again
  uint32_t pc_full = kNever;      // likewise, the hardware buffer being full
  uint32_t pc_error = 0;          // the CUptiResult of what is called pc_oom, 0: out of memory
  uint32_t pc_memory = kNever;    // MB that the GPU has for the hardware buffer of PC samples
  uint32_t pc_refused = 0;        // with this CUptiResult PC sampling is refused
  uint32_t steal = 0;             // with the steal-th piece of work another tool registers buffers
  uint32_t steal_for = 0;         // and disables all kinds again after so many more, 0: never
  bool no_graph_trace = false;    // graphs are not traced as a whole
  uint32_t pool = 0;              // kernels of graphs for which a buffer on the GPU has room, ever
  uint32_t backward = 0;          // every backward-th record ends before it starts
  uint32_t wild_times = 0;        // every wild_times-th record is of another clock
  bool no_memory = false;         // memory and pools are not reported
  bool unsized = false;           // of memory from before that CUPTI does not know the size
  uint32_t odd_memory = 0;        // every odd_memory-th record of memory is of a kind, and every other
                                  // one of an operation, that no header has
  uint32_t version = 130001;      // what cuptiGetVersion says; below 130000 records are those of 12,
                                  // below 27 a null buffer ends the process; from
                                  // 130400 on they tell the source of a graph node
};
const Faults& faults();

// driver.cpp

uint64_t now();  // CLOCK_MONOTONIC, ns
CUcontext current_context();
CUresult usable();                            // an error before cuInit and in a forked child
void sleep_until(uint64_t time);              // at most kLongestWait
[[noreturn]] void wait_for_ever();
constexpr uint64_t kLongestWait = 20'000'000'000;
const char* intern(std::string_view name);

// images.cpp

std::string image_at(const void* image);  // a copy of all of it
bool is_cubin(const std::string& image);
struct ImageFunction {
  std::string name;
  uint64_t size;
};
std::vector<ImageFunction> functions_in(const std::string& cubin);  // that can be launched

// scripts.cpp

using Script = std::map<std::string, CUfunc_st, std::less<>>;
bool read_script(const std::string& text, Script* script);
const CUfunc_st* scripted(std::string_view name);  // what FAKE_SAMPLES says of it, null: nothing

// streams.cpp: null and the special handles become real streams of the current context

CUstream stream_of(CUcontext context, CUstream handle, bool per_thread);

// device.cpp: the simulated GPU

struct Work {  // a kernel, copy or set; what is known before it has a place in time
  CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  uint64_t duration = 0;
  CUfunction function = nullptr;
  uint32_t grid[3] = {}, block[3] = {}, cluster[3] = {}, dynamic_shared = 0;
  uint64_t bytes = 0;
  uint8_t copy_kind = 0, source = 0, target = 0;
  bool asynchronous = false;
  uint32_t value = 0, peer_device = 0, peer_context = 0;
  uint32_t operation = 0;  // of memory and of pools, like what follows
  uint64_t address = 0, pool = 0, pool_size = 0, pool_used = 0, pool_threshold = 0;
};

struct Operation {  // work that has been given its time and place
  Work work;
  uint64_t start = 0, end = 0;
  uint32_t correlation = 0, device = 0, context = 0, stream = 0, graph = 0;
  uint64_t graph_node = 0, graph_source = 0;
  const char* name = nullptr;
  uint32_t registers = 0, static_shared = 0, local = 0;
  bool untimed = false;
  bool for_other_alone = false;  // see tell_other
};

constexpr uint64_t kLatency = 3000;  // from the launch to the start on an idle stream, ns

// Runs `work` on the stream, or adds it to the graph that the stream captures. Returns its end, 0
// when it was captured.
uint64_t enqueue(CUstream stream, const Work& work, uint32_t correlation);

struct GraphWork {
  const Work* work;  // null: takes no time
  std::vector<size_t> after;
  uint64_t node, source;  // the node that this one was made of or last updated from
};
void enqueue_graph(CUstream stream, const std::vector<GraphWork>& nodes, uint32_t graph,
                   uint32_t correlation);
enum Serializer : uint32_t { kKernelKind = 1, kPcSampling = 2 };
void serialize_kernels(Serializer by, bool on);
void run_held(CUstream stream);  // what is held on the stream, until this thread has waited for it

// graphs.cpp

CUgraph new_graph(bool tell);
CUgraphNode add_node(CUgraph graph, CUgraphNodeType type, const Work* work,
                     const CUgraphNode* after, size_t count);
void capture_node(CUstream stream, CUgraphNodeType type, const Work* work);

// cupti.cpp

// A driver API call: tells the subscriber of its beginning, and in `done` of its end.
class Call {
 public:
  explicit Call(uint32_t cbid, const void* parameters = nullptr, const char* symbol = nullptr);
  CUresult done(CUresult result);
  uint32_t correlation() const { return data_.correlationId; }

 private:
  CUpti_CallbackData data_ = {};
  uint32_t cbid_;
  uint64_t shared_ = 0, start_ = 0;
};

bool in_callback();
CUptiResult take_subscriber(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                            void* data);
bool is_subscriber(CUpti_SubscriberHandle handle);
const char* api_name(uint32_t cbid);  // null: not one of the double's
void tell(CUpti_CallbackIdResource what, CUcontext context, CUstream stream, void* descriptor);
void tell_module(CUpti_CallbackIdResource what, CUmodule module);
void tell_graph(CUpti_CallbackIdResource what, const CUpti_GraphData& graph);
uint64_t hash_of(const void* data, size_t size);
uint64_t checksum_of(const void* cubin, size_t size);  // as cuptiGetCubinCrc

// allocations.cpp

CUpti_ActivityMemoryKind memory_kind(const void* pointer, size_t size);  // of all of these bytes
void release_unused(int device);  // of all pools, down to their thresholds

// subscribers.cpp: those who are told apart by their handles

// What names no subscriber, where somebody has subscribed so, or `anyway`.
bool is_refused(bool anyway = false);
void tell_other(const Operation& operation);  // the other tool gets a record of it as well

// activity.cpp

bool is_of_memory(CUpti_ActivityKind kind);  // or of a pool
uint64_t memory_generation();  // so many times records of memory were switched on
void activity(Operation operation);  // has been put on the GPU: a record for later
bool graphs_are_whole();             // no records of their nodes, but one for each launch

// records.cpp

std::string record_of(const Operation& operation, CUpti_ActivityKind kind, int64_t clock_offset);
size_t record_size(const CUpti_Activity* record);  // 0: not one of those
Operation skewed(Operation operation);             // as the faults have its record

// pcsampling.cpp

void sample(CUcontext context, const Operation& operation);
bool reason_called(std::string_view name, uint32_t* index);

// ground_truth.cpp

bool truth_wanted();
void truth_flush();
void truth_call(const char* api, const CUpti_CallbackData& data, uint32_t cbid, bool failed,
                uint64_t start, uint64_t end);
void truth_operation(const Operation& operation);
void truth_lost(const char* why, const Operation& operation);
void truth_node(uint64_t node, uint64_t original, uint32_t graph, CUgraphNodeType type,
                uint64_t before);
void truth_module(const CUmod_st& module);
void truth_sample(uint32_t context, const Operation& operation, const CUfunc_st::Sample& sample,
                  bool serialized);

}  // namespace fake
