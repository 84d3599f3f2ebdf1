// Finds the functions of CPython that the library calls, in the process at run time.
#pragma once
#include <cstdint>
#include <string_view>

#include "dump/dump.h"

namespace flame::python {

struct Object;       // PyObject
struct ThreadState;  // PyThreadState

// Null where this Python does not have one; `thread_frame` and those below are there since 3.9.
struct Api {
  int (*initialized)();
  const char* (*version)();
  ThreadState* (*own_thread)();      // of the calling thread; needs no GIL
  ThreadState* (*running_thread)();  // that holds the GIL, or null
  int (*add_pending_call)(int (*)(void*), void*);
  const char* runtime;

  Object* (*thread_frame)(ThreadState*);
  Object* (*frame_back)(Object*);
  Object* (*frame_code)(Object*);
  int (*frame_line)(Object*);
  int (*frame_lasti)(Object*);  // 3.11
  Object* (*attribute)(Object*, const char*);
  const char* (*as_utf8)(Object*, intptr_t*);
  void (*release)(Object*);
  int (*disable_gc)();  // 3.10
  int (*enable_gc)();
  void (*take_error)(Object**, Object**, Object**);
  void (*put_error)(Object*, Object*, Object*);

  int major, minor, micro;
  bool free_threaded;
  bool traced_references;  // a debug build whose objects begin otherwise
};

// False: there is no Python in the process, or it is not running (yet).
bool load_api(Api* api);
bool walks_by_api(const Api& api);  // has all that `walk_by_api` needs

bool holds_gil(const Api& api, ThreadState* own);

// What follows may be called with the GIL only.

// A frame as the public API sees it. Objects are borrowed: the frame keeps them while it runs.
struct ApiFrame {
  Object* code;
  int line, lasti;
};

// Keeps garbage collections and a pending exception out of the way: calls may come from anywhere.
class Quiet {
 public:
  explicit Quiet(const Api& api);
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  const Api& api_;
  bool collected_ = false;
  Object* error_[3] = {};
};

// The innermost kMaxDepth frames into `frames`, innermost first; `cut`: there are more.
uint32_t walk_by_api(const Api& api, ThreadState* own, ApiFrame* frames, bool* cut);

// An attribute that is a `str`, as UTF-8 while this lives; "?" when there is none.
class Attribute {
 public:
  Attribute(const Api& api, Object* owner, const char* name);
  ~Attribute();
  Attribute(const Attribute&) = delete;
  Attribute& operator=(const Attribute&) = delete;
  std::string_view text() const { return text_; }
  bool readable() const { return readable_; }

 private:
  const Api& api_;
  Object* value_;
  bool readable_ = false;
  std::string_view text_ = "?";
};

// The name of the attribute that says what a code object is called.
inline const char* function_attribute(const Api& api) {
  return api.minor >= 11 ? "co_qualname" : "co_name";
}

}  // namespace flame::python
