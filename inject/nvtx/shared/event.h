// Holds what a program says in one call of NVTX.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "nvtx/shared/names.h"

namespace flame::nvtx {

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

}  // namespace flame::nvtx
