// Stands for the dump, in memory: takes what the parts of the library write through flame.h, and
// checks it. Of the other parts it has what answers "none".
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "flame.h"

namespace recorder {

void begin();       // a new dump, with nothing in it
void end_thread();  // what belongs to the calling thread is deleted, as when it ends
void flush(bool last);

struct Written {
  flame::Type type;
  std::string bytes;
};
const std::vector<Written>& written();
const std::string& text_of(uint32_t id);

template <class Record>
std::vector<Record> all() {
  std::vector<Record> found;
  for (const Written& each : written()) {
    if (each.type != Record::kType) continue;
    found.emplace_back();
    __builtin_memcpy(&found.back(), each.bytes.data(), sizeof(Record));
  }
  return found;
}

}  // namespace recorder
