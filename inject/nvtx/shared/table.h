// Holds a table that all threads share.
#pragma once
#include <new>

namespace flame::nvtx {

// The one of its type. It is made where there is no memory, too, and never destroyed: threads may
// still use NVTX while the process ends.
template <class Table>
Table& the() {
  alignas(Table) static char place[sizeof(Table)];
  static Table& all = *new (place) Table;
  return all;
}

}  // namespace flame::nvtx
