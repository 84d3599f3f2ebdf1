// Begins the dump as process/lifecycle.cpp does, again for every input. Of the other parts of the
// library it has what answers "none".
#include "disk.h"

#include <cstdlib>
#include <cstring>

#include "dump/file.h"
#include "dump/names.h"
#include "dump/recording_state.h"
#include "dump/thread.h"
#include "dump/writer.h"
#include "flame.h"
#include "folder.h"
#include "input.h"

namespace flame {

bool start_cupti() { return false; }
void start_python() {}
bool reads_python() { return false; }
bool reads_cupti() { return false; }
__attribute__((weak)) SamplingAnswer switch_sampling(std::string_view) { return {}; }

}  // namespace flame

namespace disk {
namespace {

bool make() {
  setenv("FLAME_MAX_MB", "1", 1);
  return record_into_own_folder() && flame::prepare_threads() && flame::prepare_names() &&
         flame::open_file();
}

}  // namespace

void begin() {
  using namespace flame;
  static const bool made = make();
  require(made, "there is a dump");
  const uint64_t end = chunks_tail();
  begin_chunks();
  forget_names();
  forget_threads();
  if (end > kHeaderSize) memset(file_at(kHeaderSize), 0, end - kHeaderSize);
  header()->tail.store(kHeaderSize);
  header()->flags.store(0);
  recording_state.store(kOn);
}

}  // namespace disk
