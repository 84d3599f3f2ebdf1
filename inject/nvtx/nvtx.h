// Declares what the parts of NVTX recording know of one another.
#pragma once
#include <cstdint>
#include <string>

#include "nvtx/shared/event.h"

namespace flame::nvtx {

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

inline size_t text_bytes(const Span& span) { return span.message.size() + span.json.size(); }

enum RangeKind : uint16_t { kPushPop = 0, kStartEnd = 1, kMark = 2 };

// nvtx/nvtx.cpp

bool begin();  // at every entry: makes the dump at the first one; false: there is none

// nvtx/event.cpp

void read_message(const char* message, Event* event);
void read_message(const wchar_t* message, Event* event);
void read_attributes(uint32_t domain, const nvtxEventAttributes_t* attributes, Event* event);
void remember(Span* span, uint32_t domain, const Event& event);  // all but ids and times
void extend(Span* span, const Event& event);  // by what is said when it ends
void intern(Span* span);                      // ids of this dump
void write(const Span& span, uint64_t end, RangeKind kind, uint32_t node, uint32_t end_tid);

// nvtx/push_pop.cpp: push and pop

int push(uint32_t domain, const Event& event);    // depth in its domain, from 0
int pop(uint32_t domain, const Event* at_end);    // depth of what has ended, -1: there was none
void mark(uint32_t domain, const Event& event);
void note_left_open();
void forget_left_open();

// nvtx/start_end.cpp: start and end, on any thread

uint64_t start_range(uint32_t domain, const Event& event);
void end_range(uint64_t id, const Event* at_end);
void note_never_ended();

}  // namespace flame::nvtx
