// Names domains, categories and strings, once and for ever. NVTX itself is documented in
// nvtx3/nvToolsExt.h.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "nvtx/shared/nvtx3.h"

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

const Domain* domain_named(std::string_view name);
const RegisteredString* registered(std::string_view value);
bool is_registered(const void* handle);
uint32_t text_of(const RegisteredString& string);
void name_category(uint32_t domain, uint32_t category, std::string_view name);
bool ready();        // recording, and the dump has the names of domains and categories

}  // namespace flame::nvtx
