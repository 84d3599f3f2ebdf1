// Keeps memory for CUPTI's activity records: what comes back is used again.
#pragma once
#include <cstddef>
#include <cstdint>

namespace flame {

constexpr size_t kBufferSize = 256 * 1024;  // some 1,600 kernels

uint8_t* take_buffer();  // null: there are as many as there may be, CUPTI drops records and counts
void give_back_buffer(uint8_t* buffer);

}  // namespace flame
