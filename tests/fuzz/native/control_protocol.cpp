// Lines that a client of the control socket may send: each gets one line of JSON, and none but
// {"do":"stop"} ends the recording.
#include "process/control_protocol.h"

#include <fcntl.h>
#include <unistd.h>

#include "disk.h"
#include "flame.h"
#include "input.h"
#include "json.h"

namespace flame {

// As long as it can be, and with what JSON must escape.
SamplingAnswer switch_sampling(std::string_view mode) {
  SamplingAnswer answer = {mode == "continuous", 3, ""};
  if (answer.done) return answer;
  memset(answer.why, '"', sizeof answer.why - 1);
  memcpy(answer.why, mode.data(), std::min(mode.size(), sizeof answer.why - 1));
  return answer;
}

}  // namespace flame

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static flame::Reply reply;
  disk::begin();
  Input in(data, size);
  const Block line(in.rest());
  const flame::Answer given = flame::answer({line.data(), line.size()}, &reply);
  if (given.ends_recording) return 0;
  reply.end();
  require(reply.size && reply.size < sizeof reply.text, "the reply fits");
  require(reply.text[reply.size - 1] == '\n', "it is a line");
  require(!memchr(reply.text, '\n', reply.size - 1), "it is one line");
  require(Json::is_valid({reply.text, reply.size - 1}), "it is JSON");
  if (given.descriptor < 0) return 0;
  require((fcntl(given.descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY, "the dump is only read");
  close(given.descriptor);
  return 0;
}
