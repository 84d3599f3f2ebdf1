// Declares what the folders of the library know of one another: a call to a folder that may not be
// included goes through here. Nothing here throws, prints or waits for anything but a short lock;
// without a dump everything returns "none" at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dump/dump.h"

namespace flame {

// process/lifecycle.cpp: from the first entry point to the end of the process

// Makes the dump unless there was one, in `directory` if one is named; false: there can be none.
bool start(const char* directory = nullptr);
bool recording();        // cheap; in a forked child it makes the child's own dump
uint32_t generation();   // grows with every new dump (fork): ids cached under an older one are void
bool began_late();       // the process had run for a while when it was attached to
void stop();             // stops recording for good and marks the dump as ended
void at_flush(void (*work)(bool last));  // called every flush_ms by the helper thread, and at the end
void at_fork_child(void (*work)());      // called in the child after fork, before anything else there

// process/flush_thread.cpp

enum class Flush { kNow, kDetach, kExit };  // from time to time; at the end, the program goes on or not
// Like at_flush, of the one part whose work calls what may never come back: on a thread of its own,
// as long as it is `wanted`. The last is given up when there is no progress any more.
void at_flush_apart(void (*work)(Flush why), bool (*wanted)());
// By the helper thread: does `work` on that thread, too, in between.
enum class Apart { kDone, kBusy, kNotBack };  // kBusy: what is done there takes too long
Apart do_apart(void (*work)(uint64_t argument), uint64_t argument);
void made_progress();                // by that work or on its behalf, whichever the thread
void calling(const char* function);  // by that work: what is at fault if it does not come back

// process/helper_thread.cpp

void wake_helper();  // to make room in the file

// dump/folder.cpp

// Where dumps go, or the folder `name` in it; made unless it is there. -1: there is none that can be
// trusted. To be closed by the caller.
int open_folder(const char* name = nullptr);

// dump/thread.cpp: what belongs to the calling thread

enum Slot { kPythonSlot, kNvtxSlot, kCuptiSlot, kSlots };
uint32_t thread_id();  // the kernel's (gettid)
void name_thread();    // records what the system calls this thread, if that is a name of its own
struct Local {         // base of a part's per-thread state
  virtual ~Local() = default;
};
Local*& local(Slot slot);  // null until set; deleted when the thread ends

// dump/writer.cpp: records into the file

// Room for one record of `size` bytes in this thread's chunk of `type`, null when there is none (the
// drop has been counted). `commit` makes it visible.
char* reserve(Type type, uint32_t size);
void commit(Type type, uint32_t size);

template <class Record>
inline void put(const Record& record) {
  if (!recording()) return;
  char* place = reserve(Record::kType, sizeof record);
  if (!place) return;
  __builtin_memcpy(place, &record, sizeof record);
  commit(Record::kType, sizeof record);
}

// This thread's own chunk of OpenRange records, changed in place; null when there is none. Write the
// record at `depth`, then set_open(depth + 1); to close, set_open(depth).
OpenRange* open_ranges(uint32_t* capacity);
void set_open(uint32_t depth);

void dropped(DropCause cause, Type type, uint64_t count);

// dump/counters.cpp: how recording itself fares, as the meta "counters" at the end, a JSON object; for
// those who look into a strange recording. To count one thing more, add its row and count it.

#define FLAME_COUNTERS(C)                                                                  \
  C(kernel_calls)         /* driver calls by role, see call_roles.h */                     \
  C(work_calls)                                                                            \
  C(graph_copies)                                                                          \
  C(host_calls)                                                                            \
  C(resource_callbacks)   /* of contexts, modules and graph nodes */                       \
  C(kernel_records)       /* activity records by kind */                                   \
  C(copy_records)                                                                          \
  C(set_records)                                                                           \
  C(memory_records)                                                                        \
  C(other_records)                                                                         \
  C(untimed_records)      /* of these, without a begin or an end */                        \
  C(records_without_call) /* of a call that was not seen, or too long ago */               \
  C(starts_before_call)   /* work that began before the call that launched it */           \
  C(completed_buffers)                                                                     \
  C(null_buffers)         /* CUPTI asked for memory and got none */                        \
  C(most_buffers)         /* that CUPTI had at once */                                     \
  C(flushes)                                                                               \
  C(longest_flush_ns)                                                                      \
  C(sampling_errors)      /* PC samples that CUPTI failed to give, or for which its room was full */ \
  C(sampling_resets)      /* of contexts after that */                                     \
  C(longest_callback_ns)  /* of resource callbacks and of every 64th call of a thread */

enum Counter : uint8_t {
#define FLAME_COUNTER(name) count_##name,
  FLAME_COUNTERS(FLAME_COUNTER)
#undef FLAME_COUNTER
  kCounters
};
void count(Counter counter, uint64_t by = 1);
void count_most(Counter counter, uint64_t value);  // `most_` and `longest_`: the largest counts
void write_counters();                             // unless nothing has been counted

// dump/names.cpp: ids of what comes again and again; each writes its record when it is new

uint32_t text(std::string_view value);  // 0 for an empty one; cut at kMaxText
uint32_t frame(std::string_view function, std::string_view file, uint32_t line);
uint32_t range_name(uint32_t text, uint32_t domain, uint32_t category);
uint32_t node(uint32_t parent, uint32_t item, NodeKind kind, uint16_t flags = 0);
void name(NameKind kind, uint32_t scope, uint32_t id, std::string_view value);
void meta(std::string_view key, std::string_view value);
void note(std::string_view value);  // meta "note": what the user should know; each text once

// python/stack.cpp, nvtx/nvtx.cpp, cupti/subscribe.cpp, sampling/sampling.cpp

void start_python();  // after start(): looks for Python, to be checked before the first launch
uint32_t python_stack();  // node of the calling thread's Python stack, 0: none
uint32_t nvtx_path();     // node of the push/pop ranges that are open on the calling thread, 0: none
bool start_cupti();       // subscribes; false: there is no CUPTI here, or it is taken
bool reads_python();      // whether stacks are recorded
bool reads_cupti();       // whether launches are

struct SamplingAnswer {
  bool done;
  uint32_t contexts;  // that are sampled now
  char why[320];      // not done: what the user can do about it
};
// By the helper thread: PC sampling begins, changes or ends, in all contexts or in none. `mode` as in
// FLAME_PC.
SamplingAnswer switch_sampling(std::string_view mode);

}  // namespace flame
