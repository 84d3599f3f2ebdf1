// Records events that a program tells after they were.
#pragma once
#include <cstddef>
#include <cstdint>

#include "nvtx/shared/event.h"
#include "nvtx/shared/nvtx3.h"

namespace flame::nvtx {

uint64_t register_time_domain(const nvtxTimeDomainAttr_t* attributes);
void submit(uint32_t domain, const nvtxPayloadData_t* payloads, size_t count);
void submit(uint32_t domain, const nvtxEventBatch_t* batch);
void note_untimed();
void forget_untimed();

}  // namespace flame::nvtx
