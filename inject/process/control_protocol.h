// Answers the requests of the control socket: a line of JSON each way.
#pragma once
#include <cstddef>
#include <string_view>

namespace flame {

constexpr size_t kLongestReply = 32 * 1024;  // a path of control characters takes six times its size

struct Reply {
  char text[kLongestReply];
  size_t size;

  void begin();  // of a request that is granted
  void refuse(const char* why);
  void end();
  void add(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void add_quoted(std::string_view value);
};

struct Answer {
  int descriptor = -1;          // goes with the reply, and is the caller's to close
  bool ends_recording = false;  // there is no reply before that has been done
};

// Does what the line asks for. By the helper thread.
Answer answer(std::string_view line, Reply* reply);

}  // namespace flame
