// Exports functions of the library for ctypes: what tests ask of it from inside a Python program.
#include <thread>

#include "system/clock.h"
#include "flame.h"
#include "python/api.h"
#include "python/code_text.h"
#include "python/self_check.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int probe_start() { return flame::start(); }
EXPORTED uint32_t probe_stack() { return flame::python_stack(); }
EXPORTED uint32_t probe_begin() { return flame::start() ? flame::python_stack() : UINT32_MAX; }
EXPORTED void probe_stop() { flame::stop(); }

// From a thread that Python does not know.
EXPORTED uint32_t probe_elsewhere() {
  uint32_t node = 1;
  std::thread([&] { node = flame::python_stack(); }).join();
  return node;
}

// The same stack many times; ns for each.
EXPORTED double probe_many(uint32_t count) {
  const uint64_t begin = flame::now();
  for (uint32_t i = 0; i < count; i++) flame::python_stack();
  return static_cast<double>(flame::now() - begin) / count;
}

static bool offsets(flame::python::Offsets* found) {
  flame::python::Api api = {};
  return flame::python::load_api(&api) &&
         flame::python::find_offsets(api.minor, api.runtime, found);
}

EXPORTED int probe_line(const char* code, int32_t lasti) {
  flame::python::Offsets found;
  return offsets(&found) ? static_cast<int>(flame::python::line_of(flame::python::Trusted(), code, lasti, found)) : -1;
}

// The text into `room`, kTextRoom bytes; its size.
EXPORTED int probe_text(const char* text, char* room) {
  flame::python::Offsets found;
  if (!offsets(&found)) return -1;
  const std::string_view utf8 = flame::python::utf8(flame::python::Trusted(), text, found, room);
  if (utf8.data() != room) memcpy(room, utf8.data(), utf8.size());
  return static_cast<int>(utf8.size());
}

// What the check says of a walk by the offsets of another version; with the GIL held.
EXPORTED int probe_check_as(int minor) {
  flame::python::Api api = {};
  flame::python::Offsets other;
  if (!flame::python::load_api(&api) || !flame::python::find_offsets(minor, nullptr, &other))
    return -1;
  return flame::python::check_walk(api, api.own_thread(), other);
}

// Whether `table` is taken for that at the beginning of _PyRuntime.
EXPORTED int probe_takes(int minor, const char* table) {
  flame::python::Offsets found;
  return flame::python::find_offsets(minor, table, &found);
}

// In the order of the struct, without the flag and the tag.
EXPORTED int probe_offsets(uint16_t* out) {
  flame::python::Offsets o;
  if (!offsets(&o)) return 0;
  const uint16_t all[] = {
      o.thread_frame, o.cframe_frame, o.frame_code, o.frame_previous, o.frame_instruction,
      o.frame_owner, o.code_flags, o.code_first_line, o.code_version, o.code_filename,
      o.code_qualname, o.code_linetable, o.code_first_traceable, o.code_bytecode, o.text_length,
      o.text_state, o.text_ascii, o.text_compact, o.bytes_size, o.bytes_data};
  memcpy(out, all, sizeof all);
  return static_cast<int>(sizeof all / sizeof *all);
}
