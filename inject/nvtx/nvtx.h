// What the NVTX parts of the library know of one another: what a program says of a range, and the
// handles that it has been given. NVTX itself is documented in nvtx3/nvToolsExt.h.
#pragma once
#ifndef NVTX_NO_IMPL
#define NVTX_NO_IMPL  // only the types: what would call us is in the programs
#endif
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "flame.h"

// Handles are pointers to these. They live for ever: a program may use a handle as long as it
// likes, and a forked child has its parent's.

struct nvtxDomainRegistration_st {
  uint32_t id;  // 1, 2, … of the process; domains with the same name are one
  std::string name;
};

struct nvtxStringRegistration_st {
  std::string value;
  mutable std::atomic<uint64_t> text{0};  // generation << 32 | id of the text in its dump
};

namespace flame::nvtx {

using Domain = nvtxDomainRegistration_st;
using RegisteredString = nvtxStringRegistration_st;

inline uint32_t id_of(const Domain* domain) { return domain ? domain->id : 0; }

// What one call says. It has pointers into memory of the program and lives as long as the call.
struct Event {
  const RegisteredString* registered = nullptr;  // what `message` is the value of, or null
  std::string_view message;
  std::string made;  // holds `message` where it had to be made, of wide characters or a payload
  std::string json;  // the extended payload
  uint64_t payload = 0;
  uint32_t category = 0;
  uint32_t color = 0;
  uint16_t payload_type = 0;

  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

// An open range: what its record needs, and needs again in the dump of a forked child.
struct Span {
  const RegisteredString* registered = nullptr;
  std::string message;  // where it is not registered
  std::string json;
  uint64_t start = 0;
  uint64_t payload = 0;
  uint32_t domain = 0;
  uint32_t category = 0;
  uint32_t color = 0;
  uint32_t tid = 0;
  uint32_t name = 0;          // in the dump of `generation`, as the next
  uint32_t payload_text = 0;
  uint32_t generation = 0;
  uint16_t payload_type = 0;
};

enum RangeKind : uint16_t { kPushPop = 0, kStartEnd = 1, kMark = 2 };

// nvtx/nvtx.cpp

bool begin();  // at every entry: makes the dump at the first one; false: there is none

// One call at a time on each thread: a signal handler may call in the middle of another call, and an
// allocator that is annotated in every one.
class Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  const bool alone;
};

// Without memory there is no profile, but a program that goes on: `lost` ranges are then counted.
template <class Result, class Work>
Result safely(Result failed, Work work, uint32_t lost = 0) noexcept {
  try {
    Call call;
    if (call.alone) return work();
  } catch (...) {
  }
  dropped(kNoMemory, kRange, lost);
  return failed;
}

template <class Work>
void safely(Work work) noexcept {
  safely(0, [&] { return work(), 0; });
}

// nvtx/shared/lock.cpp: one lock for all that threads share, for short looks into tables

class Hold {
 public:
  Hold();
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
};
bool hold_over_forks();

// nvtx/event.cpp

void read_message(const char* message, Event* event);
void read_message(const wchar_t* message, Event* event);
void read_attributes(uint32_t domain, const nvtxEventAttributes_t* attributes, Event* event);
void remember(Span* span, uint32_t domain, const Event& event);  // all but ids and times
void extend(Span* span, const Event& event);  // by what is said when it ends
void intern(Span* span);                      // ids of this dump
void write(const Span& span, uint64_t end, RangeKind kind, uint32_t node, uint32_t end_tid);

// nvtx/shared/utf8.cpp

void append_utf8(std::string* to, uint32_t code_point);
void append_utf16(std::string* to, const char16_t* units, size_t count);
void append_utf32(std::string* to, const char32_t* units, size_t count);
std::string utf8(const wchar_t* wide);

// nvtx/shared/names.cpp: what is named once and lives for ever

const Domain* domain_named(std::string_view name);
const RegisteredString* registered(std::string_view value);
bool is_registered(const void* handle);
uint32_t text_of(const RegisteredString& string);
void name_category(uint32_t domain, uint32_t category, std::string_view name);
bool ready();        // recording, and the dump has the names of domains and categories

// nvtx/push_pop.cpp: push and pop

int push(uint32_t domain, const Event& event);    // depth in its domain, from 0
int pop(uint32_t domain, const Event* said);      // depth of what has ended, -1: there was none
void mark(uint32_t domain, const Event& event);
void say_left_open();
void forget_left_open();

// nvtx/start_end.cpp: start and end, on any thread

uint64_t start_range(uint32_t domain, const Event& event);
void end_range(uint64_t id, const Event* said);
void say_never_ended();

}  // namespace flame::nvtx
