// Reads memory that may not be there: where a pointer comes from is not always known to be right.
#pragma once
#include <cstddef>
#include <cstdint>

namespace flame {

// Bytes that could be read at `address`, at most `size` of them, up to 12 KiB; a bad address gives
// none.
size_t read_foreign(uint64_t address, void* to, size_t size);

}  // namespace flame
