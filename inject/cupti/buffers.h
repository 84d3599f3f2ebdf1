// Keeps memory for CUPTI's activity records: what comes back is used again.
#pragma once
#include <cstddef>
#include <cstdint>

namespace flame {

struct ActivityBuffer {
  uint8_t* data;  // null: there are as many as there may be, CUPTI drops records and counts
  size_t size;
  size_t max_records;  // 0: as many as fit
};

// `null_is_right`: this CUPTI can live with none. Otherwise there is always one, at last one that
// keeps nothing.
ActivityBuffer take_buffer(bool null_is_right);
bool keeps_nothing(const uint8_t* buffer);  // the one that holds a record at most, for nobody
// One that another tool gave CUPTI is left to it: records may come in that as well.
void give_back_buffer(uint8_t* buffer, size_t bytes);  // with so many bytes of records in it
size_t buffers_in_use();
void describe_buffers();  // at the end, if there were more than there should be

}  // namespace flame
