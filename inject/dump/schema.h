// Describes the layout of all records in JSON.
#pragma once
#include <cstdint>

namespace flame {

uint32_t write_schema(char* place, uint32_t room);  // bytes written

}  // namespace flame
